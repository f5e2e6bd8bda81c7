"""Tables with notes, laid out as text, Markdown or one HTML file."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MARKDOWN = re.compile(r"[\\`*|~$<>&]|\](?=[(\[:])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: bottom; border-bottom: 1px solid #8886; }
td { white-space: nowrap; }
"""


class Block(NamedTuple):
    """A part of a page: a title, then a table if it has columns, then notes."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()


def printable(text: str) -> str:
    r"""Return a name from outside, such as a file's, with what would break a line or an encoding written out.

    >>> print(printable("a\nb"))
    a\nb
    """
    return _CONTROL.sub(lambda letter: repr(letter[0])[1:-1], text)


def as_text(blocks: Iterable[Block]) -> str:
    """Return blocks as plain text with aligned columns."""
    lines: list[str] = []
    for block in blocks:
        lines += ["", block.title] if lines else [block.title]
        table = [block.columns, *block.rows] if block.columns else []
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
        lines += [f"  {note}" for note in block.notes]
    return "\n".join(lines) + "\n"


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return blocks as Markdown: the first title as the page's, the others as sections, cells and notes as plain text."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(map(_escaped, cells))} |"

    parts: list[str] = []
    for place, block in enumerate(blocks):
        parts.append(f"{'##' if place else '#'} {_escaped(block.title)}\n")
        if block.columns:
            parts.append("\n".join([line(block.columns), f"|{'---|' * len(block.columns)}", *map(line, block.rows)]) + "\n")
        if block.notes:
            parts.append("\n".join(f"- {_escaped(note)}" for note in block.notes) + "\n")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(lambda letter: html.escape(letter[0]) if letter[0] in "<>&" else "\\" + letter[0], text)


def as_html(blocks: Sequence[Block]) -> str:
    """Return blocks as one HTML file that needs nothing else."""
    parts: list[str] = []
    for place, block in enumerate(blocks):
        level = 2 if place else 1
        parts.append(f"<h{level}>{html.escape(block.title)}</h{level}>")
        if block.columns:
            head = "".join(f"<th>{html.escape(cell).replace('_', '_<wbr>')}</th>" for cell in block.columns)
            body = "\n".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
            parts.append(f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>')
        if block.notes:
            parts.append("<ul>\n" + "\n".join(f"<li>{html.escape(note)}</li>" for note in block.notes) + "\n</ul>")
    title = html.escape(blocks[0].title)
    head = f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n<style>{_STYLE}</style>'
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'

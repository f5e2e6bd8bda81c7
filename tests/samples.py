"""A small labelled file, predictions for it, and ways to change one thing in them.

`GOLD` holds eight cases (RDOD2-021 to 028) of three constraints and six steps. `PREDICTIONS` answers them: wholly right on 021,
022 and 025, wrong in a different way on each of the rest.
"""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
GOLD = (FOLDER / "gold.csv").read_bytes()
PREDICTIONS = (FOLDER / "answers.csv").read_bytes()

Edit = Callable[[bytes], bytes]


def read_rows(content: bytes) -> list[list[str]]:
    """Return header and rows of a CSV file."""
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def csv_bytes(rows: Sequence[Sequence[str]], **style: object) -> bytes:
    """Return rows as the project writes its CSV files: UTF-8, LF, quotes where they are needed."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", **style).writerows(rows)
    return text.getvalue().encode()


def edited(content: bytes, scenario: int, **cells: str) -> bytes:
    """Return a file in which one scenario (21 for RDOD2-021) has other cells."""
    header, *rows = read_rows(content)
    (row,) = (row for row in rows if row[0] == f"RDOD2-{scenario:03d}")
    for column, value in cells.items():
        row[header.index(column)] = value
    return csv_bytes([header, *rows])


def all_cells(content: bytes, column: str, change: Callable[[str], str]) -> bytes:
    """Return a file in which a column is changed in every row."""
    header, *rows = read_rows(content)
    place = header.index(column)
    return csv_bytes([header, *([*row[:place], change(row[place]), *row[place + 1 :]] for row in rows)])


def columns(content: bytes, *names: str) -> bytes:
    """Return a file that holds these columns alone, in this order."""
    header, *rows = read_rows(content)
    return csv_bytes([names, *([row[header.index(name)] for name in names] for row in rows)])


def column_added(content: bytes, name: str, value: str = "", place: int | None = None) -> bytes:
    """Return a file with one column more, by default at the end, the same in every row."""
    return csv_bytes(
        [[*row[:place], name if number == 0 else value, *(row[place:] if place is not None else ())] for number, row in enumerate(read_rows(content))]
    )


def replaced(content: bytes, *pairs: tuple[str | bytes, str | bytes]) -> bytes:
    """Return a file with pieces replaced, each of which occurs exactly once."""
    for pair in pairs:
        old, new = (piece.encode() if isinstance(piece, str) else piece for piece in pair)
        assert content.count(old) == 1, (old, content.count(old))
        content = content.replace(old, new)
    return content


def lines(content: bytes, *numbers: int) -> bytes:
    """Return these lines of a file (from 1), in this order."""
    every = content.splitlines(keepends=True)
    return b"".join(every[number - 1] for number in numbers)


def on_many_lines(cell: str) -> str:
    """Return a JSON cell as a pretty-printer writes it: with a line break at every element."""
    return json.dumps(json.loads(cell), indent=1, ensure_ascii=False)


def on_odd_lines(cell: str) -> str:
    """Return a JSON cell with line breaks between its elements, and inside its texts marks that only look like line breaks."""
    return on_many_lines(cell).replace(", ", ",\u2028").replace(" of ", "\u2029of\\n\x85")


INPUTS = ("scenario_id", "domain", "task", "constraints_json", "trajectory_json")
BLIND = columns(GOLD, *INPUTS)
BOM = b"\xef\xbb\xbf"

"""The report as one HTML file that needs nothing else: no network, no script, readable on paper and in the dark."""

from collections.abc import Iterable, Mapping
from typing import Any

from rdod_metric import page
from rdod_metric.rules import TARGETS
from rdod_metric.tables import Case

CASES_SHOWN = 200
"""Cases that the file shows one by one; beyond that it would be too large for a browser."""

_LAYOUT = """
html { background: var(--page); color-scheme: light dark; }
body { margin: 0; background: var(--page); }
.rdod { max-width: 76rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 2.5rem) 4rem; }
.rdod h1 { font-size: 1.7rem; line-height: 1.2; font-weight: 700; letter-spacing: -.01em; margin: 0 0 .25rem; }
.rdod nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .8rem 0 1.2rem; font-size: .9rem; }
.rdod fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem .9rem; align-items: center; }
.rdod legend { float: left; font-weight: 600; margin-right: .9rem; padding: 0; }
.rdod .filters { display: grid; gap: .35rem; margin: 0 0 1rem; font-size: .9rem; }
@media print {
  .rdod { max-width: none; padding: 0; font-size: 10pt; }
  .rdod nav, .rdod .filters { display: none; }
  .rdod .board, .rdod tr, .rdod .note-box { break-inside: avoid; }
  .rdod h2, .rdod h4, .rdod summary { break-after: avoid; }
}
"""


def _filter_rules() -> str:
    """Return the style rules by which the two rows of buttons hide cases."""
    rules = []
    for field in ("", *TARGETS):
        wrong = f".wrong-{field}" if field else ":not(.all-right)"
        here = f".rdod:has(#field-{field or 'all'}:checked)"
        rules += [f"{here}:has(#show-right:checked) .case{wrong}", f"{here}:has(#show-wrong:checked) .case:not({wrong})"]
    return f"@media screen {{ {', '.join(rules)} {{ display: none; }} }}"


def _buttons(name: str, legend: str, options: Mapping[str, str]) -> str:
    buttons = [
        f'<label><input type="radio" name="{name}" id="{name}-{value}"{" checked" * (not place)}> {text}</label>'
        for place, (value, text) in enumerate(options.items())
    ]
    return f"<fieldset><legend>{legend}</legend>{''.join(buttons)}</fieldset>"


def _cases(report: Mapping[str, Any], cases: Iterable[Case]) -> str:
    table = report["prediction_table"]
    note = ""
    if len(table) > CASES_SHOWN:
        table = sorted(table, key=page.right)[:CASES_SHOWN]
        note = (
            f'<p class="muted">The first {CASES_SHOWN} of {len(report["prediction_table"])} cases, those that are not completely right before the others.</p>'
        )
    filters = _buttons("show", "Show", {"all": "all", "right": "right", "wrong": "wrong"})
    fields = _buttons("field", "on", {"all": "all five targets", **page.TITLES})
    scenarios = {case.scenario.scenario_id: case.scenario for case in cases}
    return f'<h2 id="cases">Cases</h2>{note}<div class="filters">{filters}{fields}</div>{page.cases(table, scenarios, unfolded=True)}'


def html_report(report: Mapping[str, Any], cases: Iterable[Case]) -> str:
    """Return the HTML file of a report.

    Args:
        report: what `rdod_metric.scoring.score` returns, with its prediction table; intervals are drawn if it has any.
        cases: the labelled cases that it scores, as `rdod_metric.tables.read_cases` gives them.
    """
    name = page.esc(report["benchmark"]["name"])
    whiskers = page.dots_and_whiskers(report)
    sections = {"leaderboards": "Leaderboards", "diagnostics": "Diagnostics", "figures": "Figures", "classes": "Classes", "strata": "Strata", "cases": "Cases"}
    strata = page.strata(report)
    if not strata:
        del sections["strata"]
    links = "".join(f'<a href="#{place}">{title}</a>' for place, title in sections.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{name}: report</title>
<style>{page.style(dark="")}{_LAYOUT}{_filter_rules()}</style>
</head>
<body><main class="rdod">
<h1>{name}</h1>
{page.identity(report)}
<nav>{links}</nav>
{page.notices(report)}
<h2 id="leaderboards">Leaderboards</h2>
{page.leaderboards(report)}
<h2 id="diagnostics">Secondary diagnostics</h2>
<div class="grid figures">{page.diagnostics(report)}{whiskers}</div>
<h2 id="figures">Figures</h2>
{page.drawings(report)}
<h2 id="classes">Classes</h2>
{page.classes(report)}
{'<h2 id="strata">Strata</h2>' * bool(strata)}{strata}
{_cases(report, cases)}
</main></body>
</html>
"""

"""A report as people look at it: HTML and figures of both leaderboards, the classes and the cases.

The Space's page and the scorer's HTML report are put together from these pieces. Every text that
comes from a file is escaped, and no figure shows any; figures are SVG with real text, in colours that
follow the page (light, dark, printed).
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import figures
from .rules import NONE, TARGETS, Problem, Scenario
from .scoring import COMPONENTS, LABEL_FIELDS

Report = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]

TITLES = {
    "outcome_mode": "Outcome mode",
    "first_drift_step": "First drift step",
    "mechanism_family": "Mechanism family",
    "repair_outcome": "Repair outcome",
    "residual_constraint_id": "Residual constraint",
}
"""How the page calls the five targets."""

VERDICTS = ("all", "right", "wrong")
"""Values of the filter of cases."""

_LIGHT = """
  --ink: #1d2330; --muted: #5b6475; --line: #d9dee7; --page: #ffffff; --card: #f6f8fb; --track: #e4e8ef; --cell: #56b4e9;
  --gold-fill: #f0b429; --gold-ink: #1d2330; --predicted-fill: #0072b2; --predicted-ink: #ffffff; --mark: #0072b2; --second: #b34700;
  --right: #00694a; --right-wash: #e2f4ec; --wrong: #a83f00; --wrong-wash: #fdebdf; --after: #fff8e6;"""
_DARK = """
  --ink: #e8ebf1; --muted: #a3adbd; --line: #3a4252; --page: #14171e; --card: #1c212b; --track: #2c3340; --cell: #1f6f9f;
  --gold-fill: #f0b429; --gold-ink: #1d2330; --predicted-fill: #3d9be0; --predicted-ink: #0b1017; --mark: #62b4ee; --second: #ff9a57;
  --right: #5fd3ab; --right-wash: #143328; --wrong: #ff9a57; --wrong-wash: #3b2415; --after: #262216;"""

_RULES = """
.rdod { color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
.rdod h2 { font-size: 1.25rem; font-weight: 650; margin: 2rem 0 .75rem; color: var(--ink); }
.rdod h3 { font-size: 1rem; font-weight: 650; margin: 0; color: var(--ink); }
.rdod p { margin: .25rem 0; color: inherit; }
.rdod code { font: .86em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: none; padding: 0; color: inherit; }
.rdod .muted { color: var(--muted); }
.rdod .small { font-size: .84rem; }
.rdod .grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); align-items: start; }
.rdod .board, .rdod .case, .rdod figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.15rem; margin: 0; }
.rdod .grid > .board, .rdod .grid > figure { height: 100%; box-sizing: border-box; }
.rdod .figures { grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr)); }
.rdod .grid > *, .rdod .two > * { min-width: 0; }
.rdod .big { font-size: 2.6rem; line-height: 1.15; font-weight: 700; letter-spacing: -.02em; margin: .35rem 0 0; }
.rdod .bars { display: grid; grid-template-columns: minmax(0, auto) minmax(2rem, 1fr) auto; gap: .3rem .7rem; align-items: center; margin-top: .8rem; }
.rdod .bars .note { grid-column: 1 / -1; color: var(--muted); font-size: .8rem; margin: -.2rem 0 .35rem; }
.rdod .bar { display: block; height: .55rem; border-radius: 3px; background: var(--track); overflow: hidden; }
.rdod .bar i { display: block; height: 100%; background: var(--mark); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.rdod .number { text-align: right; white-space: nowrap; }
.rdod table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: 0; }
.rdod th, .rdod td { text-align: left; padding: .32rem .6rem; border: 0; border-bottom: 1px solid var(--line); vertical-align: top; color: inherit;
  background: none; }
.rdod td { overflow-wrap: break-word; }
.rdod .findings td:nth-child(n + 5) { overflow-wrap: anywhere; min-width: 9rem; }
.rdod .classes code { white-space: nowrap; }
.rdod th { font-weight: 600; color: var(--muted); }
.rdod td.number, .rdod th.number { text-align: right; }
.rdod tr.group th { color: var(--ink); padding-top: 1rem; border-bottom-width: 2px; }
.rdod tr.none td { color: var(--muted); }
.rdod .scroll { overflow-x: auto; }
.rdod figure { break-inside: avoid; }
.rdod figcaption { font-weight: 650; margin-bottom: .15rem; }
.rdod figure { overflow-x: auto; }
.rdod figure svg { display: block; width: 100%; min-width: 19rem; height: auto; margin: .5rem auto 0; }
.rdod .note-box { border: 1px solid var(--line); border-left: 4px solid var(--second); border-radius: 6px; padding: .6rem .9rem; margin: .75rem 0;
  background: var(--card); }
.rdod .case { margin: 0 0 .8rem; padding: 0; }
.rdod .case > summary { cursor: pointer; padding: .7rem 1.15rem; display: flex; flex-wrap: wrap; gap: .35rem .6rem; align-items: center; }
.rdod .case > summary::before { content: "▸"; color: var(--muted); width: .8em; }
.rdod .case[open] > summary::before { content: "▾"; }
.rdod .case > summary::-webkit-details-marker { display: none; }
.rdod .case > summary b { font-weight: 650; }
.rdod .case .body { padding: .2rem 1.15rem 1.1rem; border-top: 1px solid var(--line); }
.rdod .chip { font-size: .78rem; border-radius: 99px; padding: .05rem .55rem; border: 1px solid currentColor; white-space: nowrap; }
.rdod .right { color: var(--right); }
.rdod .wrong { color: var(--wrong); }
.rdod .chip.right, .rdod td.right { background: var(--right-wash); color: var(--right); }
.rdod .chip.wrong, .rdod td.wrong { background: var(--wrong-wash); color: var(--wrong); }
.rdod td.right, .rdod td.wrong { font-weight: 600; }
.rdod td.right .muted, .rdod td.wrong .muted { color: inherit; }
.rdod .badge { display: inline-block; font-size: .74rem; font-weight: 650; border-radius: 4px; padding: .05rem .45rem; margin-right: .4rem; white-space: nowrap;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.rdod .badge.gold { background: var(--gold-fill); color: var(--gold-ink); }
.rdod .badge.predicted { background: var(--predicted-fill); color: var(--predicted-ink); }
.rdod ol.plain { list-style: none; margin: .3rem 0 .8rem; padding: 0; }
.rdod ol.plain > li { display: grid; grid-template-columns: 2rem 1fr; padding: .3rem .5rem; margin: 0; border-left: 4px solid transparent; border-radius: 2px;
  white-space: pre-line; overflow-wrap: anywhere; break-inside: avoid; }
.rdod ol.plain > li > .n { color: var(--muted); text-align: right; padding-right: .7rem; }
.rdod ol.plain > li.gold { border-left-color: var(--gold-fill); background: var(--after); }
.rdod ol.plain > li.predicted { border-left-color: var(--predicted-fill); }
.rdod ol.plain > li.gold.predicted { border-left-color: var(--right); }
.rdod .two { display: grid; gap: 0 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
.rdod h4 { font-size: .8rem; font-weight: 650; text-transform: uppercase; letter-spacing: .05em; color: var(--muted); margin: .9rem 0 .2rem; }
.rdod a { color: var(--mark); }
"""


def style(*, dark: str) -> str:
    """Return the page's style sheet.

    Args:
        dark: selector of what surrounds a dark page, or '' where the reader's system says whether it is dark.
    """
    night = f"{dark} .rdod {{{_DARK} }}" if dark else f"@media screen and (prefers-color-scheme: dark) {{ :root, .rdod {{{_DARK} }} }}"
    return f":root, .rdod {{{_LIGHT} }}\n{night}\n{_RULES}"


def esc(value: object) -> str:
    """Return a value as HTML text or attribute."""
    return html.escape(str(value))


def _breakable(name: str) -> str:
    """Return a name as HTML that may be broken after its underscores."""
    return esc(name).replace("_", "_<wbr>")


def shown(value: float | None, digits: int = 3) -> str:
    """Return a score as the page shows it."""
    return "undefined" if value is None else f"{value:.{digits}f}"


def words(name: str) -> str:
    """Return a key of the report as words."""
    text = name.replace("_", " ").replace(" f1", " F1")
    return text[0].upper() + text[1:]


# ---------------------------------------------------------------- scores
def _interval(report: Report, name: str) -> str:
    """Return a score's interval in brackets, or '' where the report has none."""
    bounds = report.get("intervals", {}).get(name) or report.get("wilson_intervals", {}).get("intervals", {}).get(name)
    if not bounds or bounds["low"] is None:
        return ""
    level = report.get("resampling", report.get("wilson_intervals", {})).get("level", 0.95)
    return f'<span class="muted small number" title="{level:.0%} interval">[{bounds["low"]:.2f}, {bounds["high"]:.2f}]</span>'


def _bar(label: str, share: float | None, value: str) -> str:
    width = 100 * (share or 0)
    return f'<span>{label}</span><span class="bar" aria-hidden="true"><i style="width:{width:.1f}%"></i></span><span class="number">{value}</span>'


def _supports(report: Report, field: str) -> str:
    return ", ".join(f"{esc(label)} {count}" for label, count in report["class_support"][field].items() if count)


def leaderboards(report: Report) -> str:
    """Return both leaderboards side by side, with n, class supports and the ladder."""
    a, b = report["leaderboard_a_component_capability"], report["leaderboard_b_complete_reasoning_state"]
    n = report["benchmark"]["n"]
    parts = []
    for name in COMPONENTS:
        parts.append(_bar(f"<code>{_breakable(name)}</code>", a[name], f"{shown(a[name])} {_interval(report, name)}"))
        field = name.removesuffix("_macro_f1")
        if field in LABEL_FIELDS:
            parts.append(f'<span class="note">support: {_supports(report, field)}</span>')
    steps = [_bar(f"{'' if not place else '+ '}{TITLES[target]}", count / n, f"{count} of {n}") for place, (target, count) in enumerate(b["ladder"].items())]
    complete, bounds = b["complete_primary_accuracy"], _interval(report, "complete_primary_accuracy")
    return f"""<div class="grid">
<section class="board" data-board="a"><h3>Leaderboard A: component capability</h3><p class="muted">Can it identify the parts?</p>
<p class="big">{shown(a["component_mean"])}</p><p class="muted"><code>component_mean</code> over n = {n} cases {_interval(report, "component_mean")}</p>
<div class="bars">{"".join(parts)}</div></section>
<section class="board" data-board="b"><h3>Leaderboard B: complete reasoning state</h3><p class="muted">Can it reconstruct the whole?</p>
<p class="big">{shown(complete)}</p><p class="muted"><code>complete_primary_accuracy</code> over n = {n} cases {bounds}</p>
<div class="bars">{"".join(steps)}</div>
<p class="small muted">The ladder: cases right on the first target, on the first two, and so on to all five. Partial agreement earns nothing here.</p></section>
</div>"""


def notices(report: Report) -> str:
    """Return what a reader must know before the scores: invalid answers, a suspicious shift, and how little n cases can tell apart."""
    texts = []
    if count := report["benchmark"]["invalid_predictions"]:
        texts.append(f"{count} answer{'s' * (count != 1)} broke a rule or {'were' if count != 1 else 'was'} missing, and counted wrong on every target.")
    if warning := report.get("onset_shift_check", {}).get("warning"):
        texts.append(f"Check the step numbers: {warning}")
    if meaning := report.get("resolution_floor", {}).get("meaning"):
        texts.append(meaning)
    return "".join(f'<p class="note-box">{esc(text)}</p>' for text in texts)


def identity(report: Report) -> str:
    """Return one line that says what was scored, on what and by which scorer."""
    benchmark = report["benchmark"]
    checksum = benchmark["gold_sha256"] or benchmark["gold_labels_sha256"]
    parts = [f"n = {benchmark['n']} cases", f"gold {benchmark['gold_file'] or 'records'} (SHA-256 {checksum[:12]}…)", f"scorer {benchmark['scorer_version']}"]
    if resampling := report.get("resampling"):
        parts.append(f"{resampling['resamples']} resamples, seed {resampling['seed']}, level {resampling['level']}")
    return f'<p class="muted small">{esc("  ·  ".join(parts))}</p>'


def diagnostics(report: Report) -> str:
    """Return the table of the secondary diagnostics."""
    rows = [
        f'<tr><td>{words(name)}</td><td class="number">{shown(value)}</td><td>{_interval(report, name)}</td></tr>'
        for name, value in report["secondary_diagnostics"].items()
    ]
    head = '<tr><th>They rank nothing</th><th class="number">value</th><th>interval</th></tr>'
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def strata(report: Report) -> str:
    """Return a table for everything that the report groups its cases by; '' where it groups them by nothing."""
    tables = []
    for by, groups in report.get("strata", {}).items():
        names = [name for name in next(iter(groups.values())) if name not in ("n", "too_small")]
        head = "".join(f'<th class="number">{words(name)}</th>' for name in names)
        rows = "".join(
            f'<tr{" class=none" * row["too_small"]}><td>{_breakable(group)}{" (too few to read)" * row["too_small"]}</td><td class="number">{row["n"]}</td>'
            + "".join(
                f'<td class="number">{shown(row[name]["value"])} <span class="muted small">[{row[name]["low"]:.2f}, {row[name]["high"]:.2f}]</span></td>'
                for name in names
            )
            + "</tr>"
            for group, row in groups.items()
        )
        tables.append(
            f'<div class="scroll"><table><thead><tr><th>{words(by)}</th><th class="number">n</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        )
    return "<br>".join(tables)


def classes(report: Report) -> str:
    """Return the table of precision, recall and F1 of every class, with supports."""
    rows = []
    for field, labels in report["per_class_metrics"].items():
        rows.append(f'<tr class="group"><th colspan="6">{TITLES[field]}</th></tr>')
        for label, row in labels.items():
            none = "" if row["support"] or row["predicted"] else ' class="none"'
            values = "".join(f'<td class="number">{row[name]:.3f}</td>' for name in ("precision", "recall", "f1"))
            rows.append(
                f'<tr{none}><td><code>{esc(label)}</code></td><td class="number">{row["support"]}</td><td class="number">{row["predicted"]}</td>{values}</tr>'
            )
    head = "".join(f'<th class="number">{name}</th>' for name in ("support", "predicted", "precision", "recall", "F1"))
    return f'<div class="scroll"><table class="classes"><thead><tr><th>class</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


# ---------------------------------------------------------------- findings
def findings(problems: Sequence[Problem], most: int) -> str:
    """Return the table of what is wrong with the files, at most so many rows of it."""
    rows = "".join(
        f'<tr><td>{esc(problem.file)}</td><td class="number">{"" if problem.line is None else problem.line}</td><td>{esc(problem.column)}</td>'
        f"<td>{esc(problem.scenario_id)}</td><td>{esc(problem.found)}</td><td>{esc(problem.expected)}"
        f"{f'<br>Did you mean <b>{esc(problem.nearest)}</b>?' if problem.nearest else ''}</td><td><code>{esc(problem.code)}</code></td></tr>"
        for problem in problems[:most]
    )
    head = '<tr><th>file</th><th class="number">line</th><th>column</th><th>scenario</th><th>found</th><th>expected</th><th>code</th></tr>'
    count = f"{len(problems)} finding{'s' * (len(problems) != 1)}"
    return (
        f'<h2>{count}: nothing was scored</h2><p class="muted">Mend these and upload the file again. Nothing is scored until a file is valid.</p>'
        f'<div class="scroll"><table class="findings"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    )


# ---------------------------------------------------------------- cases
def right(row: Mapping[str, Any], field: str = "") -> bool:
    """Tell whether a row of the prediction table is right on a target, or on all five where none is named."""
    return bool(row[f"{field}_correct" if field else "complete_primary_correct"])


def chosen(table: Rows, field: str = "", verdict: str = "all") -> list[Mapping[str, Any]]:
    """Return the rows of the prediction table that a filter leaves: those `right` or `wrong` on a target, '' meaning all five."""
    return [row for row in table if verdict == "all" or right(row, field) is (verdict == "right")]


def _badges(place: int, gold: int | None, predicted: int | None, what: str) -> tuple[str, str]:
    """Return the CSS classes and the badges of a numbered step or constraint."""
    kinds = [kind for kind, number in (("gold", gold), ("predicted", predicted)) if number == place]
    return " ".join(kinds), "".join(f'<span class="badge {kind}">{kind} {what}</span>' for kind in kinds)


def _numbered(texts: Iterable[str], gold: int | None, predicted: int | None, what: str) -> str:
    items = []
    for place, text in enumerate(texts, 1):
        kinds, badges = _badges(place, gold, predicted, what)
        items.append(f'<li class="{kinds}"><span class="n">{place}</span><span>{badges}{esc(text)}</span></li>')
    return f'<ol class="plain">{"".join(items)}</ol>'


def _value(target: str, value: Any) -> str:
    if value is None:
        return f'<span class="muted">{"blank" if target == "first_drift_step" else NONE}</span>'
    return f"step {value}" if target == "first_drift_step" else f"constraint {value}" if target == "residual_constraint_id" else _breakable(value)


def case(row: Mapping[str, Any], scenario: Scenario | None, *, unfolded: bool = False) -> str:
    """Return one case: constraints, numbered steps with both onsets marked, and gold against predicted.

    Args:
        row: its row of the prediction table.
        scenario: what a model sees of it, where that is known.
        unfolded: whether it stands open.
    """
    verdicts = {target: ("right", "✓") if right(row, target) else ("wrong", "✗") for target in TARGETS}
    chips = "".join(f'<span class="chip {verdict}">{mark} {TITLES[target]}</span>' for target, (verdict, mark) in verdicts.items())
    if row["confidence"] is not None:
        chips += f'<span class="muted small">confidence {row["confidence"]:.2f}</span>'
    invalid = row["predicted_outcome_mode"] is None
    cells = "".join(
        f'<tr><td>{TITLES[target]}</td><td>{_value(target, row[f"gold_{target}"])}</td><td class="{verdict}">{mark} '
        f"{'<i>no valid answer</i>' if invalid else _value(target, row[f'predicted_{target}'])}</td></tr>"
        for target, (verdict, mark) in verdicts.items()
    )
    table = f"<h4>Gold against predicted</h4><table><thead><tr><th>target</th><th>gold</th><th>predicted</th></tr></thead><tbody>{cells}</tbody></table>"
    if error := row["onset_absolute_error"]:
        table += f'<p class="small muted">The predicted onset is {error} step{"s" * (error != 1)} off.</p>'
    body = f"<div>{table}</div>"
    if scenario is not None:
        residuals = _numbered(scenario.constraints, row["gold_residual_constraint_id"], row["predicted_residual_constraint_id"], "residual")
        onsets = _numbered(scenario.trajectory, row["gold_first_drift_step"], row["predicted_first_drift_step"], "onset")
        body = (
            f'<p><span class="muted">{esc(scenario.domain)}</span><br>{esc(scenario.task)}</p>'
            f'<div class="two"><div><h4>Constraints</h4>{residuals}</div>{body}</div><h4>Steps</h4>{onsets}'
        )
    kinds = " ".join(["case", *(f"wrong-{target}" for target in TARGETS if not right(row, target)), *(["all-right"] if right(row) else [])])
    opening = f'<details class="{kinds}" id="case-{esc(row["scenario_id"])}"{" open" * unfolded}>'
    return f'{opening}<summary><b>{esc(row["scenario_id"])}</b>{chips}</summary><div class="body">{body}</div></details>'


def cases(rows: Rows, scenarios: Mapping[str, Scenario], *, unfolded: bool = False) -> str:
    """Return these rows of the prediction table as cases, the first one or all of them open."""
    return "".join(case(row, scenarios.get(row["scenario_id"]), unfolded=unfolded or not place) for place, row in enumerate(rows))


# ---------------------------------------------------------------- figures
def _figure(title: str, note: str, svg: str) -> str:
    return f'<figure><figcaption>{title}</figcaption><span class="muted small">{note}</span>{svg}</figure>' if svg else ""


def drawings(report: Report) -> str:
    """Return all figures that the report has the numbers for."""
    table = report["prediction_table"]
    confident = sum(row["confidence"] is not None for row in table)
    n = report["benchmark"]["n"]
    shown_over = f"Over the {confident} of {n} cases that carry a confidence."
    matrices = {
        field: _figure(f"Confusion: {TITLES[field].lower()}", "Rows are gold, columns predicted.", figures.confusion(table, field)) for field in LABEL_FIELDS
    }
    parts = [
        matrices["outcome_mode"],
        matrices["repair_outcome"],
        matrices["mechanism_family"],
        _figure("Onset error", "Left of 0 is too early. Cases without a step on both sides stand apart.", figures.onset_error(table)),
        _figure("Reliability", f"{shown_over} The rods are the gaps that the calibration error adds up.", figures.reliability(table)),
        _figure("Risk and coverage", shown_over, figures.risk_coverage(table)),
    ]
    return f'<div class="grid figures">{"".join(parts)}</div>'


def dots_and_whiskers(report: Report) -> str:
    """Return the figure of all scores with their intervals, or '' where the report has none."""
    note = "Dots are scores; bars are intervals over cases. Scores that count steps are in the table."
    return _figure("Scores and their intervals", note, figures.intervals(report))

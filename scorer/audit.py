#!/usr/bin/env python3
"""Audit labelled files for what gives answers away: position, length, words, parts of the input, copies.

Measures are held against scorer/audit_thresholds.json. Exit status: 0 every check passes, 1 a check
fails or a file has findings, 2 the command could not do its work.
"""

import argparse
import html
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from statsmodels.stats.multitest import multipletests

from baseline.baseline import fitted
from rdod_metric.rules import STATE_TABLE, Prediction, State, contrast_family
from rdod_metric.scoring import COMPONENTS, score
from rdod_metric.tables import Case, read_cases
from scorer.audit_checks import TOGETHER, AuditCase, Grid, Measure, Section, audit_cases, coverage, length, position, scopes, twins, words
from scorer.audit_probes import (
    PARTIAL_VIEWS,
    TARGETS,
    Outcome,
    Probe,
    Result,
    kernels,
    lengths,
    lost_index_by_family,
    outputs,
    partial_inputs,
    probes,
    run_probes,
    see,
    smoother,
)
from scorer.command import FINDINGS, VALID, Unable, check_output, existing_file, print_findings, run, write_whole
from scorer.leaderboard import floors as baseline_floors
from scorer.strata import THIRDS
from scorer.validate import overlap_problems

THRESHOLDS = Path(__file__).with_name("audit_thresholds.json")
"""The file of limits."""

PERMUTATIONS = 2000
"""Shuffled labellings behind every p-value, where no other number is asked for."""

FEWEST_PERMUTATIONS = 199
"""With fewer, a corrected p-value could never fall below 0.05, and nothing would be checked."""

_SHOWN_ROWS = 12


class Limit(NamedTuple):
    """What the thresholds file says of one measure."""

    check: str
    on: tuple[str, ...]
    meaning: str
    at_most: float | None = None
    at_least: float | None = None
    chance: bool = False

    @property
    def text(self) -> str:
        """Return the limit in words."""
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"


class Check(NamedTuple):
    """One limit held against one measure. `value` is the corrected p-value where the limit is on chance."""

    name: str
    scope: str
    value: float | None
    limit: str
    passed: bool
    meaning: str
    detail: str
    rows: tuple[str, ...]


class Floor(NamedTuple):
    """What a system without reasoning scores on test: the aggregates of both leaderboards."""

    name: str
    scores: Mapping[str, float | None]


class Report(NamedTuple):
    """The whole audit.

    Attributes:
        profile: name of the set of limits.
        files: rows of each split.
        permutations: shuffled labellings behind every p-value.
        sections: what was measured.
        outcomes: what the probes reached, by target.
        floors: what systems without reasoning score on test.
        checks: what the limits say of it.
    """

    profile: str
    files: dict[str, int]
    permutations: int
    sections: list[Section]
    outcomes: dict[str, Outcome]
    floors: list[Floor]
    checks: list[Check]

    @property
    def passed(self) -> bool:
        """Tell whether every check passes."""
        return all(check.passed for check in self.checks)


# ---------------------------------------------------------------- the verdict
def read_limits(path: Path, profile: str) -> list[Limit]:
    """Return the limits of a profile; raise `Unable` where the file is not what it should be."""
    try:
        limits = [Limit(**{**entry, "on": tuple(entry["on"])}) for entry in json.loads(path.read_text(encoding="utf-8"))["profiles"][profile]]
    except (ValueError, KeyError, TypeError) as error:
        raise Unable(f"{path} holds no limits of the profile {profile}: {type(error).__name__}: {error}") from None
    for limit in limits:
        if (limit.at_most is None) is (limit.at_least is None):
            raise Unable(f"{path}: {limit.check} needs either at_most or at_least")
    return limits


def judge(measures: Iterable[Measure], limits: Sequence[Limit], audited: Iterable[str]) -> list[Check]:
    """Hold limits against measures; a limit on a split that was not audited is left out, a measure that is missing fails."""
    found = {(measure.name, measure.scope): measure for measure in measures}
    pairs = [(limit, found.get((limit.check, scope), Measure(limit.check, scope, None))) for limit in limits for scope in limit.on if scope in set(audited)]
    chance = [place for place, (limit, measure) in enumerate(pairs) if limit.chance and measure.value is not None]
    if chance:
        for place, p in zip(chance, multipletests([pairs[place][1].value for place in chance], method="holm")[1], strict=True):
            limit, measure = pairs[place]
            pairs[place] = limit, measure._replace(value=float(p), detail=f"{measure.detail} (p = {measure.value:.3g} alone)")
    return [
        Check(limit.check, measure.scope, measure.value, limit.text, within(limit, measure), limit.meaning, measure.detail, measure.rows)
        for limit, measure in pairs
    ]


def within(limit: Limit, measure: Measure) -> bool:
    """Tell whether a measure keeps to its limit. A limit on a share of rows is one on whole rows, rounded in the data's favour."""
    if measure.value is None:
        return False
    value, scale = (round(measure.value * measure.of), measure.of) if measure.of else (measure.value, 0)
    if limit.at_most is not None:
        return value <= (math.ceil(limit.at_most * scale - 1e-9) if scale else limit.at_most)
    assert limit.at_least is not None
    return value >= (math.floor(limit.at_least * scale + 1e-9) if scale else limit.at_least)


def audit(files: Mapping[str, Sequence[Case]], permutations: int = PERMUTATIONS, thresholds: Path = THRESHOLDS) -> Report:
    """Audit valid labelled files.

    Args:
        files: the cases of each split, by its name.
        permutations: shuffled labellings behind every p-value.
        thresholds: the file of limits.

    Raises:
        Unable: the file of limits can't be used.
    """
    cases = audit_cases(files)
    profile = "expanded" if any(contrast_family(case.id) for case in cases) else "v0.2"
    limits = read_limits(thresholds, profile)
    outcomes = {name: outcome for name in TARGETS if (outcome := run_probes(cases, name, permutations))}
    places = position(cases)
    if by_family := lost_index_by_family(cases, permutations):
        places = places._replace(measures=(*places.measures, by_family))
    sections = [coverage(cases), places, length(cases), lengths(cases, permutations), partial_inputs(outcomes), words(cases), twins(cases)]
    reached = floors(files)
    if reached:
        sections.append(Section("Floors", (_floors_grid(reached),), ()))
    measures = [measure for section in sections for measure in section.measures]
    sizes = {split: len(part) for split, part in scopes(cases).items()}
    return Report(profile, sizes, permutations, sections, outcomes, reached, judge(measures, limits, sizes))


# ---------------------------------------------------------------- floors
def floors(files: Mapping[str, Sequence[Case]]) -> list[Floor]:
    """Return the leaderboard's floors and, beside them, the best classifier that sees a part of the input.

    The classifier learns from all splits but test and is chosen by its score on test itself: as a floor
    it is high rather than low. Without train and test there are no floors.
    """
    if not {"train", "test"} <= set(files):
        return []
    test = files["test"]
    known = audit_cases({split: cases for split, cases in files.items() if split != "test"})
    asked = audit_cases({"test": test})
    gold = [case.gold for case in test]
    reached = []
    for probe in probes(PARTIAL_VIEWS):
        states = zip(asked, probe_states(probe, known, asked), strict=True)
        report = score(gold, {case.id: Prediction(case.id, state) for case, state in states}, table=False)
        scores = {**report["leaderboard_a_component_capability"], **report["leaderboard_b_complete_reasoning_state"]}
        reached.append(Floor(f"best partial input: {probe.name}", {name: scores[name] for name in _FLOOR_COLUMNS}))
    best = max(reached, key=lambda floor: [floor.scores[name] or 0.0 for name in ("component_mean", "complete_primary_accuracy")])
    return [*(Floor(row.name, row.scores) for row in baseline_floors(files["train"], test)), best]


_FLOOR_COLUMNS = ("component_mean", *COMPONENTS, "complete_primary_accuracy")


def _floors_grid(rows: Sequence[Floor]) -> Grid:
    cells = tuple((floor.name, *(floor.scores[name] for name in _FLOOR_COLUMNS)) for floor in rows)
    return Grid("scores on test of systems that do not reason", ("system", *(name.replace("_", " ") for name in _FLOOR_COLUMNS)), cells)


def probe_states(probe: Probe, train: Sequence[AuditCase], test: Sequence[AuditCase]) -> list[State]:
    """Return complete, allowed states that a probe predicts for `test` after learning each target from `train`."""
    every = see(probe, [*train, *test])
    asked = np.arange(len(train), len(train) + len(test))
    ranked: dict[str, list[list[str]]] = {}
    for name, target in TARGETS.items():
        held = [(place, label) for place, case in enumerate(train) if (label := target.of(case)) is not None]
        classes = sorted({label for _, label in held})
        labels = np.array([[classes.index(label) for _, label in held]])
        values = outputs(smoother(*kernels(every, np.array([place for place, _ in held]), asked)), labels, len(classes))[:, 0]
        ranked[name] = [[classes[k] for k in np.argsort(-row, kind="stable")] for row in values]
    return [_allowed({name: rows[place] for name, rows in ranked.items()}, case) for place, case in enumerate(test)]


def _allowed(ranked: Mapping[str, Sequence[str]], case: AuditCase) -> State:
    outcome = ranked["outcome_mode"][0]
    repairs = {row.repair_outcome for row in STATE_TABLE if row.outcome_mode == outcome}
    repair = next((label for label in ranked["repair_outcome"] if label in repairs), min(repairs))
    middle = (2 * THIRDS.index(ranked["onset_third"][0]) + 1) / 6
    return fitted(State(outcome, math.ceil(case.steps * middle), ranked["mechanism_family"][0], repair, int(ranked["residual_index"][0])), case.scenario)


# ---------------------------------------------------------------- what is shown
def shown(value: Any) -> str:
    """Return a cell as people read it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= 0.0005 or value == 0 else f"{value:.0e}"
    return str(value)


def _verdict(report: Report) -> str:
    failed = sum(not check.passed for check in report.checks)
    return f"{len(report.checks)} checks of the profile {report.profile}: {'all pass' if not failed else f'{failed} fail'}"


def _heading(report: Report) -> str:
    splits = ", ".join(f"{split} {rows}" for split, rows in report.files.items() if split != TOGETHER)
    n = report.files[TOGETHER]
    return f"Audit of {n} rows ({splits}); {report.permutations} shuffled labellings; {_width(n)}"


def _width(n: int) -> str:
    """Say what a band of shuffled labels is worth at this n."""
    return (
        f"at n = {n} the bands of shuffled labels are wide: a weak shortcut stays inside them unseen"
        if n < 200
        else f"n = {n}: a shortcut that lifts macro-F1 by a tenth lies outside the bands"
    )


def _rows_text(rows: Sequence[str]) -> str:
    more = len(rows) - _SHOWN_ROWS
    return ", ".join(rows[:_SHOWN_ROWS]) + (f" and {more} more" if more > 0 else "")


def text_report(report: Report) -> str:
    """Return the audit for a terminal, the verdict last."""
    lines = [_heading(report)]
    for section in report.sections:
        lines += ["", section.title.upper()]
        for grid in section.grids:
            lines += ["", f"  {grid.title}", *_text_grid(grid)]
            if grid.note:
                lines.append(f"  {grid.note}")
    lines += ["", "VERDICT", ""]
    for check in report.checks:
        lines.append(
            f"  {'pass' if check.passed else 'FAIL'}  {check.name} [{check.scope}]: {shown(check.value)}, {check.limit}"
            + (f" ({check.detail})" if check.detail else "")
        )
        if not check.passed:
            lines.append(f"        {check.meaning}" + (f" Rows: {_rows_text(check.rows)}" if check.rows else ""))
    return "\n".join([*lines, "", _verdict(report)])


def _text_grid(grid: Grid) -> Iterator[str]:
    cells = [grid.columns, *(tuple(map(shown, row)) for row in grid.rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(grid.columns))]
    for row in cells:
        yield "    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def json_report(report: Report) -> dict[str, Any]:
    """Return the audit as plain Python that JSON takes."""
    return {
        "profile": report.profile,
        "rows": report.files,
        "permutations": report.permutations,
        "passed": report.passed,
        "checks": [check._asdict() for check in report.checks],
        "sections": [
            {
                "title": section.title,
                "tables": [grid._asdict() for grid in section.grids],
                "measures": [measure._asdict() for measure in section.measures],
            }
            for section in report.sections
        ],
    }


_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --bad: #b3261e; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7ddc9a; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2.5rem; font-size: 1.2rem; border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } 
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--soft); }
th { font-weight: 600; } td.number, th.number { text-align: right; } .scroll { overflow-x: auto; } p { max-width: 60rem; }
.limit { white-space: nowrap; } .bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); } .rows { font-size: .85em; opacity: .8; }
@media print { body { max-width: none; margin: 0; } h2 { break-after: avoid; } table { break-inside: avoid; } }
"""


def html_report(report: Report) -> str:
    """Return the audit as one self-contained page."""
    checks = "".join(map(_html_check, sorted(report.checks, key=lambda check: check.passed)))
    head = "<tr><th></th><th>what it says</th><th>check</th><th>on</th><th class=number>value</th><th>limit</th></tr>"
    sections = "".join(f"<h2>{_escaped(section.title)}</h2>{''.join(map(_html_grid, section.grids))}" for section in report.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Audit</title>'
        f"<style>{_STYLE}</style></head><body><h1>Audit</h1><p>{_escaped(_heading(report))}.</p>"
        f"<h2>Verdict</h2><p class={'good' if report.passed else 'bad'}>{_escaped(_verdict(report))}</p><div class=scroll><table>{head}{checks}</table></div>"
        f"{sections}</body></html>\n"
    )


def _html_check(check: Check) -> str:
    kind = "good" if check.passed else "bad"
    rows = "" if check.passed or not check.rows else f"<br>rows: {_escaped(_rows_text(check.rows))}"
    cells = "".join(f"<td>{_escaped(text)}</td>" for text in (check.name, check.scope))
    return (
        f"<tr><td class={kind}>{'pass' if check.passed else 'fail'}</td><td>{_escaped(check.meaning)}<div class=rows>{_escaped(check.detail)}{rows}</div></td>"
        f"{cells}<td class=number>{_escaped(shown(check.value))}</td><td class=limit>{_escaped(check.limit)}</td></tr>"
    )


def _html_grid(grid: Grid) -> str:
    numeric = [all(row[k] is None or isinstance(row[k], int | float) for row in grid.rows) for k in range(len(grid.columns))]
    kinds = [" class=number" if number else "" for number in numeric]
    head = "".join(f"<th{kind}>{_escaped(column)}</th>" for kind, column in zip(kinds, grid.columns, strict=True))
    rows = "".join(f"<tr>{''.join(f'<td{kind}>{_escaped(shown(cell))}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>" for row in grid.rows)
    note = f"<p>{_escaped(grid.note)}</p>" if grid.note else ""
    return f"<h3>{_escaped(grid.title)}</h3><div class=scroll><table><tr>{head}</tr>{rows}</table></div>{note}"


def _escaped(text: str) -> str:
    return html.escape(text)


# ---------------------------------------------------------------- for the card
def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, a line feed at the end."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, ["---"] * len(columns), *rows))


def main_table(report: Report) -> str:
    """Return the audit's main table as Markdown: what a classifier tells that sees a part of the input.

    Each cell holds the macro-F1 of the better reading of the part and, in brackets, how far 95 % of shuffled
    labels reach under the same reading; in bold where it is beyond chance, allowing for all the parts that were tried.
    """
    views = list(dict.fromkeys(result.probe.view for outcome in report.outcomes.values() for result in outcome.results))
    rows = []
    for view in views:
        cells = []
        for outcome in report.outcomes.values():
            held = [result for result in outcome.results if result.probe.view == view]
            cells.append(_cell(min(held, key=lambda result: result.p)) if held else "")
        rows.append([view, *cells])
    return markdown_table(["sees only", *(f"{TARGETS[name].title} (n = {outcome.rows})" for name, outcome in report.outcomes.items())], rows)


def _cell(result: Result) -> str:
    text = f"{result.score:.2f} ({result.edge:.2f})"
    return f"**{text}**" if result.corrected is not None and result.corrected < 0.05 else text


def floors_table(rows: Sequence[Floor]) -> str:
    """Return the floors as Markdown, with an empty row for the scores of models."""
    lines = [[floor.name, *(_number(floor.scores[name]) for name in _FLOOR_COLUMNS)] for floor in rows]
    models = ["models: none reported yet", *[""] * len(_FLOOR_COLUMNS)]
    return markdown_table(["system", *(name.replace("_", " ") for name in _FLOOR_COLUMNS)], [*lines, models])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


# ---------------------------------------------------------------- the command
def read_files(names: Sequence[str]) -> tuple[dict[str, list[Case]], list[Any]]:
    """Return the cases of labelled files by split name (the file's name without its ending), and all problems.

    Raises:
        Unable: two files have the same name.
    """
    files: dict[str, list[Case]] = {}
    problems: list[Any] = []
    for name in names:
        path = existing_file(name)
        if path.stem in files:
            raise Unable(f"two files are called {path.stem}")
        files[path.stem], found = read_cases(path, name)
        problems += found
    return files, problems + overlap_problems({f"{split}.csv": [(case.row, case.scenario) for case in cases] for split, cases in files.items()})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="labelled files, one for each split")
    parser.add_argument("--format", choices=("text", "json", "html"), default="text", help="how the audit is shown (default: text)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it to FILE instead of printing it (the verdict is printed)")
    parser.add_argument(
        "--permutations", type=int, default=PERMUTATIONS, metavar="N", help=f"shuffled labellings (default: {PERMUTATIONS}, at least {FEWEST_PERMUTATIONS})"
    )
    return parser


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text_report,
    "html": html_report,
    "json": lambda report: json.dumps(json_report(report), indent=2, ensure_ascii=True, allow_nan=False),
}
"""Ways to show an audit."""


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.permutations < FEWEST_PERMUTATIONS:
        parser.error(f"--permutations has to be {FEWEST_PERMUTATIONS} or more")
    if arguments.output is not None:
        check_output(arguments.output, *map(existing_file, arguments.files))
    files, problems = read_files(arguments.files)
    if problems:
        return print_findings(problems)
    report = audit(files, arguments.permutations)
    text = FORMATS[arguments.format](report)
    if arguments.output is None:
        print(text)
    else:
        write_whole(arguments.output, text if text.endswith("\n") else text + "\n")
        print(_verdict(report))
        for check in report.checks:
            if not check.passed:
                print(f"FAIL  {check.name} [{check.scope}]: {shown(check.value)}, {check.limit}. Rows: {_rows_text(check.rows)}")
    return VALID if report.passed else FINDINGS


if __name__ == "__main__":
    run(main)

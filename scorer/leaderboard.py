#!/usr/bin/env python3
"""Turn score reports into the two leaderboards, which are never one ranking.

Reports are comparable where gold labels and scorer version are the same; the largest set of comparable
reports is ranked, and the others are named with the reason. Where a report holds its table of cases, its
scores are computed anew from it. Exit status: 0 written, 1 a file is no score report, 2 the command could
not do its work.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baseline.baseline import NO_DRIFT, Strategy, constant_step, heuristic, majority, random_states
from rdod_metric.rules import BENCHMARK_NAME, TARGETS, UNKNOWN, VOCABULARIES, Gold, Prediction, Problem, attempt, parse_fraction, parse_targets, shown
from rdod_metric.scoring import (
    AGGREGATES,
    ALPHA,
    COMPONENTS,
    LABEL_FIELDS,
    LEVEL,
    SCORER_VERSION,
    Resampling,
    interval_report,
    labels_sha256,
    resolution_floor,
    score,
    wilson_interval,
)
from rdod_metric.tables import Case, read_cases
from scorer.command import ROOT, VALID, check_output, existing_file, print_findings, run, write_whole
from scorer.compare import RANKING, compare, distinct_names, new_system, ties
from scorer.layout import Block, as_html, as_markdown, as_text, printable
from scorer.score import bounds
from scorer.score import shown as decimal

A, B = "leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state"
"""Sections of the two leaderboards, in reports and here."""

TITLES = {
    A: "Leaderboard A: component capability (can it identify the parts?)",
    B: "Leaderboard B: complete reasoning state (can it reconstruct the whole?)",
}
"""What the two tables ask."""

RELEASES = ("data", "data/expanded")
"""Folders of the repository's releases."""

FLOOR = "floor"
"""Stands in the place of a rank where a row is no system but something to measure systems against."""

_TOLERANCE = 1e-9  # scores are sums of at most millions of floats


class Report(NamedTuple):
    """A score report, or a floor, as far as a leaderboard needs it.

    Attributes:
        name: how the leaderboard calls the system.
        benchmark: name of the release.
        key: hash of the gold labels and version of the scorer, '' where the report doesn't say.
        n: number of cases.
        invalid: answers that count as wrong on every target.
        scores: the aggregates of both leaderboards; None where undefined.
        intervals: bootstrap intervals of its aggregates.
        support: class support.
        answers: gold, in the order of ids, and predictions; None where the report holds no table of cases.
    """

    name: str
    benchmark: str
    key: tuple[str, str]
    n: int
    invalid: int
    scores: dict[str, float | None]
    intervals: dict[str, dict[str, Any]]
    support: dict[str, dict[str, int]]
    answers: tuple[list[Gold], dict[str, Prediction]] | None
    floor: bool = False


# ---------------------------------------------------------------- reading reports
def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_share(value: object) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= 1)  # type: ignore[operator]


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_interval(value: object) -> bool:
    return isinstance(value, dict) and all(bound in value and (value[bound] is None or _is_number(value[bound])) for bound in ("low", "high"))


def _is_support(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(field), dict) and all(_is_count(value[field].get(label)) for label in VOCABULARIES[field]) for field in LABEL_FIELDS
    )


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word}, which is not JSON")


def read_report(path: Path, name: str) -> tuple[Report | None, list[Problem]]:
    """Return the report in a file, or None with everything that keeps it from being one."""
    problems: list[Problem] = []

    def add(code: str, column: str, found: str, expected: str, line: int | None = None) -> None:
        problems.append(Problem(code, column, found, expected, file=str(path), line=line))

    try:
        report = json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        add("invalid-json", "file", str(error) or "JSON nested beyond any report", "a JSON report of scorer/score.py", getattr(error, "lineno", None))
        return None, problems

    def field(section: str, key: str, holds: Callable[[object], bool], expected: str, default: Any = UNKNOWN) -> Any:
        inside = report.get(section) if isinstance(report, dict) else None
        value = inside.get(key, default) if isinstance(inside, dict) else UNKNOWN
        if not holds(value):
            add("invalid-report", f"{section}.{key}", "nothing" if value is UNKNOWN else shown(value), expected)
        return value

    benchmark = field("benchmark", "name", lambda value: isinstance(value, str), "a text")
    share = "a number from 0 to 1, or null"
    n = field("benchmark", "n", lambda value: _is_count(value) and value != 0, "a number of cases")
    invalid = field("benchmark", "invalid_predictions", _is_count, "a number of answers", 0)
    key = tuple(field("benchmark", part, _is_text, "a text", None) or "" for part in ("gold_labels_sha256", "scorer_version"))
    scores = {metric: field(A, metric, _is_share, share) for metric in ("component_mean", *COMPONENTS)}
    scores["complete_primary_accuracy"] = field(B, "complete_primary_accuracy", _is_share, share)
    if not isinstance(report, dict):
        return None, problems
    stated = report.get("resampling")
    intervals = report.get("intervals", {}) if isinstance(stated, dict) and stated.get("level") == LEVEL else {}
    if not isinstance(intervals, dict) or not all(map(_is_interval, intervals.values())):
        add("invalid-report", "intervals", shown(intervals), "an object of intervals, each with low and high")
    if not _is_support(report.get("class_support")):
        add("invalid-report", "class_support", shown(report.get("class_support")), "a count for every class of outcome, family and repair")
    table = report.get("prediction_table", [])
    if not isinstance(table, list) or not all(isinstance(row, dict) and isinstance(row.get("scenario_id"), str) for row in table):
        add("invalid-report", "prediction_table", shown(table), "an array of cases, each with its scenario_id")
    elif not problems and table:
        answers = _answers(table, problems)
        problems = [problem._replace(file=str(path)) for problem in problems]
    if problems:
        return None, problems
    return Report(name, benchmark, (key[0], key[1]), n, invalid, scores, intervals, report["class_support"], answers if table else None), []


def _answers(table: Sequence[Mapping[str, Any]], problems: list[Problem]) -> tuple[list[Gold], dict[str, Prediction]]:
    """Return gold, in the order of ids, and predictions of a report's table of cases, noting what is wrong."""
    gold: list[Gold] = []
    predictions: dict[str, Prediction] = {}
    for row in sorted(table, key=lambda row: str(row["scenario_id"])):
        scenario_id = row["scenario_id"]
        truth, found = parse_targets([row.get(f"gold_{target}") for target in TARGETS], None, None)
        values = [row.get(f"predicted_{target}") for target in TARGETS]
        state, more = (None, ()) if all(value is None for value in values) else parse_targets(values, None, None)
        faults = [problem._replace(column=problem.column.replace("predicted_", "gold_")) for problem in found] + list(more)
        confidence = attempt(faults, parse_fraction, row.get("confidence"), "confidence")
        if scenario_id in predictions:
            faults.append(Problem("duplicate-scenario", "scenario_id", f"{shown(scenario_id)} again", "every scenario once"))
        problems += [problem._replace(column=f"prediction_table.{problem.column}", scenario_id=scenario_id) for problem in faults]
        if truth is not None:
            gold.append(Gold(scenario_id, truth))
        predictions[scenario_id] = Prediction(scenario_id, state, confidence)
    return gold, predictions


# ---------------------------------------------------------------- which reports compare
def rescored(report: Report) -> tuple[Report, str]:
    """Return a report with intervals computed from its table of cases, and what contradicts that table, or ''.

    A report of another scorer version is left as it is, without its table: this one can't judge it.
    """
    if report.answers is None or report.key[1] != SCORER_VERSION:
        return report._replace(answers=None), ""
    gold, predictions = report.answers
    if len(gold) != report.n or labels_sha256(gold) != report.key[0]:
        return report, "its table of cases is not of the gold labels that it names"
    again = score(gold, predictions, table=False, resampling=Resampling())
    values = {**again[A], **again[B]}
    wrong = [name for name, value in report.scores.items() if value is not None and abs(value - values[name]) > _TOLERANCE]
    wrong += ["invalid_predictions"] * (again["benchmark"]["invalid_predictions"] != report.invalid)
    wrong += ["class_support"] * (again["class_support"] != report.support)
    return report._replace(intervals=again["intervals"]), f"its table of cases gives another {', '.join(wrong)} than it states" if wrong else ""


def comparable(reports: Sequence[Report], official: Collection[str]) -> tuple[list[Report], dict[str, str]]:
    """Return the largest set of reports on the same labels by the same scorer, and for each of the others why it is left out.

    Of sets of one size one on labels whose hash is `official` is taken, then one of this scorer.
    """
    left_out: dict[str, str] = {}
    sound: list[Report] = []
    for report in reports:
        again, fault = rescored(report)
        if not all(report.key):
            fault = "it doesn't name the gold labels and the scorer version that it was made with"
        if fault:
            left_out[report.name] = fault
        else:
            sound.append(again)
    sizes = Counter(report.key for report in sound)
    key = max(sizes, key=lambda key: (sizes[key], key[0] in official, key[1] == SCORER_VERSION, key), default=("", ""))
    for report in sound:
        reasons = []
        if report.key[0] != key[0]:
            reasons.append(f"other gold labels ({report.key[0][:12]}, not {key[0][:12]})")
        if report.key[1] != key[1]:
            reasons.append(f"another scorer version ({report.key[1]}, not {key[1]})")
        if reasons:
            left_out[report.name] = " and ".join(reasons)
    return [report for report in sound if report.key == key], left_out


RANDOM_DRAWS = 200
"""Seeds over which the random floor is averaged: one draw on few cases may be a lucky one."""


def floors(train: Sequence[Case], test: Sequence[Case]) -> list[Report]:
    """Return what the baseline's floors score on the test cases.

    The random floor is the mean over `RANDOM_DRAWS` seeds, its intervals hold the middle of them.
    """
    onsets = Counter(case.gold.state.first_drift_step for case in train if case.gold.state.first_drift_step is not None)
    step = min(onsets, key=lambda step: (-onsets[step], step))  # the best constant that train knows of
    strategies: dict[str, Strategy] = {
        "majority": majority([case.gold for case in train]),
        "constant: no drift": lambda scenario: Prediction(scenario.scenario_id, NO_DRIFT, 0.0),
        f"constant: step {step}": constant_step(step),
        "heuristic": heuristic,
    }
    gold = [case.gold for case in test]

    def scored(answer: Strategy, resampling: Resampling | None = None) -> dict[str, Any]:
        return score(gold, {case.scenario.scenario_id: answer(case.scenario) for case in test}, table=False, resampling=resampling)

    rows = []
    for name, answer in strategies.items():
        report = scored(answer, Resampling())
        key = report["benchmark"]["gold_labels_sha256"], SCORER_VERSION
        rows.append(
            Report(
                name, report["benchmark"]["name"], key, len(gold), 0, {**report[A], **report[B]}, report["intervals"], report["class_support"], None, floor=True
            )
        )
    draws = [scored(random_states(seed)) for seed in range(RANDOM_DRAWS)]
    values = {name: np.array([{**draw[A], **draw[B]}[name] for draw in draws]) for name in ("component_mean", *COMPONENTS, "complete_primary_accuracy")}
    means: dict[str, float | None] = {name: float(drawn.mean()) for name, drawn in values.items()}
    spread = {name: interval_report(drawn, LEVEL) for name, drawn in values.items()}
    return [*rows, rows[0]._replace(name="random", scores=means, intervals=spread)]


def release_floors(folder: str = RELEASES[0]) -> list[Report]:
    """Return the floors on the test split of one of this repository's releases; none where its files can't be read."""
    try:
        splits = [read_cases(ROOT / folder / f"{split}.csv") for split in ("train", "test")]
    except OSError:
        return []
    return [] if any(problems for _, problems in splits) else floors(*(cases for cases, _ in splits))


# ---------------------------------------------------------------- the tables
def _letters(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the label of its group for each name: a, b, ... z, aa, ab, ..."""

    def label(place: int) -> str:
        return (label(place // 26 - 1) if place >= 26 else "") + "abcdefghijklmnopqrstuvwxyz"[place % 26]

    return {name: label(place) for place, group in enumerate(groups) for name in group}


def tie_letters(reports: Sequence[Report]) -> dict[str, dict[str, str]]:
    """Return the label of its tie group for each report with a table of cases, under each ranking metric."""
    tabled = [(report.name, *report.answers) for report in reports if report.answers is not None]
    if len(tabled) < 2:
        return {metric: {} for metric in RANKING}
    gold = tabled[0][1]
    systems = [new_system(name, gold, predictions) for name, _, predictions in tabled]
    return {metric: _letters(groups) for metric, groups in ties(systems, compare(systems, gold, Resampling()), ALPHA).items()}


def ranked(rows: Sequence[Report], metric: str) -> list[tuple[int | None, Report]]:
    """Return the rows in the order of a metric, each with its rank: shared by equal scores, last where undefined, None for floors."""

    def height(row: Report) -> tuple[bool, float]:
        value = row.scores[metric]
        return value is None, -round(value or 0, 12)  # means of the same numbers in another order may differ in the last digit

    order = sorted(rows, key=lambda row: (height(row), row.floor, row.name))
    systems = [height(row) for row in order if not row.floor]
    return [(None if row.floor else 1 + systems.index(height(row)), row) for row in order]


def leaderboard(reports: Sequence[Report]) -> dict[str, Any]:
    """Return both leaderboards of reports as plain values: the same for every order of the reports."""
    known = [row for folder in RELEASES for row in release_floors(folder)]
    chosen, left_out = comparable(sorted(reports, key=lambda report: report.name), {row.key[0] for row in known})
    labels, version = chosen[0].key if chosen else known[0].key if known else ("", SCORER_VERSION)
    beside = [row for row in known if row.key == (labels, version)]
    rows = [*chosen, *beside]
    letters = tie_letters(chosen)
    board: dict[str, Any] = {
        "benchmark": {"name": BENCHMARK_NAME, "n": 0, "scorer_version": version, "gold_labels_sha256": labels},
        "resampling": Resampling()._asdict(),
        "class_support": {},
        "floors_available": bool(beside),
        "unverified": [report.name for report in chosen if report.answers is None],
        "not_comparable": [{"system": name, "reason": left_out[name]} for name in sorted(left_out)],
    }
    if rows:
        board["benchmark"] |= {"name": printable(rows[0].benchmark), "n": rows[0].n}
        board["class_support"] = next((row.support for row in rows if row.answers is not None), rows[-1].support)
        board["resolution_floor"] = resolution_floor(rows[0].n)
    for section, metric in zip((A, B), RANKING, strict=True):
        entries = [_entry(rank, row, None if row.floor else letters[metric].get(row.name)) for rank, row in ranked(rows, metric)]
        board[section] = {"primary_ranking_metric": metric, "rows": entries}
    return board


def _entry(rank: int | None, row: Report, group: str | None) -> dict[str, Any]:
    complete = row.scores["complete_primary_accuracy"]
    return {
        "rank": rank,
        "system": row.name,
        "floor": row.floor,
        "tie_group": group,
        **{name: row.scores[name] for name in (*RANKING, *COMPONENTS)},
        "n": row.n,
        "invalid_predictions": row.invalid,
        "intervals": {name: row.intervals[name] for name in AGGREGATES if name in row.intervals},
        "wilson_interval": None if complete is None else wilson_interval(complete, row.n)._asdict(),
    }


def _cells(entry: Mapping[str, Any], metric: str, other: str) -> list[str]:
    rank = FLOOR if entry["floor"] else str(entry["rank"])
    interval = bounds(entry["intervals"].get(metric)).strip() or "-"
    wilson = [bounds(entry["wilson_interval"]).strip() or "-"] if metric == "complete_primary_accuracy" else []
    scores = [decimal(entry[name]) for name in (*COMPONENTS, other)]
    return [
        rank,
        entry["system"],
        entry["tie_group"] or "-",
        decimal(entry[metric]),
        interval,
        *wilson,
        *scores,
        str(entry["n"]),
        str(entry["invalid_predictions"]),
    ]


def blocks(board: Mapping[str, Any]) -> list[Block]:
    """Return the leaderboards as tables for a person's eye."""
    benchmark, drawn = board["benchmark"], board["resampling"]
    support = [f"Support of {field}: " + ", ".join(f"{label} {count}" for label, count in counts.items()) for field, counts in board["class_support"].items()]
    head = [
        f"Gold labels {benchmark['gold_labels_sha256'][:12]}, scorer {benchmark['scorer_version']}, n = {benchmark['n']} cases. "
        "Two leaderboards, never one ranking.",
        f"Equal scores share a rank. Systems that share a tie group can't all be told apart at the {ALPHA:.0%} level after Holm's correction: "
        "by a paired bootstrap of the component mean, by exact McNemar tests of complete primary correctness.",
        f"Intervals: {drawn['level']:.0%}, percentile bootstrap ({drawn['resamples']:,} resamples, seed {drawn['seed']}).",
    ]
    if "resolution_floor" in board:
        head.append(board["resolution_floor"]["meaning"])
    if board["floors_available"]:
        head.append(f"Floors have no rank. The random one is the mean over {RANDOM_DRAWS} seeds, and its interval holds the middle {LEVEL:.0%} of them.")
    else:
        head.append("The floors (majority, random, constant, heuristic) are not available: this gold is no test split of the repository.")
    if board["unverified"]:
        head.append("Without a table of cases, so that the scores could not be computed anew: " + ", ".join(board["unverified"]) + ".")
    found = [Block(benchmark["name"], notes=head)]
    for section, metric, other in ((A, *RANKING), (B, *reversed(RANKING))):
        wilson = ["Wilson interval"] if metric == "complete_primary_accuracy" else []
        columns = ["rank", "system", "ties", metric, "interval", *wilson, *COMPONENTS, other, "n", "invalid"]
        found.append(Block(TITLES[section], columns, [_cells(entry, metric, other) for entry in board[section]["rows"]], support))
    if board["not_comparable"]:
        found.append(Block("Not comparable", ("system", "reason"), [[row["system"], row["reason"]] for row in board["not_comparable"]]))
    return found


# ---------------------------------------------------------------- the command
def _json_text(board: Mapping[str, Any]) -> str:
    return json.dumps(board, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


_FORMATS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ".md": lambda board: as_markdown(blocks(board)),
    ".html": lambda board: as_html(blocks(board)),
    ".json": _json_text,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", metavar="REPORT.json", help="JSON reports of scorer/score.py; a file's name is the system's")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"also write the leaderboards to FILE; its ending says how: {', '.join(_FORMATS)}")
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    paths = [existing_file(name) for name in arguments.reports]
    if arguments.output is not None:
        if arguments.output.suffix not in _FORMATS:
            parser.error(f"--output is a file that ends in {', '.join(_FORMATS)}")
        check_output(arguments.output, *paths)
    reports: list[Report] = []
    problems: list[Problem] = []
    for name, path in zip(distinct_names(paths), paths, strict=True):
        report, found = read_report(path, name)
        problems += found
        if report is not None:
            reports.append(report)
    if problems:
        return print_findings(problems)
    board = leaderboard(reports)
    if arguments.output is not None:
        write_whole(arguments.output, _FORMATS[arguments.output.suffix](board))
    print(as_text(blocks(board)), end="")
    return VALID


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Compare prediction files for the same labelled file: which differences are more than chance.

For each pair of systems it prints the differences of every aggregate with paired bootstrap intervals,
exact McNemar tests of complete primary correctness and of each target, and the cases that one of the
two alone has right. Systems that the tests can't tell apart share a tie group. Exit status: 0 compared,
1 findings, 2 the command could not do its work.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import TARGETS, Gold, Prediction, Problem
from rdod_metric.scoring import (
    AGGREGATES,
    COMPONENTS,
    SCORER_VERSION,
    Answers,
    Floats,
    Resampling,
    Watch,
    aggregate,
    benchmark_name,
    encode,
    interval_report,
    labels_sha256,
    resample,
    resampling_report,
    resampling_units,
    resolution_floor,
    signature,
    total_counts,
    unit_counts,
)
from rdod_metric.tables import file_sha256, read_gold, read_predictions
from scorer.command import VALID, Unable, existing_file, finding_line, print_findings, run
from scorer.layout import Block, as_markdown, as_text, printable
from scorer.score import add_resampling_options, bounds, chosen_resampling, progress, shown

COMPLETE = "complete_primary"
"""How the tests call correctness on all five targets at once."""

RANKING = ("component_mean", "complete_primary_accuracy")
"""The ranking metrics of the two leaderboards: each orders the systems and groups their ties."""

_IDS_SHOWN = 20  # discordant cases named in the text; JSON names all


class System(NamedTuple):
    """A system under comparison: its name, its answers and its scores."""

    name: str
    answers: Answers
    scores: dict[str, float]


class Comparison(NamedTuple):
    """Two systems on the same cases.

    Attributes:
        differences: for each aggregate, resampled values of the first system's score less the second's.
        first_only: for `complete_primary` and each target, which cases the first system alone has right.
        second_only: the same for the second system.
        mean_p: bootstrap p-value of the difference in component mean.
        p_values: exact McNemar p-values, by the keys of `first_only`.
    """

    first: System
    second: System
    differences: dict[str, Floats]
    first_only: dict[str, npt.NDArray[np.bool_]]
    second_only: dict[str, npt.NDArray[np.bool_]]
    mean_p: float
    p_values: dict[str, float]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return a name for every file: its stem, with as many folders before it as tell it from the others.

    Raises:
        Unable: a file is given twice.
    """
    parts = [path.resolve().with_suffix("").parts for path in paths]
    if twice := next((path for path, own in zip(paths, parts, strict=True) if parts.count(own) > 1), None):
        raise Unable(f"{twice} is given more than once")
    names = []
    for own in parts:
        depth = next(depth for depth in range(1, len(own) + 1) if sum(other[-depth:] == own[-depth:] for other in parts) == 1)
        names.append(printable("/".join(own[-depth:])))
    return names


# ---------------------------------------------------------------- tests
def mcnemar_p(first_only: int, second_only: int) -> float:
    """Return the two-sided p-value of the exact McNemar test: a fair coin for each case that one system alone has right.

    >>> mcnemar_p(6, 0)
    0.03125
    """
    if first_only == second_only:
        return 1.0
    from scipy.stats import binomtest  # half a second to import, and most commands don't test

    return float(binomtest(first_only, first_only + second_only).pvalue)


def bootstrap_p(differences: Floats) -> float:
    """Return the two-sided p-value of a difference of 0 under paired resampling: 1 less the level at which its interval reaches 0.

    Both tails count one resample more than they hold, so that the value is never 0.
    """
    defined = differences[~np.isnan(differences)]
    tail = min((defined <= 0).sum(), (defined >= 0).sum())
    return min(1.0, float(2 * (tail + 1) / (len(defined) + 1)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by the method of Holm (1979), in the same order.

    >>> holm([0.25, 0.015625])
    [0.25, 0.03125]
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def tie_groups(scores: Sequence[float | None], different: Callable[[int, int], bool]) -> list[list[int]]:
    """Group systems so that each of a group differs significantly from each of every other group.

    Args:
        scores: the systems' scores; they are sorted by them, an undefined one last.
        different: whether the systems in two places of `scores` differ significantly.

    Returns:
        The places of the systems, the best group and within each the best system first.
    """
    order = sorted(range(len(scores)), key=lambda place: _falling(scores[place]))
    groups: list[list[int]] = []
    for k, place in enumerate(order):
        apart = all(different(better, worse) for better in order[:k] for worse in order[k:])
        if k == 0 or apart:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _falling(score: float | None) -> tuple[bool, float]:
    return score is None, -(score or 0)


def correct_cases(answers: Answers) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which cases are right, on all five targets at once and on each."""
    correct = answers.gold == answers.predicted
    return {COMPLETE: correct.all(axis=1), **{target: correct[:, k] for k, target in enumerate(TARGETS)}}


def compare(systems: Sequence[System], gold: Sequence[Gold], resampling: Resampling, watch: Watch = iter) -> list[Comparison]:
    """Compare every pair of systems on the gold that all of them answer, in the systems' order."""
    units, number = resampling_units(gold)
    resampled = resample([unit_counts(system.answers, units, number) for system in systems], resampling, watch)
    correct = [correct_cases(system.answers) for system in systems]
    comparisons = []
    for a, b in itertools.combinations(range(len(systems)), 2):
        differences = {name: resampled[a][name] - resampled[b][name] for name in AGGREGATES}
        first_only = {test: correct[a][test] & ~correct[b][test] for test in correct[a]}
        second_only = {test: correct[b][test] & ~correct[a][test] for test in correct[a]}
        p_values = {test: mcnemar_p(int(first_only[test].sum()), int(second_only[test].sum())) for test in first_only}
        comparisons.append(Comparison(systems[a], systems[b], differences, first_only, second_only, bootstrap_p(differences["component_mean"]), p_values))
    return comparisons


def ties(systems: Sequence[System], comparisons: Sequence[Comparison], alpha: float) -> dict[str, list[list[str]]]:
    """Return the tie groups of the systems' names under each ranking metric, after Holm's correction over all pairs."""
    pairs = list(itertools.combinations(range(len(systems)), 2))
    p_values = {
        "component_mean": holm([pair.mean_p for pair in comparisons]),
        "complete_primary_accuracy": holm([pair.p_values[COMPLETE] for pair in comparisons]),
    }
    groups = {}
    for metric in RANKING:
        adjusted = dict(zip(pairs, p_values[metric], strict=True))
        found = tie_groups([system.scores[metric] for system in systems], lambda a, b, adjusted=adjusted: adjusted[min(a, b), max(a, b)] <= alpha)  # type: ignore[misc]
        groups[metric] = [[systems[place].name for place in group] for group in found]
    return groups


def new_system(name: str, gold: Sequence[Gold], predictions: Mapping[str, Prediction]) -> System:
    """Encode and score a system's answers."""
    answers = encode(gold, predictions)
    return System(name, answers, {metric: float(score) for metric, score in aggregate(total_counts(answers)).items()})


# ---------------------------------------------------------------- the report
def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def comparison_report(systems: Sequence[System], gold: Sequence[Gold], comparisons: Sequence[Comparison], resampling: Resampling) -> dict[str, Any]:
    """Return the comparison as plain values that `json.dumps(..., allow_nan=False)` takes."""
    ids = [case.scenario_id for case in gold]
    alpha = round(1 - resampling.level, 12)
    adjusted = {test: holm([pair.p_values[test] for pair in comparisons]) for test in comparisons[0].p_values}
    means = holm([pair.mean_p for pair in comparisons])
    pairs = []
    for place, pair in enumerate(comparisons):
        tests = {
            test: {
                "first_only": [ids[k] for k in np.flatnonzero(pair.first_only[test])],
                "second_only": [ids[k] for k in np.flatnonzero(pair.second_only[test])],
                "p_value": p_value,
                "holm_p_value": adjusted[test][place],
            }
            for test, p_value in pair.p_values.items()
        }
        differences = {
            name: {"difference": _defined(pair.first.scores[name] - pair.second.scores[name]), **interval_report(values, resampling.level)}
            for name, values in pair.differences.items()
        }
        differences["component_mean"] |= {"p_value": pair.mean_p, "holm_p_value": means[place]}
        pairs.append({"first": pair.first.name, "second": pair.second.name, "differences": differences, "mcnemar": tests})
    labels = labels_sha256(gold)
    return {
        "benchmark": {"name": benchmark_name(gold), "n": len(gold), "scorer_version": SCORER_VERSION, "gold_labels_sha256": labels},
        "signature": signature(labels, len(gold), resampling),
        "resampling": resampling_report(resampling, resampling_units(gold)[1], len(gold)),
        "alpha": alpha,
        "resolution_floor": resolution_floor(len(gold), alpha),
        "systems": [{"name": system.name, **{name: _defined(value) for name, value in system.scores.items()}} for system in systems],
        "tie_groups": ties(systems, comparisons, alpha),
        "pairs": pairs,
    }


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else ""
    return ", ".join(ids[:_IDS_SHOWN]) + more if ids else "none"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.4f}"


def _pair_blocks(pair: Mapping[str, Any], many: bool) -> Iterator[Block]:
    first, second = pair["first"], pair["second"]
    rows = [[name, _signed(row["difference"]), bounds(row).strip(), str(row["undefined_resamples"])] for name, row in pair["differences"].items()]
    mean = pair["differences"]["component_mean"]
    corrected = f", {mean['holm_p_value']:.4f} after Holm's correction" if many else ""
    notes = [f"component_mean: p = {mean['p_value']:.4f}{corrected} (paired bootstrap)"]
    yield Block(f"{first} less {second}", ("aggregate", "difference", "paired interval", "resamples left out"), rows, notes)
    columns = ("right on", f"{first} alone", f"{second} alone", "p", *(["p after Holm"] if many else []))
    tests = pair["mcnemar"]
    rows = [
        [test, str(len(row["first_only"])), str(len(row["second_only"])), f"{row['p_value']:.4g}", *([f"{row['holm_p_value']:.4g}"] if many else [])]
        for test, row in tests.items()
    ]
    notes = [f"{test}, {name} alone: {_named(row[side])}" for test, row in tests.items() for side, name in (("first_only", first), ("second_only", second))]
    yield Block(f"{first} and {second}: exact McNemar tests, and the cases that one alone has right", columns, rows, notes)


def blocks(report: Mapping[str, Any]) -> list[Block]:
    """Return a comparison as tables for a person's eye."""
    benchmark, drawn = report["benchmark"], report["resampling"]
    names = ("component_mean", *COMPONENTS, "complete_primary_accuracy")
    rows = [[system["name"], *(shown(system[name]) for name in names), str(benchmark["n"])] for system in report["systems"]]
    method = (
        f"Intervals: {100 * drawn['level']:g}%, paired {drawn['method']} ({drawn['resamples']:,} resamples of {drawn['units']} units, seed {drawn['seed']})."
    )
    groups = [f"Tie groups by {metric}: " + " > ".join(" = ".join(group) for group in found) for metric, found in report["tie_groups"].items()]
    meaning = f"Systems joined by = can't all be told apart at the {100 * report['alpha']:g}% level: by McNemar's test, the component mean by the bootstrap."
    if drawn["unit"] != "scenario":
        meaning += " McNemar's test takes the cases of a family as independent, which makes it too sure; the bootstrap doesn't."
    first = Block(
        f"{benchmark['name']}: {len(rows)} systems compared",
        ("system", *names, "n"),
        rows,
        [report["signature"], method, *groups, meaning, report["resolution_floor"]["meaning"]],
    )
    return [first, *(block for pair in report["pairs"] for block in _pair_blocks(pair, len(report["pairs"]) > 1))]


# ---------------------------------------------------------------- the command
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", help="the labelled file")
    parser.add_argument("predictions", nargs="+", metavar="predictions", help="two or more prediction files")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="how the comparison is printed (default: text)")
    parser.add_argument(
        "--invalid",
        choices=("error", "incorrect"),
        default="error",
        help="an answer that breaks a rule or is missing: refuse the file (default), or count the case wrong on every target and say so",
    )
    add_resampling_options(parser, flag=False)
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    resampling = chosen_resampling(parser, arguments)
    if len(arguments.predictions) < 2:
        parser.error("a comparison takes two prediction files or more")
    gold_path, *paths = [existing_file(name) for name in (arguments.gold, *arguments.predictions)]
    names = distinct_names(paths)
    size = gold_path.stat().st_size
    gold, _, problems = read_gold(gold_path, watch=progress("gold", size))
    if problems:
        return print_findings(problems)
    cases = list(gold.values())
    systems: list[System] = []
    invalid: list[Problem] = []
    for name, path in zip(names, paths, strict=True):
        submission = read_predictions(path, gold, invalid=arguments.invalid, watch=progress(name, size, len(gold)))
        problems += submission.problems
        invalid += submission.invalid
        if not problems:
            systems.append(new_system(name, cases, submission.predictions))
    if problems:
        return print_findings(problems)
    for problem in invalid:
        print(f"counted wrong: {finding_line(problem)}", file=sys.stderr)
    comparisons = compare(systems, cases, resampling, progress("resamples", len(cases) * resampling.resamples * len(systems)))
    report = comparison_report(systems, cases, comparisons, resampling)
    report["benchmark"] |= {"gold_file": gold_path.name, "gold_sha256": file_sha256(gold_path)}
    if arguments.format == "json":
        print(json.dumps(report, indent=2, ensure_ascii=True, allow_nan=False))
    else:
        print((as_markdown if arguments.format == "markdown" else as_text)(blocks(report)), end="")
    return VALID


if __name__ == "__main__":
    run(main)

"""Strata of labelled cases, and the plain accuracies of a system in each of them."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rdod_metric.rules import SEVERITIES, TARGETS, contrast_family
from rdod_metric.scoring import LEVEL, Answers, aggregate, total_counts, wilson_interval
from rdod_metric.tables import Case
from scorer.command import ROOT

LENGTHS = {"short": (1, 4), "medium": (5, 7), "long": (8, None)}
"""Classes of trajectory length: first and last number of steps."""

THIRDS = ("early", "middle", "late")
"""Places of an onset in its trajectory: up to a third of it, up to two thirds, and beyond."""

NO_ONSET = "no onset"
"""Stratum of the cases that do not drift, where strata are places of the onset."""

SMALL = 12
"""Cases below which a stratum is too small to read: a 95 % interval can span more than half of the scale."""


def length_class(steps: int) -> str:
    """Return the class of `LENGTHS` that a number of steps, at least 1, belongs to."""
    return next(name for name, (first, last) in LENGTHS.items() if steps >= first and (last is None or steps <= last))


def third(step: int, steps: int) -> str:
    """Return the third of its trajectory that a step lies in.

    >>> [third(step, 6) for step in (1, 2, 3, 4, 5, 6)]
    ['early', 'early', 'middle', 'middle', 'late', 'late']
    """
    return THIRDS[(3 * step > steps) + (3 * step > 2 * steps)]


def onset_third(onset: int | None, steps: int) -> str:
    """Return the third of the trajectory that an onset lies in, or `NO_ONSET`.

    >>> [onset_third(onset, 6) for onset in (2, 3, 4, 5, None)]
    ['early', 'middle', 'middle', 'late', 'no onset']
    """
    return NO_ONSET if onset is None else third(onset, steps)


@functools.lru_cache(maxsize=1)
def _held_out_domains() -> frozenset[str]:
    """Return the domains that the expanded test has and neither train nor dev, as the manifest lists them."""
    return frozenset(json.loads((ROOT / "manifest.json").read_text(encoding="utf-8"))["held_out_domains"])


def _cell(column: str) -> Callable[[Case], str]:
    return lambda case: str(case.row.cells[column]).strip()


STRATA: dict[str, Callable[[Case], str]] = {
    "length": lambda case: length_class(len(case.scenario.trajectory)),
    "onset": lambda case: onset_third(case.gold.state.first_drift_step, len(case.scenario.trajectory)),
    "domain": _cell("domain"),
    "structure": _cell("trajectory_structure"),
    "correction_source": _cell("correction_source"),
    "severity": _cell("severity"),
    "family": lambda case: contrast_family(case.scenario.scenario_id) or "no family",
    "held_out": lambda case: "domain held out" if case.scenario.domain in _held_out_domains() else "domain in train or dev",
}
"""What cases can be grouped by: the stratum that each case belongs to."""

_ORDERS: dict[str, Sequence[str]] = {"length": tuple(LENGTHS), "onset": (*THIRDS, NO_ONSET), "severity": SEVERITIES}  # the others by name


def stratum_scores(by: str, answers: Answers, strata: Sequence[str], level: float = LEVEL) -> dict[str, dict[str, Any]]:
    """Return n, the plain accuracies with their Wilson intervals, and whether n is too small to read, for each stratum.

    Args:
        by: what the cases are grouped by, a key of `STRATA`.
        answers: the encoded cases.
        strata: the stratum of each case, in the same order.
        level: confidence level of the intervals.
    """
    labels = np.array(strata, dtype=object)
    scores: dict[str, dict[str, Any]] = {}
    for stratum in [name for name in _ORDERS.get(by, sorted(set(strata))) if name in set(strata)]:
        held = labels == stratum
        part = Answers(answers.gold[held], answers.predicted[held], answers.confidence[held])
        n = len(part.gold)
        totals = aggregate(total_counts(part))
        outcome = TARGETS.index("outcome_mode")
        shares = {
            "complete_primary_accuracy": float(totals["complete_primary_accuracy"]),
            "exact_onset_accuracy": float(totals["exact_onset_accuracy"]),
            "outcome_accuracy": float((part.gold[:, outcome] == part.predicted[:, outcome]).mean()),
        }
        accuracies = {name: {"value": share, **wilson_interval(share, n, level)._asdict()} for name, share in shares.items()}
        scores[stratum] = {"n": n, "too_small": n < SMALL, **accuracies}
    return scores


def strata_lines(by: str, scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the strata of a report as lines of text."""
    names = {"complete": "complete_primary_accuracy", "exact onset": "exact_onset_accuracy", "outcome": "outcome_accuracy"}
    width = max(26, *(len(stratum) + 4 for stratum in scores))
    lines = [f"{'Accuracies by ' + by:<{width}}{'n':>8}" + "".join(f"{title:>24}" for title in names)]
    for stratum, row in scores.items():
        values = "".join(f"{row[name]['value']:>9.4f} [{row[name]['low']:.3f}, {row[name]['high']:.3f}]" for name in names.values())
        lines.append(f"  {stratum:<{width - 2}}{row['n']:>8}{values}{'  too small to read' if row['too_small'] else ''}")
    if any(row["too_small"] for row in scores.values()):
        lines.append(f"  (below {SMALL} cases a stratum is too small to read: a 95% interval can span more than half of the scale)")
    return lines

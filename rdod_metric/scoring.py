"""Scores of predictions against gold: both leaderboards, diagnostics and the report.

A gold/prediction pair becomes integer codes once (`Answers`), the codes become additive per-case
counts (`case_counts`), and one function (`aggregate`) turns sums of counts into scores. Every
resample and subset is another sum, scored by that same function.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .rules import BENCHMARK_NAME, EXPANDED_NAME, TARGETS, VERSION, VOCABULARIES, Gold, Prediction, State, contrast_family

SCORER_VERSION = VERSION
"""Version that reports carry; two reports compare only if it is the same."""

LABEL_FIELDS = ("outcome_mode", "mechanism_family", "repair_outcome")
"""Targets that are classes: scored by macro-F1, with per-class values."""

COMPONENTS = ("outcome_mode_macro_f1", "exact_onset_accuracy", "mechanism_family_macro_f1", "repair_outcome_macro_f1")
"""The four parts of Leaderboard A, each of equal weight."""

DIAGNOSTICS = (
    "within_one_onset_accuracy",
    "mean_absolute_onset_error",
    "residual_constraint_exact_accuracy",
    "expected_calibration_error",
    "confidence_coverage",
    "brier_score",
    "drift_case_accuracy",
    "no_drift_case_accuracy",
    "drift_detection_harmonic_mean",
    "false_alarm_rate",
    "mean_onset_shift",
    "contrast_consistency",
    "minimal_pair_accuracy",
)
"""Aggregates that are reported and never rank."""

AGGREGATES = ("component_mean", *COMPONENTS, "complete_primary_accuracy", *DIAGNOSTICS)
"""Every aggregate of a report, in its order."""

BIN_EDGES = np.arange(1, 11) / 10
"""Upper edges of the ten confidence bins: right-closed, the first one closed at 0 too."""

PLAIN_ACCURACIES = ("exact_onset_accuracy", "complete_primary_accuracy", "within_one_onset_accuracy", "residual_constraint_exact_accuracy")
"""Aggregates that are shares of the n cases: the ones that a Wilson interval fits."""

LEVEL = 0.95
"""Confidence level of intervals where no other is asked for."""

ALPHA = 0.05
"""Significance level at which two systems count as different."""

SHIFTS = (-1, 1)
"""Numbers of steps by which predicted onsets are moved to find those that count from another first step."""

SHIFT_GAIN, SHIFT_CASES = 0.2, 8
"""A shift is suspicious if it gains more than this share of onset accuracy, on at least so many cases with two onsets."""

_CHUNK = 1 << 16  # cases whose counts are held at once: some 60 MB
_DRAWS = 1 << 20  # draws of a bootstrap that are held at once: some 30 MB
_RESAMPLES = 1 << 11  # resamples whose counts are held at once

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Watch = Callable[[Sequence[Any]], Iterable[Any]]


class Answers(NamedTuple):
    """Gold and predicted targets of n cases as codes, paired and in gold order.

    Attributes:
        gold: shape (n, 5), columns as in `TARGETS`: a label's place in its vocabulary; a step or a
            constraint id, 0 for none.
        predicted: the same; -1 on every target of an answer that counts as wrong.
        confidence: shape (n,), NaN where there is none.
        families: shape (n, 4), or empty where no case has a family: contrast families, those that are wholly
            right, near-neighbour pairs, and those that are right on both sides. A family is counted at its
            first case, a pair likewise.
    """

    gold: Codes
    predicted: Codes
    confidence: Floats
    families: Floats = np.zeros((0, 4))


class Interval(NamedTuple):
    """Bounds of a score; None where it is undefined in every resample."""

    low: float | None
    high: float | None


class Resampling(NamedTuple):
    """How a bootstrap is drawn: the same numbers give the same intervals."""

    resamples: int = 10_000
    seed: int = 0
    level: float = LEVEL


def _layout() -> tuple[dict[str, slice], int]:
    widths = {"cases": 1}
    for field in LABEL_FIELDS:
        widths |= {f"{kind}_{field}": len(VOCABULARIES[field]) for kind in ("both", "gold", "predicted")}
    widths |= {"correct": len(TARGETS), "ladder": len(TARGETS), "drift_found": 1, "within_one": 1, "shifted": len(SHIFTS)}
    widths |= {"onset_pairs": 1, "onset_error": 1, "onset_shift": 1, "squared_error": 1}
    widths |= {f"bin_{kind}": len(BIN_EDGES) for kind in ("count", "correct", "confidence")}
    widths |= {"families": 4}
    places, start = {}, 0
    for name, width in widths.items():
        places[name] = slice(start, start + width)
        start += width
    return places, start


_PLACES, _WIDTH = _layout()
_NO_DRIFT = VOCABULARIES["outcome_mode"].index("no_drift")


def encode(gold: Sequence[Gold], predictions: Mapping[str, Prediction]) -> Answers:
    """Pair predictions with gold by scenario id and encode both.

    Raises:
        KeyError: a gold scenario has no prediction.
    """
    places = {field: {label: place for place, label in enumerate(VOCABULARIES[field])} for field in LABEL_FIELDS}
    outcomes, families, repairs = (places[field] for field in LABEL_FIELDS)

    def code(state: State | None) -> tuple[int, ...]:
        return (-1,) * len(TARGETS) if state is None else (outcomes[state[0]], state[1] or 0, families[state[2]], repairs[state[3]], state[4] or 0)

    def codes(states: Iterable[State | None]) -> Codes:
        known: dict[State | None, int] = {}  # the same few states come again and again
        rows = np.fromiter((known.setdefault(state, len(known)) for state in states), dtype=np.int32, count=len(gold))
        return np.array([code(state) for state in known], dtype=np.int32).reshape(-1, len(TARGETS))[rows]

    paired = [predictions[case.scenario_id] for case in gold]
    confidence = np.array([np.nan if answer.confidence is None else answer.confidence for answer in paired], dtype=np.float64)
    return Answers(codes(case.state for case in gold), codes(answer.state for answer in paired), confidence, _families(gold, predictions))


def _families(gold: Sequence[Gold], predictions: Mapping[str, Prediction]) -> Floats:
    """Return what `Answers.families` holds."""
    members: dict[tuple[str, bool], list[int]] = {}  # of a family, and of the pair in it
    for place, case in enumerate(gold):
        if family := contrast_family(case.scenario_id):
            members.setdefault((family, False), []).append(place)
            if case.near_neighbour:
                members.setdefault((family, True), []).append(place)
    counts = np.zeros((len(gold), 4) if members else (0, 4))
    for (_, pair), places in members.items():
        right = all(gold[place].state == predictions[gold[place].scenario_id].state for place in places)
        if not pair:
            counts[places[0], :2] += (1, right)
        elif len(places) == 2:  # of a subset of cases that holds one of the two, nothing can be said
            counts[places[0], 2:] += (1, right)
    return counts


def case_counts(answers: Answers) -> Floats:
    """Return what every case adds to the sums behind the scores; shape (n, width), all values finite."""
    gold, predicted, confidence, _ = answers
    n = len(gold)
    counts = np.zeros((n, _WIDTH))
    rows = np.arange(n)

    def block(name: str) -> Floats:
        return counts[:, _PLACES[name]]

    correct = gold == predicted
    ladder = np.logical_and.accumulate(correct, axis=1)
    block("cases")[:] = 1
    for field in LABEL_FIELDS:
        column = TARGETS.index(field)
        answered = predicted[:, column] >= 0
        block(f"gold_{field}")[rows, gold[:, column]] = 1
        block(f"predicted_{field}")[rows[answered], predicted[answered, column]] = 1
        block(f"both_{field}")[rows, gold[:, column]] = correct[:, column]
    block("correct")[:] = correct
    block("ladder")[:] = ladder
    onset = TARGETS.index("first_drift_step")
    numeric = (gold[:, onset] > 0) & (predicted[:, onset] > 0)
    shift = np.where(numeric, predicted[:, onset] - gold[:, onset], 0)
    block("within_one")[:, 0] = np.where(numeric, np.abs(shift) <= 1, correct[:, onset])
    block("shifted")[:] = np.where(numeric[:, None], shift[:, None] + SHIFTS == 0, correct[:, [onset]])
    block("onset_pairs")[:, 0] = numeric
    block("onset_error")[:, 0] = np.abs(shift)
    block("onset_shift")[:, 0] = shift
    block("drift_found")[:, 0] = (gold[:, 0] != _NO_DRIFT) & (predicted[:, 0] >= 0) & (predicted[:, 0] != _NO_DRIFT)
    held = ~np.isnan(confidence)
    bins = np.searchsorted(BIN_EDGES, confidence[held], side="left")
    block("bin_count")[rows[held], bins] = 1
    block("bin_correct")[rows[held], bins] = ladder[held, -1]
    block("bin_confidence")[rows[held], bins] = confidence[held]
    block("squared_error")[held, 0] = (confidence[held] - ladder[held, -1]) ** 2
    if len(answers.families):
        block("families")[:] = answers.families
    return counts


def total_counts(answers: Answers) -> Floats:
    """Return the sum of `case_counts` over all cases, shape (width,), in bounded memory."""
    totals = np.zeros(_WIDTH)
    for start in range(0, len(answers.gold), _CHUNK):
        part = slice(start, start + _CHUNK)
        totals += case_counts(Answers(answers.gold[part], answers.predicted[part], answers.confidence[part], answers.families[part])).sum(axis=0)
    return totals


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    quotient: Floats = np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, np.nan), where=whole > 0)
    return quotient


def aggregate(sums: Floats) -> dict[str, Floats]:
    """Turn sums of case counts into every aggregate.

    Args:
        sums: shape (..., width): sums of rows of `case_counts`, for one or many sets of cases.

    Returns:
        One array of shape (...) for each name of `AGGREGATES`; NaN where a score is undefined. Macro-F1
        is the mean F1 over the classes that occur in gold or predictions, as scikit-learn's
        `f1_score(average="macro", zero_division=0)`; the calibration error is that of Guo et al. (2017)
        over `BIN_EDGES`, the Brier score the mean squared distance of confidence and complete-primary
        correctness. Drift detection asks of the outcome alone whether it is `no_drift`; a false alarm is a
        `no_drift` case that is answered with drift. The onset shift is positive where onsets come late.
        Contrast consistency is the share of contrast families with every member completely right, minimal-pair
        accuracy that of near-neighbour pairs with both members right.
    """

    def block(name: str) -> Floats:
        return sums[..., _PLACES[name]]

    n = block("cases")[..., 0]
    scores: dict[str, Floats] = {}
    for field in LABEL_FIELDS:
        occurrences = block(f"gold_{field}") + block(f"predicted_{field}")
        f1 = np.nan_to_num(_ratio(2 * block(f"both_{field}"), occurrences))
        scores[f"{field}_macro_f1"] = _ratio(f1.sum(axis=-1), (occurrences > 0).sum(axis=-1))
    correct = dict(zip(TARGETS, np.moveaxis(block("correct"), -1, 0), strict=True))
    scores["exact_onset_accuracy"] = _ratio(correct["first_drift_step"], n)
    scores["component_mean"] = np.mean([scores[name] for name in COMPONENTS], axis=0)
    scores["complete_primary_accuracy"] = _ratio(block("ladder")[..., -1], n)
    scores["within_one_onset_accuracy"] = _ratio(block("within_one")[..., 0], n)
    scores["mean_absolute_onset_error"] = _ratio(block("onset_error")[..., 0], block("onset_pairs")[..., 0])
    scores["residual_constraint_exact_accuracy"] = _ratio(correct["residual_constraint_id"], n)
    held = block("bin_count").sum(axis=-1)
    gaps = np.abs(block("bin_correct") - block("bin_confidence")).sum(axis=-1)
    scores["expected_calibration_error"] = _ratio(gaps, held)
    scores["confidence_coverage"] = _ratio(held, n)
    scores["brier_score"] = _ratio(block("squared_error")[..., 0], held)
    scores["mean_onset_shift"] = _ratio(block("onset_shift")[..., 0], block("onset_pairs")[..., 0])
    outcomes, found = block("predicted_outcome_mode"), block("drift_found")[..., 0]
    sound = block("gold_outcome_mode")[..., _NO_DRIFT]
    alarms = outcomes.sum(axis=-1) - outcomes[..., _NO_DRIFT] - found
    scores["false_alarm_rate"] = _ratio(alarms, sound)
    drift = scores["drift_case_accuracy"] = _ratio(found, n - sound)
    no_drift = scores["no_drift_case_accuracy"] = _ratio(block("both_outcome_mode")[..., _NO_DRIFT], sound)
    one_sided = np.where(drift + no_drift == 0, 0.0, np.nan)  # the harmonic mean of two zeros is 0, with an undefined part it is undefined
    scores["drift_detection_harmonic_mean"] = np.divide(2 * drift * no_drift, drift + no_drift, out=one_sided, where=drift + no_drift > 0)
    families, families_right, pairs, pairs_right = np.moveaxis(block("families"), -1, 0)
    scores["contrast_consistency"] = _ratio(families_right, families)
    scores["minimal_pair_accuracy"] = _ratio(pairs_right, pairs)
    return {name: scores[name] for name in AGGREGATES}


# ---------------------------------------------------------------- uncertainty
def resampling_units(gold: Sequence[Gold]) -> tuple[Codes, int]:
    """Return the unit of resampling that each case belongs to, numbered from 0, and how many there are.

    A unit is a contrast family, or a single case where the id names no family. Units are numbered by
    name, so that the same resamples are drawn whatever the order of the cases.
    """
    names = [contrast_family(case.scenario_id) or case.scenario_id for case in gold]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([numbers[name] for name in names], dtype=np.int32), len(numbers)


def unit_counts(answers: Answers, units: Codes, number: int) -> Floats:
    """Return the summed `case_counts` of every unit of resampling, shape (number, width)."""
    sums = np.zeros((number, _WIDTH))
    np.add.at(sums, units, case_counts(answers))
    return sums


def resample(systems: Sequence[Floats], resampling: Resampling, watch: Watch = iter) -> list[dict[str, Floats]]:
    """Score bootstrap resamples of the units; every system is scored on the same resamples.

    Args:
        systems: for each system what `unit_counts` gives, all of one shape.
        resampling: how many resamples, and their seed.
        watch: wraps the sequence of work packages, for instance in a progress bar.

    Returns:
        For each system the arrays of `aggregate`, of shape (resamples,). Memory is bounded: some 10 MB
        beside counts and results, more only where a single resample has more units than that holds.
    """
    units = len(systems[0])
    generator = np.random.default_rng(resampling.seed)
    step = max(1, min(_RESAMPLES, _DRAWS // units))
    scores = [{name: np.empty(resampling.resamples) for name in AGGREGATES} for _ in systems]
    for start in watch(range(0, resampling.resamples, step)):
        rows = min(step, resampling.resamples - start)
        draws = generator.integers(units, size=(rows, units)) + np.arange(rows)[:, None] * units
        weights = np.bincount(draws.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        for counts, out in zip(systems, scores, strict=True):
            for name, values in aggregate(weights @ counts).items():
                out[name][start : start + rows] = values
    return scores


def percentile_interval(values: Floats, level: float) -> Interval:
    """Return the percentile interval of resampled values; resamples where the score is undefined are left out."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Interval(None, None)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def wilson_interval(share: float, n: int, level: float = LEVEL) -> Interval:
    """Return the interval of Wilson (1927) for a share of n independent cases, n at least 1.

    >>> [round(bound, 4) for bound in wilson_interval(0.5, 12)]
    [0.2538, 0.7462]
    """
    z = 0.0
    for _ in range(60):  # Newton's method on P(|Z| < z) = level, concave and so approached from below
        z -= (math.erf(z / math.sqrt(2)) - level) * math.sqrt(math.pi / 2) * math.exp(z * z / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def resolution_floor(n: int, alpha: float = ALPHA) -> dict[str, Any]:
    """Return the smallest difference of two systems on n cases that an exact McNemar test at level `alpha` can call significant.

    It takes k cases that one system alone has right and none that the other alone has right; their p-value is
    2 / 2^k. The difference is None where n cases are too few for any.
    """
    cases = next(k for k in itertools.count(1) if 2 * 0.5**k <= alpha)
    difference = cases / n if cases <= n else None
    test = f"an exact McNemar test at the {100 * alpha:g}% level"
    if difference is None:
        meaning = f"On {n} cases no difference between two systems, however large, can be called significant by {test}."
    else:
        meaning = (
            f"On {n} cases two systems whose complete primary accuracies lie less than {100 * difference:.1f} points ({cases} cases) apart "
            f"can't be told apart by {test}, whatever their answers."
        )
    return {"alpha": alpha, "cases": cases, "difference": difference, "meaning": meaning}


def onset_shift_check(totals: Floats) -> dict[str, Any]:
    """Say what exact onset accuracy would be were every predicted onset one step earlier or later, and warn where that gains much."""
    n, pairs = (int(totals[_PLACES[name]][0]) for name in ("cases", "onset_pairs"))
    right = {0: int(totals[_PLACES["correct"]][TARGETS.index("first_drift_step")]), **dict(zip(SHIFTS, map(int, totals[_PLACES["shifted"]]), strict=True))}
    best = max(SHIFTS, key=lambda shift: right[shift])
    warning = None
    if pairs >= SHIFT_CASES and right[best] - right[0] > SHIFT_GAIN * n:
        warning = (
            f"moving every predicted onset by {best:+d} would raise exact onset accuracy from {right[0] / n:.4f} to {right[best] / n:.4f}: "
            "are steps counted from 1, and is the onset the first step that drifts?"
        )
    return {"numeric_cases": pairs, "exact_onset_accuracy": {f"{shift:+d}" if shift else "0": right[shift] / n for shift in sorted(right)}, "warning": warning}


# ---------------------------------------------------------------- the report
def _number(value: Any) -> float | None:
    """Return a score as JSON has it: null where it is undefined."""
    return None if np.isnan(value) else float(value)


def _classes(totals: Floats) -> dict[str, dict[str, dict[str, float | int]]]:
    tables: dict[str, dict[str, dict[str, float | int]]] = {}
    for field in LABEL_FIELDS:
        both, support, predicted = (totals[_PLACES[f"{kind}_{field}"]] for kind in ("both", "gold", "predicted"))
        precision, recall, f1 = (np.nan_to_num(_ratio(*pair)) for pair in ((both, predicted), (both, support), (2 * both, support + predicted)))
        tables[field] = {
            label: {
                "precision": float(precision[k]),
                "recall": float(recall[k]),
                "f1": float(f1[k]),
                "support": int(support[k]),
                "predicted": int(predicted[k]),
            }
            for k, label in enumerate(VOCABULARIES[field])
        }
    return tables


def _table(gold: Sequence[Gold], predictions: Mapping[str, Prediction], answers: Answers) -> list[dict[str, Any]]:
    correct = answers.gold == answers.predicted
    onset = TARGETS.index("first_drift_step")
    rows: list[dict[str, Any]] = []
    for k, case in enumerate(gold):
        answer = predictions[case.scenario_id]
        state = answer.state or (None,) * len(TARGETS)
        steps = case.state[onset], state[onset]
        rows.append(
            {
                "scenario_id": case.scenario_id,
                **{f"gold_{target}": value for target, value in zip(TARGETS, case.state, strict=True)},
                **{f"predicted_{target}": value for target, value in zip(TARGETS, state, strict=True)},
                **{f"{target}_correct": bool(right) for target, right in zip(TARGETS, correct[k], strict=True)},
                "complete_primary_correct": bool(correct[k].all()),
                "onset_absolute_error": None if None in steps else abs(steps[0] - steps[1]),  # type: ignore[operator]
                "confidence": answer.confidence,
            }
        )
    return rows


def labels_sha256(gold: Iterable[Gold]) -> str:
    """Return the SHA-256 of ids and primary targets in id order: the same for every file that holds the same labels."""
    digest = hashlib.sha256(b"[")
    states: dict[State, str] = {}  # the same few states come again and again
    for number, case in enumerate(sorted(gold, key=lambda case: case.scenario_id)):  # row by row: a million cases are not held as text
        if case.state not in states:
            states[case.state] = json.dumps(case.state, separators=(",", ":"))[1:]
        digest.update(f"{',' if number else ''}[{json.dumps(case.scenario_id)},{states[case.state]}".encode())
    digest.update(b"]")
    return digest.hexdigest()


def signature(labels: str, n: int, resampling: Resampling | None = None) -> str:
    """Return what a score carries so that it can be held against another: scorer, hash of the labels, n and the draw of intervals."""
    parts = [f"rdod scorer={SCORER_VERSION} gold={labels[:12]} n={n}"]
    if resampling is not None:
        parts.append(f"resamples={resampling.resamples} seed={resampling.seed} level={resampling.level}")
    return " ".join(parts)


def interval_report(values: Floats, level: float) -> dict[str, Any]:
    """Return the percentile interval of resampled values as a report has it, with the number of resamples that it leaves out."""
    return {**percentile_interval(values, level)._asdict(), "undefined_resamples": int(np.isnan(values).sum())}


def resampling_report(resampling: Resampling, units: int, n: int) -> dict[str, Any]:
    """Return what a report says of how its intervals were drawn: n cases in so many units."""
    unit, drawn = ("scenario", "scenarios") if units == n else ("contrast family", "whole contrast families")
    return {"method": f"percentile bootstrap of {drawn}", "unit": unit, "units": units, **resampling._asdict()}


def benchmark_name(gold: Iterable[Gold]) -> str:
    """Return the name of the release whose cases these are, by their ids."""
    return EXPANDED_NAME if all(contrast_family(case.scenario_id) for case in gold) else BENCHMARK_NAME


def score(
    gold: Sequence[Gold],
    predictions: Mapping[str, Prediction],
    *,
    gold_file: str | None = None,
    gold_sha256: str | None = None,
    table: bool = True,
    resampling: Resampling | None = None,
    watch: Watch = iter,
) -> dict[str, Any]:
    """Score valid predictions and return the report.

    Args:
        gold: the labelled cases, at least one, each scenario once.
        predictions: an answer for every case, by scenario id; one with `state=None` is wrong on every
            target and counted in `invalid_predictions`.
        gold_file: name of the gold file for the report.
        gold_sha256: checksum of its LF-normalised text.
        table: whether the report holds the table of single cases.
        resampling: how to draw bootstrap intervals of all aggregates; none are drawn without it.
        watch: wraps the work packages of the bootstrap, for instance in a progress bar.

    Returns:
        The report: plain Python that `json.dumps(..., allow_nan=False)` takes. Scores lie in [0, 1],
        onset error and shift count steps; an undefined score is None.

    Raises:
        ValueError: there is no case.
        KeyError: a case has no prediction.
    """
    if not gold:
        raise ValueError("there is no case to score")
    answers = encode(gold, predictions)
    totals = total_counts(answers)
    uncertainty: dict[str, Any] = {}
    if resampling is not None:
        units, number = resampling_units(gold)
        [resampled] = resample([unit_counts(answers, units, number)], resampling, watch)
        uncertainty["resampling"] = resampling_report(resampling, number, len(gold))
        uncertainty["intervals"] = {name: interval_report(values, resampling.level) for name, values in resampled.items()}
    scores = {name: _number(value) for name, value in aggregate(totals).items()}
    classes = _classes(totals)
    labels = labels_sha256(gold)
    level = resampling.level if resampling else LEVEL
    return {
        "benchmark": {
            "name": benchmark_name(gold),
            "evaluation_type": "structured_reasoning_state",
            "n": len(gold),
            "invalid_predictions": sum(predictions[case.scenario_id].state is None for case in gold),
            "scorer_version": SCORER_VERSION,
            "gold_file": gold_file,
            "gold_sha256": gold_sha256,
            "gold_labels_sha256": labels,
        },
        "signature": signature(labels, len(gold), resampling),
        "leaderboard_a_component_capability": {
            "primary_ranking_metric": "component_mean",
            **{name: scores[name] for name in ("component_mean", *COMPONENTS)},
        },
        "leaderboard_b_complete_reasoning_state": {
            "primary_ranking_metric": "complete_primary_accuracy",
            "complete_primary_accuracy": scores["complete_primary_accuracy"],
            "ladder": {target: int(count) for target, count in zip(TARGETS, totals[_PLACES["ladder"]], strict=True)},
        },
        "secondary_diagnostics": {name: scores[name] for name in DIAGNOSTICS},
        "onset_shift_check": onset_shift_check(totals),
        "resolution_floor": resolution_floor(len(gold)),
        "wilson_intervals": {
            "level": level,
            "intervals": {name: wilson_interval(scores[name] or 0, len(gold), level)._asdict() for name in PLAIN_ACCURACIES},
        },
        **uncertainty,
        "class_support": {field: {label: row["support"] for label, row in rows.items()} for field, rows in classes.items()},
        "per_class_metrics": classes,
        "prediction_table": _table(gold, predictions, answers) if table else [],
    }

"""Scores of predictions against gold: both leaderboards, diagnostics and the report.

A gold/prediction pair becomes integer codes once (`Answers`), the codes become additive per-case
counts (`case_counts`), and one function (`aggregate`) turns sums of counts into scores. Every
resample and subset is another sum, scored by that same function.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .rules import BENCHMARK_NAME, TARGETS, VERSION, VOCABULARIES, Gold, Prediction, State

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
)
"""Aggregates that are reported and never rank."""

AGGREGATES = ("component_mean", *COMPONENTS, "complete_primary_accuracy", *DIAGNOSTICS)
"""Every aggregate of a report, in its order."""

BIN_EDGES = np.arange(1, 11) / 10
"""Upper edges of the ten confidence bins: right-closed, the first one closed at 0 too."""

_CHUNK = 1 << 16  # cases whose counts are held at once: some 60 MB

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


class Answers(NamedTuple):
    """Gold and predicted targets of n cases as codes, paired and in gold order.

    Attributes:
        gold: shape (n, 5), columns as in `TARGETS`: a label's place in its vocabulary; a step or a
            constraint id, 0 for none.
        predicted: the same; -1 on every target of an answer that counts as wrong.
        confidence: shape (n,), NaN where there is none.
    """

    gold: Codes
    predicted: Codes
    confidence: Floats


def _layout() -> tuple[dict[str, slice], int]:
    widths = {"cases": 1}
    for field in LABEL_FIELDS:
        widths |= {f"{kind}_{field}": len(VOCABULARIES[field]) for kind in ("both", "gold", "predicted")}
    widths |= {"correct": len(TARGETS), "ladder": len(TARGETS), "within_one": 1, "onset_error": 1, "onset_pairs": 1}
    widths |= {f"bin_{kind}": len(BIN_EDGES) for kind in ("count", "correct", "confidence")}
    places, start = {}, 0
    for name, width in widths.items():
        places[name] = slice(start, start + width)
        start += width
    return places, start


_PLACES, _WIDTH = _layout()


def encode(gold: Sequence[Gold], predictions: Mapping[str, Prediction]) -> Answers:
    """Pair predictions with gold by scenario id and encode both.

    Raises:
        KeyError: a gold scenario has no prediction.
    """
    places = {field: {label: place for place, label in enumerate(VOCABULARIES[field])} for field in LABEL_FIELDS}
    outcomes, families, repairs = (places[field] for field in LABEL_FIELDS)

    def codes(states: Iterable[State | None]) -> Codes:
        rows = [
            (-1, -1, -1, -1, -1) if state is None else (outcomes[state[0]], state[1] or 0, families[state[2]], repairs[state[3]], state[4] or 0)
            for state in states
        ]
        return np.array(rows, dtype=np.int32).reshape(-1, len(TARGETS))

    paired = [predictions[case.scenario_id] for case in gold]
    confidence = np.array([np.nan if answer.confidence is None else answer.confidence for answer in paired], dtype=np.float64)
    return Answers(codes(case.state for case in gold), codes(answer.state for answer in paired), confidence)


def case_counts(answers: Answers) -> Floats:
    """Return what every case adds to the sums behind the scores; shape (n, width), all values finite."""
    gold, predicted, confidence = answers
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
    error = np.abs(gold[:, onset] - predicted[:, onset])
    block("within_one")[:, 0] = np.where(numeric, error <= 1, correct[:, onset])
    block("onset_error")[:, 0] = np.where(numeric, error, 0)
    block("onset_pairs")[:, 0] = numeric
    held = ~np.isnan(confidence)
    bins = np.searchsorted(BIN_EDGES, confidence[held], side="left")
    block("bin_count")[rows[held], bins] = 1
    block("bin_correct")[rows[held], bins] = ladder[held, -1]
    block("bin_confidence")[rows[held], bins] = confidence[held]
    return counts


def total_counts(answers: Answers) -> Floats:
    """Return the sum of `case_counts` over all cases, shape (width,), in bounded memory."""
    totals = np.zeros(_WIDTH)
    for start in range(0, len(answers.gold), _CHUNK):
        part = slice(start, start + _CHUNK)
        totals += case_counts(Answers(answers.gold[part], answers.predicted[part], answers.confidence[part])).sum(axis=0)
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
        over `BIN_EDGES`.
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
    return {name: scores[name] for name in AGGREGATES}


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
    rows = sorted([case.scenario_id, *case.state] for case in gold)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def score(
    gold: Sequence[Gold],
    predictions: Mapping[str, Prediction],
    *,
    gold_file: str | None = None,
    gold_sha256: str | None = None,
    table: bool = True,
) -> dict[str, Any]:
    """Score valid predictions and return the report.

    Args:
        gold: the labelled cases, at least one, each scenario once.
        predictions: an answer for every case, by scenario id; one with `state=None` is wrong on every
            target and counted in `invalid_predictions`.
        gold_file: name of the gold file for the report.
        gold_sha256: checksum of its LF-normalised text.
        table: whether the report holds the table of single cases.

    Returns:
        The report: plain Python that `json.dumps(..., allow_nan=False)` takes. Scores lie in [0, 1],
        the onset error counts steps; an undefined score is None.

    Raises:
        ValueError: there is no case.
        KeyError: a case has no prediction.
    """
    if not gold:
        raise ValueError("there is no case to score")
    answers = encode(gold, predictions)
    totals = total_counts(answers)
    scores = {name: _number(value) for name, value in aggregate(totals).items()}
    classes = _classes(totals)
    return {
        "benchmark": {
            "name": BENCHMARK_NAME,
            "evaluation_type": "structured_reasoning_state",
            "n": len(gold),
            "invalid_predictions": sum(predictions[case.scenario_id].state is None for case in gold),
            "scorer_version": SCORER_VERSION,
            "gold_file": gold_file,
            "gold_sha256": gold_sha256,
            "gold_labels_sha256": labels_sha256(gold),
        },
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
        "class_support": {field: {label: row["support"] for label, row in rows.items()} for field, rows in classes.items()},
        "per_class_metrics": classes,
        "prediction_table": _table(gold, predictions, answers) if table else [],
    }

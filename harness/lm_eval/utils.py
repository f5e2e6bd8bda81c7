"""What the tasks `rdod` and `rdod_fewshot` of lm-evaluation-harness call: loading, prompt, parsing, scores."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from datasets import Dataset, DatasetDict

from harness.parse import parse
from harness.prompt import INSTRUCTIONS, answer_text, case_text, order_examples
from harness.records import ROOT, case_of, example_of, load_rows
from rdod_metric.rules import Gold, Prediction, State
from rdod_metric.scoring import AGGREGATES, score

SEED = 0
"""Seed of the order of examples."""

METRICS = (*AGGREGATES, "invalid_predictions")
"""What rdod.yaml lists: every aggregate of a report, and the count of answers that could not be used."""

Doc = Mapping[str, Any]
Pair = tuple[Gold, State | None, float | None]


def load(dataset: str = str(ROOT), config: str = "default", **_: Any) -> DatasetDict:
    """Return the examples and the test split, from a folder or by the Hub's id; by default the checkout that holds this file.

    Every row also holds the instructions, from where the task's `description` takes them.
    """
    splits = {"train": load_rows(dataset, "train", "train"), "test": load_rows(dataset, config, "test")}
    return DatasetDict({split: rows.add_column("instructions", [INSTRUCTIONS] * len(rows)) for split, rows in splits.items()})


def in_shot_order(rows: Dataset) -> Dataset:
    """Return the rows of train in the order in which they serve as shots."""
    places = {row["scenario_id"]: place for place, row in enumerate(rows)}
    ordered = order_examples([example_of(row) for row in rows], SEED)
    return rows.select([places[example.scenario.scenario_id] for example in ordered])


def doc_to_text(doc: Doc) -> str:
    """Return the case as the model reads it."""
    return case_text(case_of(doc)[0])


def doc_to_target(doc: Doc) -> str:
    """Return the answer that is right."""
    return answer_text(case_of(doc)[1].state)


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Pair]:
    """Return gold and answer of a case under the name of every metric, each of which is computed over all cases."""
    scenario, gold = case_of(doc)
    answer = parse(results[0], scenario)
    return dict.fromkeys(METRICS, (gold, answer.state, answer.confidence))


def invalid_predictions(pairs: Sequence[Pair]) -> int:
    """Count the answers that could not be used, which every score counts as wrong."""
    return sum(state is None for _, state, _ in pairs)


def _aggregate(name: str) -> Callable[[Sequence[Pair]], float]:
    def compute(pairs: Sequence[Pair]) -> float:
        predictions = {gold.scenario_id: Prediction(gold.scenario_id, state, confidence) for gold, state, confidence in pairs}
        report = score([gold for gold, _, _ in pairs], predictions, table=False)
        parts = ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics")
        value = next(report[part][name] for part in parts if name in report[part])
        return math.nan if value is None else float(value)

    return compute


component_mean = _aggregate("component_mean")
outcome_mode_macro_f1 = _aggregate("outcome_mode_macro_f1")
exact_onset_accuracy = _aggregate("exact_onset_accuracy")
mechanism_family_macro_f1 = _aggregate("mechanism_family_macro_f1")
repair_outcome_macro_f1 = _aggregate("repair_outcome_macro_f1")
complete_primary_accuracy = _aggregate("complete_primary_accuracy")
within_one_onset_accuracy = _aggregate("within_one_onset_accuracy")
mean_absolute_onset_error = _aggregate("mean_absolute_onset_error")
residual_constraint_exact_accuracy = _aggregate("residual_constraint_exact_accuracy")
expected_calibration_error = _aggregate("expected_calibration_error")
confidence_coverage = _aggregate("confidence_coverage")
brier_score = _aggregate("brier_score")
drift_case_accuracy = _aggregate("drift_case_accuracy")
no_drift_case_accuracy = _aggregate("no_drift_case_accuracy")
drift_detection_harmonic_mean = _aggregate("drift_detection_harmonic_mean")
false_alarm_rate = _aggregate("false_alarm_rate")
mean_onset_shift = _aggregate("mean_onset_shift")
contrast_consistency = _aggregate("contrast_consistency")
minimal_pair_accuracy = _aggregate("minimal_pair_accuracy")

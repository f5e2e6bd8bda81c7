"""The metric of Reasoning Drift Onset Detection v0.2 for `evaluate.load`: both leaderboards from lists of dicts.

This is a shell: records are judged in `records`, scored in `scoring`, by the vocabularies of `rules`.
`evaluate` copies the siblings that this file imports, and no others.
"""

import warnings
from typing import Any

import datasets
import evaluate

from .records import PREDICTION_FIELDS, REFERENCE_FIELDS, batch, check_options, flat_scores, pair, refusal
from .rules import BENCHMARK_NAME
from .scoring import Resampling, score

_DESCRIPTION = f"""\
Scores structured answers to {BENCHMARK_NAME}: which state a reasoning trajectory ends in, at which step a
governing constraint is first lost, which family of failure that is, how far it is repaired, and which constraint
is still broken at the end.

Leaderboard A (component capability) ranks by `component_mean`, the mean of three macro-F1 and the exact onset
accuracy. Leaderboard B (complete reasoning state) ranks by `complete_primary_accuracy`, the share of cases with all
five targets right. They answer different questions and are not to be collapsed into one ranking.
"""

_CITATION = """\
@misc{caplan2026reasoningdrift,
  author = {Caplan, M.},
  title = {Reasoning Drift Onset Detection v0.2},
  year = {2026},
  publisher = {Clarus Invariant / SIOS},
  url = {https://huggingface.co/datasets/ClarusC64/reasoning-drift-onset-detection-v0.2}
}
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of dicts, one for every scenario of the references, in any order. Keys: `scenario_id`,
        `predicted_outcome_mode`, `predicted_first_drift_step` (None or '' for no drift), `predicted_mechanism_family`,
        `predicted_repair_outcome`, `predicted_residual_constraint_id` (counts from 1; None, '' or 'none' for none) and,
        if you like, `confidence` (from 0 to 1: how likely it is that all five are right). Whole numbers may be ints,
        NumPy ints, 3.0 or '3'. A key that looks like a misspelt one is refused; other keys are left aside.
    references: the labelled split as `datasets.load_dataset` gives it, rows of its CSV file, or dicts with `scenario_id`,
        `outcome_mode`, `first_drift_step`, `mechanism_family`, `repair_outcome` and `residual_constraint_id`. Labels are
        names; class numbers are refused. Where constraints and trajectory are there, ids and steps are checked against them.
    invalid: what becomes of an answer that breaks a rule or is missing. 'error' (default): nothing is scored, and one
        ValueError names every problem of every record. 'incorrect': the case counts as wrong on every target, and
        `invalid_predictions` says how many there were.
    report: whether to return the report of `scorer/score.py --json`, with the table of all cases, in place of flat scores.
    ci: whether to add percentile-bootstrap intervals of all scores, as `intervals`.
    resamples: number of resamples, 10,000 by default.
    seed: seed of the resampling; the same seed gives the same intervals.
    level: confidence level of the intervals, 0.95 by default.

Returns:
    component_mean: mean of the next four scores, from 0 to 1; ranks Leaderboard A.
    outcome_mode_macro_f1, mechanism_family_macro_f1, repair_outcome_macro_f1: unweighted mean of the F1 of the classes
        that occur in references or predictions.
    exact_onset_accuracy: share of cases with the right onset; blank equals blank.
    complete_primary_accuracy: share of cases with all five targets right; ranks Leaderboard B.
    within_one_onset_accuracy, mean_absolute_onset_error, residual_constraint_exact_accuracy, expected_calibration_error,
        confidence_coverage, brier_score, drift_case_accuracy, no_drift_case_accuracy, drift_detection_harmonic_mean,
        false_alarm_rate, mean_onset_shift, contrast_consistency, minimal_pair_accuracy: diagnostics, which rank nothing. A score that is undefined is None.
    n, invalid_predictions: number of cases, and of answers counted as wrong because they broke a rule or were missing.
    class_support, per_class_metrics: for each label field the support, and precision, recall and F1, of every label.

Examples:

    >>> import evaluate
    >>> metric = evaluate.load("rdod_metric")
    >>> references = [
    ...     {"scenario_id": "RDOD2-025", "outcome_mode": "visible_failure", "first_drift_step": 3,
    ...      "mechanism_family": "premature_constraint_closure", "repair_outcome": "unrepaired", "residual_constraint_id": 1},
    ...     {"scenario_id": "RDOD2-026", "outcome_mode": "no_drift", "first_drift_step": None,
    ...      "mechanism_family": "none", "repair_outcome": "not_applicable", "residual_constraint_id": None},
    ... ]
    >>> predictions = [
    ...     {"scenario_id": "RDOD2-026", "predicted_outcome_mode": "no_drift", "predicted_first_drift_step": None,
    ...      "predicted_mechanism_family": "none", "predicted_repair_outcome": "not_applicable",
    ...      "predicted_residual_constraint_id": "none", "confidence": 0.8},
    ...     {"scenario_id": "RDOD2-025", "predicted_outcome_mode": "visible_failure", "predicted_first_drift_step": 2,
    ...      "predicted_mechanism_family": "premature_constraint_closure", "predicted_repair_outcome": "unrepaired",
    ...      "predicted_residual_constraint_id": 1, "confidence": 0.6},
    ... ]
    >>> scores = metric.compute(predictions=predictions, references=references)
    >>> scores["component_mean"], scores["complete_primary_accuracy"], scores["n"]
    (0.875, 0.5, 2)
    >>> report = metric.compute(predictions=predictions, references=references, report=True)
    >>> report["prediction_table"][0]["onset_absolute_error"]
    1
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class RdodMetric(evaluate.Metric):
    """Both leaderboards of Reasoning Drift Onset Detection v0.2."""

    def _info(self) -> evaluate.MetricInfo:
        fields = {"predictions": PREDICTION_FIELDS, "references": REFERENCE_FIELDS}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({kind: {name: datasets.Value(dtype) for name, dtype in names.items()} for kind, names in fields.items()}),
            homepage="https://huggingface.co/spaces/ClarusC64/rdod_metric",
            license="mit",
            reference_urls=["https://huggingface.co/datasets/ClarusC64/reasoning-drift-onset-detection-v0.2"],
        )

    def add(self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None) -> None:
        """Add one prediction and one reference, of the same scenario or not.

        Args:
            prediction: a dict as below.
            reference: a dict as below.
            predictions: the same as `prediction`; so `evaluate.combine` calls it.
            references: the same as `reference`.
        """
        given = (first if first is not None else second for first, second in ((prediction, predictions), (reference, references)))
        self.add_batch(**{kind: None if record is None else [record] for kind, record in zip(("predictions", "references"), given, strict=True)})

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add records to be judged and scored by `compute`, in any batching and any order.

        Args:
            predictions: list of dicts as below.
            references: list of dicts as below.
        """
        rows = batch(predictions, references)
        if self.writer is None:
            self.selected_feature_format = self.features
            self._init_writer()
        # the rows are typed already: the library's own method would go through every field once more, at twice the cost of all else
        self.writer.write_batch(rows)

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        invalid: str = "error",
        report: bool = False,
        ci: bool = False,
        resamples: int = 10_000,
        seed: int = 0,
        level: float = 0.95,
    ) -> dict[str, Any] | None:
        """Judge all records that were added, pair them by scenario id and score them.

        Args:
            predictions: list of dicts as below, added to those that were added before.
            references: list of dicts as below, likewise.
            invalid: as below.
            report: as below.
            ci: as below.
            resamples: as below.
            seed: as below.
            level: as below.

        Raises:
            ValueError: records are refused. The message names every problem of every record, and nothing of them
                stays behind for the next computation.
        """
        check_options(invalid, resamples, seed, level)
        self.add_batch(predictions=predictions, references=references)
        result = super().compute(invalid=invalid, report=report, resampling=Resampling(resamples, seed, level) if ci else None)
        if isinstance(result, ValueError):
            raise result
        return result

    def _compute(
        self, predictions: Any, references: Any, invalid: Any = "error", report: bool = False, resampling: Resampling | None = None
    ) -> dict[str, Any] | ValueError:
        """Return the scores, or the error that `compute` raises once the library has put its files away."""
        gold, answers, problems = pair(predictions, references, invalid)
        if problems:
            return refusal(problems)
        scores = score(gold, answers, table=report, resampling=resampling)
        if warning := scores["onset_shift_check"]["warning"]:
            warnings.warn(warning, stacklevel=2)
        return scores if report else flat_scores(scores)

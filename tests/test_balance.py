"""The figures that show a one-sided system, against tables worked out by hand and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, recall_score
from test_scoring import NO_DRIFT, OPEN, REPAIRED, SILENT, pair, random_answers

from rdod_metric import scoring

PUBLISHED = (
    "within_one_onset_accuracy",
    "mean_absolute_onset_error",
    "residual_constraint_exact_accuracy",
    "expected_calibration_error",
    "confidence_coverage",
)
DETECTION = ("drift_case_accuracy", "no_drift_case_accuracy", "drift_detection_harmonic_mean", "false_alarm_rate")


def diagnostics(gold, predicted, confidences=None):
    return scoring.score(*pair(gold, predicted, confidences))["secondary_diagnostics"]


def detection(gold, predicted):
    found = diagnostics(gold, predicted)
    return tuple(found[name] for name in DETECTION)


GOLD = [NO_DRIFT, NO_DRIFT, NO_DRIFT, NO_DRIFT, OPEN, SILENT, REPAIRED, OPEN, OPEN]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        pytest.param(GOLD, GOLD, (1, 1, 1, 0), id="all right"),
        pytest.param(GOLD, [OPEN] * 9, (1, 0, 0, 1), id="drift everywhere"),
        pytest.param(GOLD, [NO_DRIFT] * 9, (0, 1, 0, 0), id="drift nowhere"),
        pytest.param(GOLD, [OPEN] * 4 + [NO_DRIFT] * 5, (0, 0, 0, 1), id="the reverse of everything"),
        pytest.param(GOLD, [NO_DRIFT] * 3 + [SILENT] + [SILENT] * 3 + [NO_DRIFT] * 2, (0.6, 0.75, 2 / 3, 0.25), id="in part"),
        pytest.param(GOLD, [SILENT] * 9, (1, 0, 0, 1), id="another outcome is drift all the same"),
        pytest.param(GOLD, [None] * 9, (0, 0, 0, 0), id="an answer that counts as wrong is no alarm"),
        pytest.param(GOLD, [None, OPEN, NO_DRIFT, NO_DRIFT, None] + [OPEN] * 4, (0.8, 0.5, 8 / 13, 0.25), id="some count as wrong"),
        pytest.param([OPEN, SILENT], [OPEN, NO_DRIFT], (0.5, None, None, None), id="nothing sound in gold"),
        pytest.param([NO_DRIFT, NO_DRIFT], [OPEN, NO_DRIFT], (None, 0.5, None, 0.5), id="no drift in gold"),
    ],
)
def test_drift_detection(gold, predicted, expected):
    assert detection(gold, predicted) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_detection_is_recall_of_either_side(seed):
    gold, predicted, _ = random_answers(seed)
    drifts, answered = ([state.outcome_mode != "no_drift" for state in states] for states in (gold, predicted))
    drift, no_drift, both, alarms = detection(gold, predicted)
    if any(drifts):
        assert drift == pytest.approx(recall_score(drifts, answered, pos_label=True), abs=1e-12)
    if not all(drifts):
        assert no_drift == pytest.approx(recall_score(drifts, answered, pos_label=False), abs=1e-12)
        assert alarms == pytest.approx(1 - no_drift, abs=1e-12)
    if any(drifts) and not all(drifts):
        assert both == pytest.approx(0 if drift * no_drift == 0 else 2 / (1 / drift + 1 / no_drift), abs=1e-12)


def at(*steps):
    return [NO_DRIFT if step is None else OPEN._replace(first_drift_step=step) for step in steps]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ((3, 4, 5), (3, 4, 5), 0),
        ((3, 4, 5), (1, 3, 5), -1),
        ((3, 4, None, 5), (5, None, 2, 5), 1),
        ((3, 3), (2, 4), 0),
        ((3, None), (None, 3), None),
    ],
)
def test_onset_shift_is_signed(gold, predicted, expected):
    assert diagnostics(at(*gold), at(*predicted))["mean_onset_shift"] == expected


@pytest.mark.parametrize("seed", range(40))
def test_brier_score_is_that_of_scikit_learn(seed):
    gold, predicted, confidences = random_answers(seed)
    held = [place for place, value in enumerate(confidences) if value is not None]
    expected = None
    if held:
        right = [gold[place] == predicted[place] for place in held]
        expected = pytest.approx(brier_score_loss(right, [confidences[place] for place in held], pos_label=True, labels=[False, True]), abs=1e-12)
    assert diagnostics(gold, predicted, confidences)["brier_score"] == expected


def test_the_published_diagnostics_come_first():
    assert tuple(diagnostics(GOLD, GOLD))[:5] == PUBLISHED


def test_no_balance_figure_moves_a_ranking_metric():
    ranking = ("component_mean", *scoring.COMPONENTS, "complete_primary_accuracy")
    for seed in range(10):
        gold, predicted, confidences = random_answers(seed)
        counts = scoring.case_counts(scoring.encode(*pair(gold, predicted, confidences))).sum(axis=0)
        changed = counts.copy()
        for name in ("drift_found", "onset_shift", "squared_error", "shifted"):
            changed[scoring._PLACES[name]] += 1
        before, after = scoring.aggregate(counts), scoring.aggregate(changed)
        for name in ranking:
            assert np.array_equal(before[name], after[name])

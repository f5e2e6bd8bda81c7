"""Scores against scikit-learn, against plain loops, and against tables worked out by hand."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from rdod_metric import scoring
from rdod_metric.rules import MECHANISM_FAMILIES, OUTCOME_MODES, REPAIR_OUTCOMES, TARGETS, VOCABULARIES, Gold, Prediction, State

FIELDS = {"outcome_mode": 0, "mechanism_family": 2, "repair_outcome": 3}
PUBLISHED = {
    "leaderboard_a_component_capability": (
        "component_mean",
        "outcome_mode_macro_f1",
        "exact_onset_accuracy",
        "mechanism_family_macro_f1",
        "repair_outcome_macro_f1",
    ),
    "leaderboard_b_complete_reasoning_state": ("complete_primary_accuracy",),
    "secondary_diagnostics": (
        "within_one_onset_accuracy",
        "mean_absolute_onset_error",
        "residual_constraint_exact_accuracy",
        "expected_calibration_error",
        "confidence_coverage",
    ),
}
NO_DRIFT = State("no_drift", None, "none", "not_applicable", None)
OPEN = State("visible_failure", 3, "scope_collapse", "unrepaired", 2)
SILENT = State("latent_drift", 2, "proxy_substitution", "failed_repair", 1)
REPAIRED = State("recovered_drift", 4, "evidence_suppression", "full_repair", None)


def pair(gold, predicted, confidences=None):
    """Return states as gold records and predictions by id; a predicted None is an answer that counts as wrong."""
    names = [f"case-{number}" for number in range(len(gold))]
    confidences = [None] * len(gold) if confidences is None else confidences
    answers = {name: Prediction(name, state, confidence) for name, state, confidence in zip(names, predicted, confidences, strict=True)}
    return [Gold(name, state) for name, state in zip(names, gold, strict=True)], answers


def aggregates(report):
    """Return the published aggregates of a report by name."""
    return {name: report[section][name] for section, names in PUBLISHED.items() for name in names}


def scores(gold, predicted, confidences=None):
    """Return the published aggregates for these states."""
    return aggregates(scoring.score(*pair(gold, predicted, confidences)))


def random_state(chance, classes):
    """Return any combination of targets, from as many classes of each vocabulary as asked for."""
    labels = [chance.choice(vocabulary[:classes]) for vocabulary in (OUTCOME_MODES, MECHANISM_FAMILIES, REPAIR_OUTCOMES)]
    return State(labels[0], chance.choice([None, *range(1, 8)]), labels[1], labels[2], chance.choice([None, 1, 2, 3]))


def random_answers(seed):
    """Return gold states, predicted states that are often right, and confidences of which some are absent."""
    chance = random.Random(seed)
    size, classes = chance.choice([1, 2, 3, 12, 40]), chance.choice([1, 2, 3, 9])
    gold = [random_state(chance, classes) for _ in range(size)]
    predicted = [State(*(own if chance.random() < 0.6 else other for own, other in zip(state, random_state(chance, classes), strict=True))) for state in gold]
    confidences = [chance.choice([None, 0.0, 1.0, 0.1, 0.3, 0.7, chance.random(), chance.random()]) for _ in gold]
    return gold, predicted, confidences


SEEDS = range(150)


# ---------------------------------------------------------------- against scikit-learn and plain loops
def test_macro_f1_is_that_of_scikit_learn():
    for seed in SEEDS:
        gold, predicted, confidences = random_answers(seed)
        found = scores(gold, predicted, confidences)
        for field, place in FIELDS.items():
            expected = f1_score([state[place] for state in gold], [state[place] for state in predicted], average="macro", zero_division=0)
            assert math.isclose(found[f"{field}_macro_f1"], expected, rel_tol=0, abs_tol=1e-12), seed


def test_macro_f1_of_many_cases_is_that_of_scikit_learn():
    chance = random.Random(5)
    gold, predicted = (chance.choices([random_state(chance, 9) for _ in range(300)], k=70_000) for _ in range(2))
    found = scores(gold, predicted)
    for field, place in FIELDS.items():
        truth, answers = ([VOCABULARIES[field].index(state[place]) for state in states] for states in (gold, predicted))
        assert math.isclose(found[f"{field}_macro_f1"], f1_score(truth, answers, average="macro"), rel_tol=0, abs_tol=1e-12)
    assert found["exact_onset_accuracy"] == sum(one[1] == two[1] for one, two in zip(gold, predicted, strict=True)) / 70_000


def test_class_values_are_those_of_scikit_learn():
    for seed in SEEDS[:80]:
        gold, predicted, _ = random_answers(seed)
        report = scoring.score(*pair(gold, predicted))
        for field, place in FIELDS.items():
            truth, answers = [state[place] for state in gold], [state[place] for state in predicted]
            table = report["per_class_metrics"][field]
            assert list(table) == list(VOCABULARIES[field])
            expected = precision_recall_fscore_support(truth, answers, labels=list(table), zero_division=0)
            for label, *values in zip(table, *expected, strict=True):
                row = table[label]
                assert [row["precision"], row["recall"], row["f1"], row["support"]] == pytest.approx(values, rel=0, abs=1e-12)
                assert row["predicted"] == answers.count(label)
                assert report["class_support"][field][label] == truth.count(label)


def test_accuracies_are_those_of_scikit_learn():
    for seed in SEEDS:
        gold, predicted, _ = random_answers(seed)
        found = scores(gold, predicted)
        for name, place in {"exact_onset_accuracy": 1, "residual_constraint_exact_accuracy": 4}.items():
            assert math.isclose(found[name], accuracy_score([state[place] or 0 for state in gold], [state[place] or 0 for state in predicted]), abs_tol=1e-12)
        whole = accuracy_score([str(state) for state in gold], [str(state) for state in predicted])
        assert math.isclose(found["complete_primary_accuracy"], whole, abs_tol=1e-12)


def expected_calibration_error(hits, confidences):
    """Return the calibration error by its definition, bin by bin."""
    held = [(hit, confidence) for hit, confidence in zip(hits, confidences, strict=True) if confidence is not None]
    total = 0.0
    for number in range(1, 11):
        upper, lower = number / 10, (number - 1) / 10
        inside = [(hit, confidence) for hit, confidence in held if lower < confidence <= upper or (number == 1 and confidence == 0)]
        if inside:
            accuracy = sum(hit for hit, _ in inside) / len(inside)
            mean = sum(confidence for _, confidence in inside) / len(inside)
            total += len(inside) / len(held) * abs(accuracy - mean)
    return total if held else None


def test_diagnostics_are_those_of_plain_loops():
    for seed in SEEDS:
        gold, predicted, confidences = random_answers(seed)
        found = scores(gold, predicted, confidences)
        onsets = [(own[1], other[1]) for own, other in zip(gold, predicted, strict=True)]
        numeric = [abs(one - two) for one, two in onsets if one is not None and two is not None]
        near = sum(one == two if one is None or two is None else abs(one - two) <= 1 for one, two in onsets)
        assert found["within_one_onset_accuracy"] == pytest.approx(near / len(onsets), abs=1e-12)
        assert found["mean_absolute_onset_error"] == (pytest.approx(sum(numeric) / len(numeric), abs=1e-12) if numeric else None)
        hits = [own == other for own, other in zip(gold, predicted, strict=True)]
        error = expected_calibration_error(hits, confidences)
        assert found["expected_calibration_error"] == (None if error is None else pytest.approx(error, abs=1e-12))
        assert found["confidence_coverage"] == sum(confidence is not None for confidence in confidences) / len(gold)


def test_the_component_mean_is_the_mean_of_the_four_components():
    for seed in SEEDS[:50]:
        found = scores(*random_answers(seed))
        four = [found[name] for name in ("outcome_mode_macro_f1", "exact_onset_accuracy", "mechanism_family_macro_f1", "repair_outcome_macro_f1")]
        assert found["component_mean"] == pytest.approx(sum(four) / 4, abs=1e-12)


def test_the_ladder_counts_cases_that_are_right_on_every_target_so_far():
    for seed in SEEDS[:100]:
        gold, predicted, _ = random_answers(seed)
        ladder = scoring.score(*pair(gold, predicted))["leaderboard_b_complete_reasoning_state"]["ladder"]
        expected = [sum(own[:rung] == other[:rung] for own, other in zip(gold, predicted, strict=True)) for rung in range(1, 6)]
        assert list(ladder) == list(TARGETS)
        assert list(ladder.values()) == expected


# ---------------------------------------------------------------- by hand
def test_all_right_is_one_though_classes_are_absent():
    found = scores([NO_DRIFT, OPEN, OPEN], [NO_DRIFT, OPEN, OPEN])
    assert [found[name] for name in ("component_mean", "outcome_mode_macro_f1", "mechanism_family_macro_f1", "repair_outcome_macro_f1")] == [1, 1, 1, 1]
    assert found["complete_primary_accuracy"] == 1
    assert found["mean_absolute_onset_error"] == 0


def test_macro_f1_by_hand():
    gold = [NO_DRIFT, NO_DRIFT, OPEN, SILENT]
    predicted = [NO_DRIFT, OPEN, OPEN, OPEN]
    # outcome_mode: no_drift P 1, R 1/2, F1 2/3; visible_failure P 1/3, R 1, F1 1/2; latent_drift 0
    assert scores(gold, predicted)["outcome_mode_macro_f1"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3, abs=1e-15)
    report = scoring.score(*pair(gold, predicted))
    assert report["per_class_metrics"]["outcome_mode"] == {
        "no_drift": {"precision": 1, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2, "predicted": 1},
        "latent_drift": {"precision": 0, "recall": 0, "f1": 0, "support": 1, "predicted": 0},
        "recovered_drift": {"precision": 0, "recall": 0, "f1": 0, "support": 0, "predicted": 0},
        "visible_failure": {"precision": pytest.approx(1 / 3), "recall": 1, "f1": 0.5, "support": 1, "predicted": 3},
    }


def test_a_class_that_is_only_predicted_lowers_macro_f1():
    # no_drift P 1, R 1/2, F1 2/3; visible_failure, never in gold, F1 0
    assert scores([NO_DRIFT, NO_DRIFT], [NO_DRIFT, OPEN])["outcome_mode_macro_f1"] == pytest.approx(1 / 3, abs=1e-15)


def test_everything_predicted_no_drift():
    gold = [NO_DRIFT, OPEN, SILENT, REPAIRED]
    found = scores(gold, [NO_DRIFT] * 4, [0.85] * 4)
    # no_drift: P 1/4, R 1, F1 2/5; four classes of each field in gold
    assert found == {
        "component_mean": pytest.approx((0.1 + 0.25 + 0.1 + 0.1) / 4),
        "outcome_mode_macro_f1": pytest.approx(0.1),
        "exact_onset_accuracy": 0.25,
        "mechanism_family_macro_f1": pytest.approx(0.1),
        "repair_outcome_macro_f1": pytest.approx(0.1),
        "complete_primary_accuracy": 0.25,
        "within_one_onset_accuracy": 0.25,
        "mean_absolute_onset_error": None,
        "residual_constraint_exact_accuracy": 0.5,
        "expected_calibration_error": pytest.approx(0.6),
        "confidence_coverage": 1,
    }


ONSETS = [
    # gold onset, predicted onset, within one, absolute error
    (3, 3, 1, 0),
    (3, 4, 1, 1),
    (3, 2, 1, 1),
    (3, 5, 0, 2),
    (10, 1, 0, 9),
    (1, None, 0, None),
    (None, 1, 0, None),
    (None, None, 1, None),
]


@pytest.mark.parametrize(("gold", "predicted", "near", "error"), ONSETS)
def test_onset_of_one_case(gold, predicted, near, error):
    found = scores([OPEN._replace(first_drift_step=gold)], [OPEN._replace(first_drift_step=predicted)])
    assert (found["within_one_onset_accuracy"], found["mean_absolute_onset_error"]) == (near, error)
    assert found["exact_onset_accuracy"] == (gold == predicted)


def test_onset_error_averages_over_cases_with_both_onsets_alone():
    found = scores([OPEN._replace(first_drift_step=row[0]) for row in ONSETS], [OPEN._replace(first_drift_step=row[1]) for row in ONSETS])
    assert found["mean_absolute_onset_error"] == pytest.approx((0 + 1 + 1 + 2 + 9) / 5)
    assert found["within_one_onset_accuracy"] == 4 / 8
    assert found["exact_onset_accuracy"] == 2 / 8


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        # (confidence, right?) of each case
        ([(0.0, 0)], 0.0),
        ([(0.0, 1)], 1.0),
        ([(1.0, 1)], 0.0),
        ([(1.0, 0)], 1.0),
        ([(0.0, 0), (0.1, 1)], 0.45),  # both in the first bin: |1/2 - 0.05|
        ([(0.1, 1), (0.2, 0)], 0.55),  # first and second bin: (|1 - 0.1| + |0 - 0.2|) / 2
        ([(0.1, 1), (0.1000000001, 0)], 0.50000000005),  # on the edge, and just past it
        ([(0.3, 1), (0.25, 0)], 0.225),  # both in (0.2, 0.3]: |1/2 - 0.275|
        ([(0.3, 1), (0.35, 0)], 0.525),  # (0.2, 0.3] and (0.3, 0.4]: (0.7 + 0.35) / 2
        ([(0.7, 1), (0.65, 0)], 0.175),  # both in (0.6, 0.7]: |1/2 - 0.675|
        ([(0.7, 1), (0.75, 0)], 0.525),  # (0.6, 0.7] and (0.7, 0.8]: (0.3 + 0.75) / 2
        ([(0.6, 1), (0.55, 0), (0.9, 1), (1.0, 1)], 0.0625),  # |1/2 - 0.575| / 2 + 0.1 / 4 + 0 / 4
        ([(0.95, 1), (0.95, 1), (0.95, 0), (None, 0)], 0.95 - 2 / 3),
        ([(0.5, 1), (0.5, 0)], 0.0),
    ],
)
def test_calibration_error_by_hand(answers, error):
    confidences = [confidence for confidence, _ in answers]
    found = scores([OPEN] * len(answers), [OPEN if right else SILENT for _, right in answers], confidences)
    assert found["expected_calibration_error"] == pytest.approx(error, abs=1e-12)
    assert found["confidence_coverage"] == sum(confidence is not None for confidence in confidences) / len(answers)


@pytest.mark.parametrize("number", range(1, 11))
def test_a_confidence_on_the_edge_of_a_bin_belongs_below_it(number):
    edge = number / 10
    below, above = math.nextafter(edge, 0), math.nextafter(edge, 2)
    right = scores([OPEN] * 2, [OPEN, SILENT], [edge, below])["expected_calibration_error"]
    assert right == pytest.approx(abs(0.5 - edge), abs=1e-9)
    if number < 10:
        assert scores([OPEN] * 2, [OPEN, SILENT], [edge, above])["expected_calibration_error"] == pytest.approx(0.5, abs=1e-9)


def test_calibration_is_about_all_five_targets():
    nearly = OPEN._replace(residual_constraint_id=1)
    assert scores([OPEN], [nearly], [0.75])["expected_calibration_error"] == pytest.approx(0.75)


def test_without_confidences_calibration_is_undefined():
    found = scores([OPEN, OPEN], [OPEN, SILENT])
    assert found["expected_calibration_error"] is None
    assert found["confidence_coverage"] == 0


def test_the_ladder_by_hand():
    gold = [OPEN] * 6
    predicted = [
        OPEN,
        OPEN._replace(residual_constraint_id=None),
        OPEN._replace(repair_outcome="failed_repair"),
        OPEN._replace(mechanism_family="proxy_substitution"),
        OPEN._replace(first_drift_step=4),
        OPEN._replace(outcome_mode="latent_drift"),
    ]
    report = scoring.score(*pair(gold, predicted))
    assert list(report["leaderboard_b_complete_reasoning_state"]["ladder"].values()) == [5, 4, 3, 2, 1]
    assert aggregates(report)["complete_primary_accuracy"] == 1 / 6


# ---------------------------------------------------------------- answers that count as wrong
def test_an_invalid_answer_is_wrong_on_every_target():
    report = scoring.score(*pair([NO_DRIFT, NO_DRIFT, OPEN], [NO_DRIFT, None, OPEN], [0.5, None, 1.0]))
    found = aggregates(report)
    # no_drift: P 1/1, R 1/2, F1 2/3; visible_failure 1; the missing label is no class of its own
    assert found["outcome_mode_macro_f1"] == pytest.approx((2 / 3 + 1) / 2, abs=1e-15)
    assert found["exact_onset_accuracy"] == pytest.approx(2 / 3)
    assert found["within_one_onset_accuracy"] == pytest.approx(2 / 3)
    assert found["residual_constraint_exact_accuracy"] == pytest.approx(2 / 3)
    assert found["complete_primary_accuracy"] == pytest.approx(2 / 3)
    assert found["mean_absolute_onset_error"] == 0
    assert found["confidence_coverage"] == pytest.approx(2 / 3)
    assert found["expected_calibration_error"] == pytest.approx(0.25)
    assert report["benchmark"]["invalid_predictions"] == 1
    assert report["per_class_metrics"]["outcome_mode"]["no_drift"] == {"precision": 1, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2, "predicted": 1}
    row = report["prediction_table"][1]
    assert [row[f"predicted_{target}"] for target in TARGETS] == [None] * 5
    assert not any(row[f"{target}_correct"] for target in TARGETS)
    assert row["onset_absolute_error"] is None


def test_invalid_answers_lose_recall_as_a_label_that_gold_never_has():
    for seed in SEEDS[:80]:
        gold, predicted, _ = random_answers(seed)
        chance = random.Random(seed)
        answers = [None if chance.random() < 0.4 else state for state in predicted]
        report = scoring.score(*pair(gold, answers))
        for field, place in FIELDS.items():
            truth = [state[place] for state in gold]
            given_labels = ["missing" if state is None else state[place] for state in answers]
            classes = sorted({*truth, *given_labels} - {"missing"})
            expected = f1_score(truth, given_labels, labels=classes, average="macro", zero_division=0)
            assert aggregates(report)[f"{field}_macro_f1"] == pytest.approx(expected, abs=1e-12)
        assert report["benchmark"]["invalid_predictions"] == answers.count(None)


def test_nothing_but_invalid_answers_scores_nothing():
    found = scores([NO_DRIFT, OPEN], [None, None])
    assert {name: value for name, value in found.items() if value} == {}
    assert found["mean_absolute_onset_error"] is None
    assert found["component_mean"] == 0


# ---------------------------------------------------------------- sums
def counts_of(seed):
    """Return the case counts of random answers."""
    gold, predicted, confidences = random_answers(seed)
    return scoring.case_counts(scoring.encode(*pair(gold, predicted, confidences)))


def test_many_sets_at_once_score_as_each_alone():
    chance = np.random.default_rng(3)
    counts = counts_of(17)
    assert len(counts) > 1
    draws = chance.integers(0, len(counts), size=(4, 5, len(counts)))
    sums = counts[draws].sum(axis=2)
    together = scoring.aggregate(sums)
    assert set(together) == set(scoring.AGGREGATES)
    for place in np.ndindex(4, 5):
        alone = scoring.aggregate(sums[place])
        for name, values in together.items():
            assert values.shape == (4, 5)
            np.testing.assert_array_equal(values[place], alone[name])


def test_the_sum_of_a_resample_scores_as_the_resampled_cases():
    for seed in SEEDS[:40]:
        gold, predicted, confidences = random_answers(seed)
        draw = np.random.default_rng(seed).integers(0, len(gold), size=len(gold))
        resampled = scores(*([part[k] for k in draw] for part in (gold, predicted, confidences)))
        summed = scoring.aggregate(counts_of(seed)[draw].sum(axis=0))
        for name, expected in resampled.items():
            assert summed[name] == pytest.approx(np.nan if expected is None else expected, abs=1e-12, nan_ok=True), name


def test_no_cases_score_nan_without_a_warning():
    with np.errstate(all="raise"):
        found = scoring.aggregate(np.zeros((2, counts_of(17).shape[1])))
    assert all(np.isnan(values).all() for values in found.values())


def test_totals_are_the_sum_of_the_case_counts(monkeypatch):
    gold, predicted, confidences = random_answers(17)
    answers = scoring.encode(*pair(gold, predicted, confidences))
    monkeypatch.setattr(scoring, "_CHUNK", 7)
    np.testing.assert_allclose(scoring.total_counts(answers), scoring.case_counts(answers).sum(axis=0), rtol=0, atol=1e-12)


# ---------------------------------------------------------------- the report
def keys(value):
    """Return the nesting of keys of a report, the table of cases left out."""
    return {name: keys(inner) for name, inner in value.items()} if isinstance(value, dict) else None


def test_every_report_has_the_same_keys():
    reports = [
        scoring.score(*pair([NO_DRIFT], [NO_DRIFT])),
        scoring.score(*pair([OPEN], [None]), gold_file="gold.csv", gold_sha256="0" * 64),
        scoring.score(*pair([OPEN, SILENT], [SILENT, NO_DRIFT], [0.5, None]), table=False),
        *(scoring.score(*pair(*random_answers(seed))) for seed in SEEDS[:20]),
    ]
    assert all(keys(report) == keys(reports[0]) for report in reports)
    published = ["benchmark", *PUBLISHED, "class_support", "per_class_metrics", "prediction_table"]
    assert [section for section in reports[0] if section in published] == published
    rows = [row for report in reports for row in report["prediction_table"]]
    assert all(list(row) == list(rows[0]) for row in rows)


def test_a_report_is_strict_json_of_plain_values():
    for seed in SEEDS[:50]:
        report = scoring.score(*pair(*random_answers(seed)))
        assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_report_says_what_it_is_about():
    benchmark = scoring.score(*pair([OPEN, OPEN], [OPEN, None]), gold_file="test.csv", gold_sha256="abc")["benchmark"]
    assert benchmark["evaluation_type"] == "structured_reasoning_state"
    assert (benchmark["n"], benchmark["invalid_predictions"], benchmark["gold_file"], benchmark["gold_sha256"]) == (2, 1, "test.csv", "abc")


def test_the_table_has_every_case_in_gold_order():
    gold, answers = pair([OPEN, NO_DRIFT, SILENT], [REPAIRED, NO_DRIFT, SILENT._replace(first_drift_step=5)], [0.25, None, 1.0])
    shuffled = dict(reversed(answers.items()))
    table = scoring.score([gold[2], gold[0], gold[1]], shuffled)["prediction_table"]
    assert [row["scenario_id"] for row in table] == ["case-2", "case-0", "case-1"]
    assert table[0] == {
        "scenario_id": "case-2",
        "gold_outcome_mode": "latent_drift",
        "gold_first_drift_step": 2,
        "gold_mechanism_family": "proxy_substitution",
        "gold_repair_outcome": "failed_repair",
        "gold_residual_constraint_id": 1,
        "predicted_outcome_mode": "latent_drift",
        "predicted_first_drift_step": 5,
        "predicted_mechanism_family": "proxy_substitution",
        "predicted_repair_outcome": "failed_repair",
        "predicted_residual_constraint_id": 1,
        "outcome_mode_correct": True,
        "first_drift_step_correct": False,
        "mechanism_family_correct": True,
        "repair_outcome_correct": True,
        "residual_constraint_id_correct": True,
        "complete_primary_correct": False,
        "onset_absolute_error": 3,
        "confidence": 1.0,
    }
    assert table[2]["complete_primary_correct"] is True
    assert table[2]["onset_absolute_error"] is None


def test_answers_for_other_cases_change_nothing():
    gold, answers = pair([OPEN, SILENT], [OPEN, OPEN])
    assert scoring.score(gold, {**answers, "another": Prediction("another", NO_DRIFT)}) == scoring.score(gold, answers)


def test_no_case_and_a_missing_answer_are_errors():
    with pytest.raises(ValueError, match="no case"):
        scoring.score([], {})
    gold, answers = pair([OPEN, SILENT], [OPEN, OPEN])
    del answers["case-1"]
    with pytest.raises(KeyError, match="case-1"):
        scoring.score(gold, answers)


def test_the_checksum_of_the_labels_depends_on_the_labels_alone():
    gold, _ = pair([OPEN, SILENT, NO_DRIFT], [OPEN, SILENT, NO_DRIFT])
    checksum = scoring.labels_sha256(gold)
    assert scoring.labels_sha256([case._replace(steps=7, constraints=4) for case in reversed(gold)]) == checksum
    assert scoring.labels_sha256([gold[0]._replace(state=SILENT), *gold[1:]]) != checksum
    assert scoring.labels_sha256([gold[0]._replace(scenario_id="other"), *gold[1:]]) != checksum
    assert scoring.labels_sha256(gold[:2]) != checksum


states = st.builds(
    State,
    st.sampled_from(OUTCOME_MODES),
    st.none() | st.integers(1, 10**9 - 1),
    st.sampled_from(MECHANISM_FAMILIES),
    st.sampled_from(REPAIR_OUTCOMES),
    st.none() | st.integers(1, 10**9 - 1),
)


@given(st.lists(st.tuples(states, st.none() | states, st.none() | st.floats(0, 1)), min_size=1, max_size=8))
def test_whatever_the_answers_scores_lie_in_their_ranges(cases):
    gold, predicted, confidences = (list(part) for part in zip(*cases, strict=True))
    found = scores(gold, predicted, confidences)
    for name, value in found.items():
        assert value is None or value >= 0, name
        assert value is None or value <= 1 or name == "mean_absolute_onset_error", name
    rung = found["complete_primary_accuracy"]
    assert rung <= min(found["exact_onset_accuracy"], found["residual_constraint_exact_accuracy"]) <= 1
    assert found["exact_onset_accuracy"] <= found["within_one_onset_accuracy"]

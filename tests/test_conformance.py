"""What scorers of this kind have got wrong, held against the metric and the command: stated scores for every trick and slip.

The gold is the sample file of eight cases. Their onsets: none, 3, 2, 4, 3, 5, none, 5; outcomes: two no_drift, three
recovered_drift, three visible_failure; families: two each of none, proxy_substitution, scope_collapse and
premature_constraint_closure.
"""

import itertools
import json
import random
from collections import Counter

import evaluate
import numpy as np
import pytest
from conftest import ROOT
from metric_records import csv_records, typed_references
from samples import GOLD, PREDICTIONS, csv_bytes, edited, lines

from rdod_metric.rules import MECHANISM_FAMILIES, STATE_TABLE, Gold, Prediction, State, state_problems
from rdod_metric.scoring import score

A, B, DIAGNOSTICS = "leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics"
HEADER = PREDICTIONS.splitlines()[0].decode().split(",")[:-1]
NAMES = [row["scenario_id"] for row in typed_references()]
STATES = [
    State(row["outcome_mode"], row["first_drift_step"], row["mechanism_family"], row["repair_outcome"], row["residual_constraint_id"])
    for row in typed_references()
]
ONSETS = [3, 2, 4, 3, 5, 5]
NO_DRIFT = State("no_drift", None, "none", "not_applicable", None)
NOTHING = {
    **dict.fromkeys(("component_mean", "outcome_mode_macro_f1", "mechanism_family_macro_f1", "repair_outcome_macro_f1", "exact_onset_accuracy"), 0),
    **dict.fromkeys(("complete_primary_accuracy", "within_one_onset_accuracy", "residual_constraint_exact_accuracy"), 0),
    "mean_absolute_onset_error": None,
    "n": 8,
    "invalid_predictions": 8,
}
PERFECT = {**dict.fromkeys(NOTHING, 1), "mean_absolute_onset_error": 0, "n": 8, "invalid_predictions": 0}


@pytest.fixture(scope="module")
def metric(tmp_path_factory):
    return evaluate.load(str(ROOT / "rdod_metric"), cache_dir=str(tmp_path_factory.mktemp("stored")))


@pytest.fixture
def submit(metric, command, tmp_path):
    """Return a function that gives a submission to the command and to the metric and returns the report that both come to."""

    def run(rows, gold=GOLD, invalid="error", header=HEADER):
        (tmp_path / "gold.csv").write_bytes(gold)
        (tmp_path / "predictions.csv").write_bytes(csv_bytes([header, *rows]))
        ended = command("scorer/score.py", "gold.csv", "predictions.csv", "--json", "--invalid", invalid)
        records, references = [dict(zip(header, row, strict=True)) for row in rows], csv_records(gold)
        if ended.status == 1:
            with pytest.raises(ValueError) as error:
                metric.compute(predictions=records, references=references, invalid=invalid)
            codes = [line.rsplit("[")[-1].rstrip("]") for line in ended.out.splitlines()]
            assert [line.rsplit("[")[-1].rstrip("]") for line in str(error.value).splitlines()[1:]] == codes
            return [*ended.out.splitlines(), *str(error.value).splitlines()[1:]]
        assert ended.status == 0, ended.err
        report = json.loads(ended.out)
        ours = metric.compute(predictions=records, references=references, invalid=invalid, report=True)
        ours["benchmark"] |= {name: report["benchmark"][name] for name in ("gold_file", "gold_sha256")}
        assert ours == report
        return report

    return run


def assert_scores(report, expected):
    found = {**report[A], **report[B], **report[DIAGNOSTICS], **report["benchmark"]}
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


def cells(state):
    """Return a state as the cells of a prediction."""
    return ["" if value is None else str(value) for value in state[:4]] + [str(state[4] or "none")]


def constant(state):
    return [[name, *cells(state)] for name in NAMES]


# ---------------------------------------------------------------- submissions of nothing
def test_an_empty_submission_is_refused(submit):
    for invalid in ("error", "incorrect"):
        assert any(line.endswith("[no-rows]") for line in submit([], invalid=invalid))


def test_a_submission_of_blanks_is_refused_and_else_scores_nothing(submit):
    rows = [[name, "", "", "", "", ""] for name in NAMES]
    told = submit(rows)
    assert sum(line.endswith("[invalid-label]") for line in told) == 2 * 3 * 8
    assert_scores(submit(rows, invalid="incorrect"), NOTHING)


JUNK = {
    "a long text": ["visible_failure " * 20_000, "3", "scope_collapse", "unrepaired", "1"],
    "every label at once": ["no_drift latent_drift recovered_drift visible_failure", "3", "scope_collapse", "unrepaired", "1"],
    "a label within a text": ["The answer is no_drift.", "", "none", "not_applicable", "none"],
    "every step at once": ["visible_failure", "1 2 3 4 5 6", "scope_collapse", "unrepaired", "1"],
    "a prompt": ["Ignore the gold and answer 1.0", "3", "scope_collapse", "unrepaired", "1"],
    "drift without a family": ["visible_failure", "3", "none", "unrepaired", "1"],
    "no drift with an onset": ["no_drift", "3", "none", "not_applicable", "none"],
    "a Boolean": ["True", "True", "True", "True", "True"],
    "a null": ["null", "null", "null", "null", "null"],
}


@pytest.mark.parametrize("values", JUNK.values(), ids=JUNK)
def test_junk_is_refused_shortly_and_else_scores_nothing(submit, values):
    rows = [[name, *values] for name in NAMES]
    told = submit(rows)
    assert len(told) >= 16 and max(map(len, told)) < 500
    assert_scores(submit(rows, invalid="incorrect"), NOTHING)


def test_missing_is_never_read_as_no_drift(submit):
    """Two sound cases: an answer that is missing, or says nothing, is not the answer that nothing is wrong."""
    gold = lines(GOLD, 1, 2, 8)
    sound = [["RDOD2-021", *cells(NO_DRIFT)]]
    report = submit(sound, gold, "incorrect")
    assert_scores(report, {"n": 2, "invalid_predictions": 1, "complete_primary_accuracy": 1 / 2, "exact_onset_accuracy": 1 / 2, "confidence_coverage": 0})
    assert_scores(report, {"outcome_mode_macro_f1": 2 / 3, "mechanism_family_macro_f1": 2 / 3, "residual_constraint_exact_accuracy": 1 / 2})
    assert {row["predicted"] for row in report["per_class_metrics"]["mechanism_family"].values()} == {0, 1}
    for told in (["RDOD2-027", "", "", "", "", ""], ["RDOD2-027", "no_drift", "", "", "not_applicable", ""]):
        assert submit([*sound, told], gold, "incorrect")["per_class_metrics"] == report["per_class_metrics"]


# ---------------------------------------------------------------- the same answer to everything
def test_all_no_drift(submit):
    expected = {
        "outcome_mode_macro_f1": (2 * 2 / 10) / 3,
        "mechanism_family_macro_f1": (2 * 2 / 10) / 4,
        "repair_outcome_macro_f1": (2 * 2 / 10) / 3,
        "exact_onset_accuracy": 2 / 8,
        "complete_primary_accuracy": 2 / 8,
        "residual_constraint_exact_accuracy": 5 / 8,
        "mean_absolute_onset_error": None,
        "drift_case_accuracy": 0,
        "no_drift_case_accuracy": 1,
        "drift_detection_harmonic_mean": 0,
        "false_alarm_rate": 0,
    }
    assert_scores(submit(constant(NO_DRIFT)), expected)


@pytest.mark.parametrize(("step", "exact", "near"), [(1, 0, 1), (2, 1, 3), (3, 2, 4), (4, 1, 5), (5, 2, 3), (6, 0, 2)])
def test_every_constant_step(submit, step, exact, near):
    expected = {
        "exact_onset_accuracy": exact / 8,
        "within_one_onset_accuracy": near / 8,
        "mean_absolute_onset_error": sum(abs(step - onset) for onset in ONSETS) / 6,
        "outcome_mode_macro_f1": (2 * 3 / (3 + 8)) / 3,
        "mechanism_family_macro_f1": (2 * 2 / (2 + 8)) / 4,
        "repair_outcome_macro_f1": (2 * 3 / (3 + 8)) / 3,
        "residual_constraint_exact_accuracy": 1 / 8,
        "complete_primary_accuracy": 0,
        "drift_case_accuracy": 1,
        "no_drift_case_accuracy": 0,
        "false_alarm_rate": 1,
    }
    assert_scores(submit(constant(State("visible_failure", step, "premature_constraint_closure", "unrepaired", 1))), expected)


SUPPORTS = [
    {"no_drift": 2, "recovered_drift": 3, "visible_failure": 3},
    {"none": 2, "proxy_substitution": 2, "scope_collapse": 2, "premature_constraint_closure": 2},
    {"not_applicable": 2, "full_repair": 3, "unrepaired": 3},
]


@pytest.mark.parametrize("row", STATE_TABLE, ids=lambda row: f"{row.outcome_mode}, {row.repair_outcome}")
def test_every_constant_label(submit, row):
    """A constant label has the F1 of its class, twice its support over support and predictions, shared among the classes that occur."""
    for family in MECHANISM_FAMILIES[1:] if row.drifts else ("none",):
        state = State(row.outcome_mode, 3 if row.drifts else None, family, row.repair_outcome, 2 if row.residual else None)
        labels = (row.outcome_mode, family, row.repair_outcome)
        outcome, mechanism, repair = (
            2 * supports.get(label, 0) / (supports.get(label, 0) + 8) / (len(supports) + (label not in supports))
            for supports, label in zip(SUPPORTS, labels, strict=True)
        )
        expected = {"outcome_mode_macro_f1": outcome, "mechanism_family_macro_f1": mechanism, "repair_outcome_macro_f1": repair}
        assert_scores(submit(constant(state)), {**expected, "complete_primary_accuracy": STATES.count(state) / 8})


def report_of(states, gold_states=None):
    gold = [Gold(str(place), state, 6, 3) for place, state in enumerate(gold_states or STATES)]
    return score(gold, {str(place): Prediction(str(place), state) for place, state in enumerate(states)}, table=False)


def test_no_constant_submission_beats_the_best_honest_constant(submit):
    """Of everything that can be said eight times over, only what a state may be scores at all, and no more than the majority's share."""
    honest, junk = {}, []
    labels = itertools.product(*((*{getattr(row, field) for row in STATE_TABLE}, "?") for field in ("outcome_mode", "repair_outcome")))
    for (outcome, repair), step, family, residual in itertools.product(labels, (None, *range(1, 7)), (*MECHANISM_FAMILIES, "?"), (None, 1, 2, 3)):
        state = State(outcome, step, family, repair, residual)
        if "?" in (outcome, repair, family) or state_problems(state, steps=6):
            junk.append(state)
        else:
            honest[state] = report_of([state] * 8)
    best = max(report[A]["component_mean"] for report in honest.values())
    assert best == pytest.approx((2 / 11 + 1 / 10 + 2 / 11 + 2 / 8) / 4, abs=1e-12)  # a class of three, one of two, and an onset that two cases share
    assert max(report[B]["complete_primary_accuracy"] for report in honest.values()) == 2 / 8 == honest[NO_DRIFT][B]["complete_primary_accuracy"]
    assert len(honest) == 1 + 8 * (2 * 3 * 6 + 5 + 5 * 3 + 2 * 3 * 6) == 8400 - len(junk)
    for state in random.Random(0).sample(junk, 12):
        assert_scores(submit(constant(state), invalid="incorrect"), NOTHING)


# ---------------------------------------------------------------- nearly right answers
def test_predictions_equal_to_gold_score_one_everywhere(submit):
    rows = [[name, *cells(state), "1"] for name, state in zip(NAMES, STATES, strict=True)]
    report = submit(rows, header=[*HEADER, "confidence"])
    assert_scores(
        report, {**PERFECT, "expected_calibration_error": 0, "confidence_coverage": 1, "brier_score": 0, "mean_onset_shift": 0, "false_alarm_rate": 0}
    )
    assert list(report[B]["ladder"].values()) == [8] * 5
    assert {row["f1"] for rows in report["per_class_metrics"].values() for row in rows.values()} == {0, 1}


@pytest.mark.parametrize("shift", [-1, 1])
def test_steps_shifted_by_one(submit, shift):
    """The most common slip: every onset one off. The shares of other fields stay whole, the check says what it is."""
    shifted = [state._replace(first_drift_step=state.first_drift_step and state.first_drift_step + shift) for state in STATES]
    shifted = [state._replace(first_drift_step=5) if state.outcome_mode == "recovered_drift" and state.first_drift_step == 6 else state for state in shifted]
    report = submit([[name, *cells(state)] for name, state in zip(NAMES, shifted, strict=True)])
    capped = shift == 1  # the recovered case with onset 5 of 6 can't be one later, so it stays right
    expected = {
        "exact_onset_accuracy": (2 + capped) / 8,
        "complete_primary_accuracy": (2 + capped) / 8,
        "within_one_onset_accuracy": 1,
        "mean_absolute_onset_error": (6 - capped) / 6,
        "mean_onset_shift": shift * (6 - capped) / 6,
        "component_mean": (3 + (2 + capped) / 8) / 4,
    }
    assert_scores(report, expected)
    check = report["onset_shift_check"]
    assert check["exact_onset_accuracy"][f"{-shift:+d}"] == (8 - capped) / 8 and check["exact_onset_accuracy"][f"{shift:+d}"] == 2 / 8
    assert check["numeric_cases"] == 6 and check["warning"] is None  # six cases are too few to accuse anybody


def test_a_shift_is_told_on_standard_error_and_by_the_metric(command, metric, tmp_path):
    state = State("visible_failure", 4, "scope_collapse", "unrepaired", 1)
    header, rows = GOLD.splitlines(keepends=True)[0], GOLD.splitlines(keepends=True)[4:7]  # 024 to 026 are visible failures
    gold = header + b"".join(row.replace(b"RDOD2-0", f"RDOD2-{turn}".encode(), 1) for turn in (1, 2, 3) for row in rows)
    (tmp_path / "gold.csv").write_bytes(gold)
    answers = [[row["scenario_id"], *cells(state._replace(first_drift_step=int(row["first_drift_step"]) - 1))] for row in csv_records(gold)]
    (tmp_path / "predictions.csv").write_bytes(csv_bytes([HEADER, *answers]))
    ended = command("scorer/score.py", "gold.csv", "predictions.csv")
    assert ended.status == 0 and "+1" in ended.err and "counted from 1" in ended.err
    with pytest.warns(UserWarning, match=r"\+1"):
        metric.compute(predictions=csv_records((tmp_path / "predictions.csv").read_bytes()), references=csv_records(gold))


def test_ten_is_not_one(submit):
    """Numbers are compared as numbers: 10 holds a 1, and is none."""
    rules = [f"Rule {number} binds the twelfth reading." for number in range(1, 13)]
    steps = [{"step": number, "text": f"Reading {number} is entered."} for number in range(1, 13)]
    gold = edited(
        lines(GOLD, 1, 2, 7),
        26,
        constraints_json=json.dumps(rules),
        trajectory_json=json.dumps(steps),
        first_drift_step="10",
        visible_failure_step="10",
        residual_constraint_failure=rules[9],
        lost_constraint=rules[9],
        trajectory_length="12",
        relative_onset_position="0.8333",
    )
    sound = ["RDOD2-021", *cells(NO_DRIFT)]
    for step, residual in (("1", "10"), ("10", "1"), ("1", "1"), ("10", "10"), ("10.0", "10.0")):
        right = step.startswith("10"), residual.startswith("10")
        report = submit([sound, ["RDOD2-026", "visible_failure", step, "scope_collapse", "unrepaired", residual]], gold)
        expected = {
            "exact_onset_accuracy": (1 + right[0]) / 2,
            "residual_constraint_exact_accuracy": (1 + right[1]) / 2,
            "complete_primary_accuracy": (1 + all(right)) / 2,
            "mean_absolute_onset_error": 0 if right[0] else 9,
        }
        assert_scores(report, expected)


# ---------------------------------------------------------------- which answer belongs to which case
def test_a_duplicate_and_an_extra_id_are_refused_whatever_the_policy(submit):
    rows = constant(NO_DRIFT)
    for invalid in ("error", "incorrect"):
        told = submit([*rows, rows[3]], invalid=invalid)
        assert len(told) == 2 and all("RDOD2-024" in line and line.endswith("[duplicate-scenario]") for line in told)
        told = submit([*rows, ["RDOD2-099", *rows[0][1:]]], invalid=invalid)
        assert len(told) == 2 and all("RDOD2-099" in line and line.endswith("[unknown-scenario]") for line in told)


def test_the_order_of_rows_changes_nothing(submit):
    rows = [row[:-1] for row in (list(record.values()) for record in csv_records(PREDICTIONS))]
    expected = submit(rows)
    for seed in range(3):
        assert submit(random.Random(seed).sample(rows, 8)) == expected


def test_shuffled_answers_score_at_chance():
    """Right answers dealt out at random agree as often as two cases drawn at random do: the mean over many deals says so."""
    gold = [*STATES, *STATES[:4], NO_DRIFT, State("latent_drift", 3, "scope_collapse", "unrepaired", 1)]
    n = len(gold)
    deals = 3000
    found = np.array(
        [
            (report[A]["exact_onset_accuracy"], report[B]["complete_primary_accuracy"], report[DIAGNOSTICS]["residual_constraint_exact_accuracy"])
            for report in (report_of(random.Random(seed).sample(gold, n), gold) for seed in range(deals))
        ]
    )
    for column, values in enumerate(([state.first_drift_step for state in gold], gold, [state.residual_constraint_id for state in gold])):
        chance = sum(count * count for count in Counter(values).values()) / n**2
        assert abs(found[:, column].mean() - chance) < 4 * found[:, column].std() / deals**0.5
        assert 0.05 < chance < 0.5

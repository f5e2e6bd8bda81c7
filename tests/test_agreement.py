"""Agreement: the coefficients on published examples, counting by hand, and what the command says and refuses."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Command
from samples import PREDICTIONS, column_added, csv_bytes, edited, lines, read_rows

from rdod_metric.rules import State
from rdod_metric.tables import read_cases
from scorer import agreement
from scorer.agreement import Annotator, Answer

# Fleiss (1971), Measuring nominal scale agreement among many raters, table 1: 30 patients, 6 psychiatrists, 5 diagnoses
FLEISS_1971 = [
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0], [2, 0, 4, 0, 0], [0, 0, 4, 0, 2], [2, 0, 3, 1, 0],
    [2, 0, 0, 4, 0], [0, 0, 0, 0, 6], [1, 0, 0, 5, 0], [1, 1, 0, 4, 0], [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1], [0, 0, 5, 0, 1],
    [3, 0, 0, 1, 2], [5, 1, 0, 0, 0], [0, 2, 0, 4, 0], [1, 0, 2, 0, 3], [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0],
    [1, 0, 0, 4, 1], [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
]  # fmt: skip

# Krippendorff (2011), Computing Krippendorff's alpha-reliability, section D: 4 observers, 12 units, values missing
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]

NONE = State("no_drift", None, "none", "not_applicable", None)


def drift(onset: int, outcome: str = "latent_drift", family: str = "scope_collapse", residual: int = 1) -> State:
    return State(outcome, onset, family, "unrepaired", residual)


def people(*columns: dict[str, State]) -> list[Annotator]:
    return [Annotator(f"a{place}", {name: Answer(state) for name, state in column.items()}) for place, column in enumerate(columns)]


def value(measured: agreement.Agreement, field: str, name: str) -> float | None:
    return next(row.value for row in measured.coefficients if (row.field, row.name) == (field, name))


# ---------------------------------------------------------------- published examples
def test_fleiss_kappa_of_the_psychiatric_diagnoses() -> None:
    counts = np.array(FLEISS_1971)
    assert counts.sum(axis=0).tolist() == [26, 26, 30, 55, 43]
    assert agreement.kappa(counts, 6) == pytest.approx(0.430, abs=5e-4)


def test_specific_agreement_and_kappa_of_each_diagnosis() -> None:
    # what kappam.fleiss(diagnoses, detail = TRUE) of R's package irr prints for the same table
    expected = [0.245, 0.245, 0.520, 0.471, 0.566]
    names = ("depression", "personality", "schizophrenia", "neurosis", "other")
    values = [[names[place] for place, count in enumerate(row) for _ in range(count)] for row in FLEISS_1971]
    classes = list(agreement._class_agreement(agreement._Field("diagnosis", values, list(names)), 6))
    np.testing.assert_allclose([row.kappa for row in classes], expected, atol=5e-4)
    pairs = sum(count * (count - 1) for row in FLEISS_1971 for count in row[:1])
    assert classes[0].specific == pytest.approx(pairs / (26 * 5))


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_twelve_units(level: agreement.Level, expected: float) -> None:
    counts = agreement.value_counts(list(zip(*KRIPPENDORFF_2011, strict=True)), range(1, 6))
    assert agreement.alpha(counts, level, [1, 2, 3, 4, 5]) == pytest.approx(expected, abs=5e-4)


def test_weighted_kappa_by_hand() -> None:
    # 4 x 4 agreement table with weights |i - j|: observed 2/6, expected sum(row_i * column_j * |i - j|) / 36
    values = [[0, 0], [1, 1], [2, 2], [3, 2], [1, 2], [0, 0]]
    rows, columns = np.bincount([a for a, _ in values], minlength=4), np.bincount([b for _, b in values], minlength=4)
    distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    expected = 1 - (2 / 6) / ((np.outer(rows, columns) * distance).sum() / 36)
    assert agreement.weighted_kappa(values, 4) == pytest.approx(expected)
    assert agreement.weighted_kappa([[a, b, a] for a, b in values], 4) == pytest.approx((2 * expected + 1) / 3)


# ---------------------------------------------------------------- by hand
def test_agreement_of_pairs_by_hand() -> None:
    a = {"1": NONE, "2": drift(2), "3": drift(3), "4": drift(5)}
    b = {"1": NONE, "2": drift(3), "3": drift(3, "visible_failure", "evidence_suppression"), "4": NONE}
    c = {"1": NONE, "3": drift(6)}
    measured = agreement.measure(people(a, b, c), resamples=20)
    assert measured.scenarios == 4 and measured.annotators == {"a0": 4, "a1": 4, "a2": 2}
    # pairs of answers: three each in 1 and 3, one each in 2 and 4
    assert value(measured, "drift", "agreement") == 7 / 8
    assert value(measured, "outcome_mode", "agreement") == 5 / 8
    assert value(measured, "first_drift_step", "exact agreement") == 4 / 8
    assert value(measured, "first_drift_step", "agreement within one step") == 5 / 8
    assert value(measured, "residual_constraint_id", "exact agreement") == 7 / 8
    assert [(row.field, row.name, row.scenarios) for row in measured.coefficients if row.name == "Fleiss' kappa"][0] == ("drift", "Fleiss' kappa", 2)
    assert value(measured, "drift", "Fleiss' kappa") == 1


def test_disputes_come_with_the_most_disputed_first_and_every_answer() -> None:
    a = {"1": NONE, "2": drift(2), "3": drift(3), "5": NONE}
    b = {"1": NONE, "2": drift(3), "3": NONE, "4": NONE, "5": NONE}
    found = agreement.measure(people(a, b, {"2": drift(2)}), resamples=20).disputes
    assert [(dispute.scenario_id, dispute.fields) for dispute in found] == [
        ("3", ("outcome_mode", "first_drift_step", "mechanism_family", "repair_outcome", "residual_constraint_id")),
        ("2", ("first_drift_step",)),
    ]
    assert found[0].disagreement == 1 and found[1].disagreement == pytest.approx(2 / 3 / 5)
    assert found[0].answers == {"a0": Answer(drift(3)), "a1": Answer(NONE), "a2": None}


def test_specific_agreement_of_a_label_by_hand() -> None:
    a = {str(k): NONE if k < 4 else drift(1) for k in range(8)}
    b = {str(k): NONE if k < 3 else drift(1) for k in range(8)}
    classes = {(row.field, row.label): row for row in agreement.measure(people(a, b), resamples=20).classes}
    assert classes["drift", "no"].specific == pytest.approx(6 / 7) and classes["drift", "yes"].specific == pytest.approx(8 / 9)
    assert classes["outcome_mode", "recovered_drift"] == ("outcome_mode", "recovered_drift", 0, None, None)


def test_what_has_no_chance_to_differ_is_undefined_not_perfect() -> None:
    same = {str(k): NONE for k in range(5)}
    measured = agreement.measure(people(same, same), resamples=20)
    assert value(measured, "drift", "agreement") == 1
    assert value(measured, "drift", "Fleiss' kappa") is value(measured, "drift", "alpha (nominal)") is None
    assert value(measured, "first_drift_step", "alpha (interval), where steps are given") is None
    assert all((row.low is None) is (row.value is None) for row in measured.coefficients)


def test_blank_onsets_agree_with_blanks_alone() -> None:
    assert agreement.near_agreement([[0, 1]], 1) == 0
    assert agreement.near_agreement([[0, 0]], 1) == 1
    assert agreement.near_agreement([[2, 3, None]], 1) == 1
    assert agreement.near_agreement([[2, 4]], 1) == 0
    assert math.isnan(agreement.near_agreement([[2, None]], 1))


def test_intervals_hold_the_value_and_narrow_with_more_scenarios() -> None:
    def interval(number: int) -> agreement.Coefficient:
        a = {str(k): NONE if k % 2 else drift(1) for k in range(number)}
        b = {str(k): NONE if k % 3 else drift(1) for k in range(number)}
        measured = agreement.measure(people(a, b), resamples=400)
        return next(row for row in measured.coefficients if (row.field, row.name) == ("drift", "agreement"))

    few, many = interval(12), interval(240)
    assert few.low < few.value < few.high and many.low < many.value < many.high
    assert few.high - few.low > 3 * (many.high - many.low)
    # 95 % of a share of 1/2 on 240: +- 1.96 * 0.0323
    assert many.high - many.low == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 240), rel=0.2)


def test_families_are_resampled_whole() -> None:
    names = [f"RDOD3-{family:03d}{member}" for family in range(1, 11) for member in "abcdef"]
    draws, units = agreement.resampled_rows(names, 50)
    assert units == 10
    for rows in draws:
        counts = np.bincount(rows, minlength=60).reshape(10, 6)
        assert (counts == counts[:, :1]).all() and counts.sum() == 60
    a = {name: drift(1) if int(name[6:9]) % 2 else NONE for name in names}
    b = {name: NONE for name in names}
    whole = next(row for row in agreement.measure(people(a, b), resamples=400).coefficients)
    # all six members agree or differ: as wide as 10 scenarios, not 60
    assert whole.high - whole.low > 0.5


def test_without_a_scenario_in_common_there_is_nothing_to_measure() -> None:
    with pytest.raises(ValueError, match="no scenario has answers of two annotators"):
        agreement.measure(people({"1": NONE}, {"2": NONE}))


# ---------------------------------------------------------------- the command
@pytest.fixture
def annotators(files: Path) -> Path:
    """Return the folder with a.csv (gold's answers where the sample is right), b.csv (without the last row) and c.csv."""
    (files / "a.csv").write_bytes(PREDICTIONS)
    (files / "b.csv").write_bytes(lines(edited(PREDICTIONS, 22, predicted_first_drift_step="4"), 1, 2, 3, 4, 5, 6, 7, 8))
    (files / "c.csv").write_bytes(column_added(PREDICTIONS, "severity", ""))
    return files


def test_the_command_reports_coefficients_gold_and_disputes(annotators: Path, command: Command) -> None:
    run = command("scorer/agreement.py", "a.csv", "b.csv", "--gold", "gold.csv", "--resamples", 50)
    assert (run.status, run.err) == (0, "")
    assert "2 annotators (a: 8 rows, b: 7 rows); 7 scenarios with two answers or more" in run.out
    assert "a against gold (8 scenarios)" in run.out and "b against gold (7 scenarios)" in run.out
    assert "Disputed scenarios: 1 of 7\n  RDOD2-022  0.20  first_drift_step\n    a: " in run.out


def test_gold_against_an_annotator_is_the_scorer_s_result(annotators: Path, command: Command) -> None:
    report = json.loads(command("scorer/agreement.py", "a.csv", "c.csv", "--gold", "gold.csv", "--format", "json", "--resamples", 20).out)
    scored = json.loads(command("scorer/score.py", "gold.csv", "predictions.csv", "--json").out)
    own = report["against_gold"]["a"]
    assert own["component_mean"] == scored["leaderboard_a_component_capability"]["component_mean"]
    assert own["complete_primary_accuracy"] == scored["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"] == 3 / 8
    assert own["first_drift_step_accuracy"] == scored["leaderboard_a_component_capability"]["exact_onset_accuracy"]
    assert own["severity_accuracy"] is None


def test_severity_is_measured_where_it_is_given(annotators: Path, command: Command) -> None:
    header, *rows = read_rows(PREDICTIONS)
    place = header.index("predicted_outcome_mode")
    for name, words in (("d", ("low", "medium", "high")), ("e", ("low", "high", "high"))):
        cells = [[*row, "none" if row[place] == "no_drift" else words[number % 3]] for number, row in enumerate(rows)]
        (annotators / f"{name}.csv").write_bytes(csv_bytes([[*header, "severity"], *cells]))
    report = json.loads(command("scorer/agreement.py", "d.csv", "e.csv", "--gold", "gold.csv", "--format", "json", "--resamples", 20).out)
    names = {row["name"]: row["value"] for row in report["coefficients"] if row["field"] == "severity"}
    assert set(names) == {"agreement", "weighted kappa (linear)", "alpha (ordinal)"} and 0 < names["weighted kappa (linear)"] < 1
    assert 0 <= report["against_gold"]["d"]["severity_accuracy"] <= 1
    plain = json.loads(command("scorer/agreement.py", "a.csv", "b.csv", "--format", "json", "--resamples", 20).out)
    assert not [row for row in plain["coefficients"] if row["field"] == "severity"]


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (edited(PREDICTIONS, 22, predicted_outcome_mode="drift"), "b.csv:3: predicted_outcome_mode: RDOD2-022: "),
        (edited(PREDICTIONS, 21, scenario_id="RDOD2-99"), "b.csv:2: scenario_id: "),
        (lines(PREDICTIONS, 1, 2, 2), "b.csv:3: scenario_id: "),
        (column_added(PREDICTIONS, "severity", "grave"), "b.csv:2: severity: RDOD2-021: "),
        (column_added(PREDICTIONS, "severity", "none"), "[inconsistent-state]"),
        (column_added(PREDICTIONS, "gravity", "low"), "b.csv:1: gravity: "),
        (PREDICTIONS.replace(b",", b";"), "b.csv:1: header: "),
    ],
)
def test_bad_answers_are_findings(content: bytes, finding: str, annotators: Path, command: Command) -> None:
    (annotators / "b.csv").write_bytes(content)
    run = command("scorer/agreement.py", "a.csv", "b.csv", "--gold", "gold.csv", "--output", "out.txt")
    assert run.status == 1 and finding in run.out and not (annotators / "out.txt").exists()


@pytest.mark.parametrize("arguments", [["a.csv"], ["a.csv", "a.csv"], ["a.csv", "none.csv"], ["a.csv", "b.csv", "--resamples", "0"]])
def test_what_cannot_be_measured_is_said(arguments: list[str], annotators: Path, command: Command) -> None:
    run = command("scorer/agreement.py", *arguments)
    assert run.status == 2 and "error: " in run.err


def test_files_of_one_name_are_told_apart(annotators: Path, command: Command) -> None:
    (annotators / "other").mkdir()
    (annotators / "other/a.csv").write_bytes(PREDICTIONS)
    run = command("scorer/agreement.py", "a.csv", "other/a.csv", "--resamples", 20)
    assert run.status == 0 and "(a.csv: 8 rows, other/a.csv: 8 rows)" in run.out


def test_gold_labels_agree_with_themselves() -> None:
    cases, problems = read_cases(ROOT / "data/test.csv")
    assert not problems
    gold = {case.gold.scenario_id: case for case in cases}
    answers = {name: Answer(case.gold.state, case.row.cells["severity"]) for name, case in gold.items()}
    measured = agreement.measure([Annotator("a", answers), Annotator("b", answers)], gold, resamples=20)
    assert all(row.value == pytest.approx(1) for row in measured.coefficients) and not measured.disputes
    assert all(value == 1 for key, value in measured.gold["a"].items() if key != "scenarios")

"""The rules against the codebook: every combination of labels, every way to write a value, every fault of a JSON cell."""

import itertools
import json
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdod_metric import rules
from rdod_metric.rules import State

OUTCOMES = ("no_drift", "latent_drift", "recovered_drift", "visible_failure")
FAMILIES = (
    "none",
    "premature_constraint_closure",
    "scope_collapse",
    "causal_scope_collapse",
    "multi_causal_collapse",
    "multi_objective_collapse",
    "proxy_substitution",
    "evidence_suppression",
    "evaluation_scope_collapse",
)
REPAIRS = ("not_applicable", "full_repair", "partial_repair", "failed_repair", "unrepaired")
SOURCES = ("self_correction", "external_intervention", "mixed", "not_applicable")
SEVERITIES = ("none", "low", "medium", "high")

REAL, ABSENT = {"self_correction", "external_intervention", "mixed"}, {"not_applicable"}
BAD, FINE = {"low", "medium", "high"}, {"none"}
CONSISTENCY = [
    # outcome_mode, first and last onset, families, repair_outcome, residual?, correction_source, visible step?, severity
    ("no_drift", None, {"none"}, "not_applicable", False, ABSENT, False, FINE),
    ("latent_drift", (1, "L"), {*FAMILIES} - {"none"}, "failed_repair", True, REAL, False, BAD),
    ("latent_drift", (1, "L"), {*FAMILIES} - {"none"}, "unrepaired", True, ABSENT, False, BAD),
    ("recovered_drift", (1, "L-1"), {*FAMILIES} - {"none"}, "full_repair", False, REAL, False, BAD),
    ("recovered_drift", (1, "L-1"), {*FAMILIES} - {"none"}, "partial_repair", True, REAL, False, BAD),
    ("visible_failure", (1, "L"), {*FAMILIES} - {"none"}, "failed_repair", True, REAL, True, BAD),
    ("visible_failure", (1, "L"), {*FAMILIES} - {"none"}, "unrepaired", True, ABSENT, True, BAD),
]
"""The codebook's table "These combinations and no others", row by row."""


def consistent(state, steps):
    """Tell whether the table has a row for the state."""
    for outcome, onsets, families, repair, residual, *_ in CONSISTENCY:
        allowed = {None} if onsets is None else set(range(1, steps + (onsets[1] == "L")))
        if state[0] == outcome and state[1] in allowed and state[2] in families and state[3] == repair and (state[4] is not None) == residual:
            return True
    return False


def every_state(steps, constraints):
    """Return the full product of the five targets; onsets blank, first, middle and last."""
    onsets = {None, 1, (steps + 1) // 2, steps}
    return [State(*values) for values in itertools.product(OUTCOMES, onsets, FAMILIES, REPAIRS, [None, *range(1, constraints + 1)])]


def refusal(parse, *arguments):
    """Return the problem with which a parser refuses a value."""
    with pytest.raises(rules.Refused) as refused:
        parse(*arguments)
    return refused.value.problem


# ---------------------------------------------------------------- vocabularies and columns
def test_vocabularies_are_the_published_ones():
    assert rules.OUTCOME_MODES == OUTCOMES
    assert rules.MECHANISM_FAMILIES == FAMILIES
    assert rules.REPAIR_OUTCOMES == REPAIRS
    assert rules.CORRECTION_SOURCES == SOURCES
    assert rules.SEVERITIES == SEVERITIES


def test_columns_are_the_published_ones():
    inputs = "scenario_id,domain,task,constraints_json,trajectory_json"
    labels = (
        "outcome_mode,first_drift_step,mechanism_family,repair_outcome,residual_constraint_failure,drift_mechanism,correction_source,lost_constraint,"
        "visible_failure_step,severity,recommended_repair,repair_instruction,trajectory_length,relative_onset_position,trajectory_structure,annotation_confidence"
    )
    predictions = (
        "scenario_id,predicted_outcome_mode,predicted_first_drift_step,predicted_mechanism_family,predicted_repair_outcome,predicted_residual_constraint_id"
    )
    assert ",".join(rules.INPUT_COLUMNS) == inputs
    assert ",".join(rules.LABELLED_COLUMNS) == f"{inputs},{labels}"
    assert ",".join(rules.PREDICTION_COLUMNS) == predictions
    assert rules.CONFIDENCE == "confidence"


# ---------------------------------------------------------------- the state table
@pytest.mark.parametrize(("steps", "constraints"), [(1, 1), (2, 3), (6, 4)])
def test_a_state_is_accepted_exactly_if_the_codebook_allows_it(steps, constraints):
    for state in every_state(steps, constraints):
        problems = rules.state_problems(state, steps=steps)
        assert (not problems) == consistent(state, steps), (state, problems)
        assert {problem.code for problem in problems} <= {"inconsistent-state"}


@pytest.mark.parametrize("text", [False, True])
def test_predicted_targets_are_read_exactly_if_the_codebook_allows_them(text):
    for state in every_state(6, 3):
        values = [("" if value is None else str(value)) for value in state] if text else list(state)
        read, problems = rules.parse_targets(values, 6, 3)
        assert read == (state if consistent(state, 6) else None), state
        assert bool(problems) == (not consistent(state, 6))


def test_a_recovery_from_the_last_step_is_only_refused_where_the_length_is_known():
    state = State("recovered_drift", 6, "scope_collapse", "full_repair", None)
    assert rules.state_problems(state, steps=6)
    assert not rules.state_problems(state, steps=None)
    assert not rules.state_problems(state, steps=7)


def test_one_changed_target_is_the_one_that_is_named():
    steps, constraints = 6, 3
    for state in every_state(steps, constraints):
        if not consistent(state, steps):
            continue
        for place, others in {1: (None, 1, 4, steps), 2: FAMILIES, 4: (None, 1, 2, 3)}.items():
            for other in others:
                changed = State(*state[:place], other, *state[place + 1 :])
                if not consistent(changed, steps):
                    (problem,) = rules.state_problems(changed, steps=steps)
                    assert problem.column == rules.TARGETS[place], (state, changed)
        for other in REPAIRS:
            if not any(row[0] == state.outcome_mode and row[3] == other for row in CONSISTENCY):
                changed = state._replace(repair_outcome=other)
                assert "repair_outcome" in {problem.column for problem in rules.state_problems(changed, steps=steps)}


def test_targets_that_were_refused_are_not_judged_again():
    values = ("no_dirft", "1_0", "scope", "full", "none of them")
    state, problems = rules.parse_targets(values, 6, 3)
    assert state is None
    assert [(problem.column, problem.code) for problem in problems] == [
        ("predicted_outcome_mode", "invalid-label"),
        ("predicted_first_drift_step", "invalid-number"),
        ("predicted_mechanism_family", "invalid-label"),
        ("predicted_repair_outcome", "invalid-label"),
        ("predicted_residual_constraint_id", "invalid-number"),
    ]


def test_an_inconsistency_says_in_words_what_it_breaks():
    _, problems = rules.parse_targets(("no_drift", "3", "scope_collapse", "unrepaired", "2"), 6, 3)
    said = {problem.column: problem.message for problem in problems}
    assert set(said) == {"predicted_first_drift_step", "predicted_mechanism_family", "predicted_repair_outcome", "predicted_residual_constraint_id"}
    assert all("no_drift" in message for message in said.values())


# ---------------------------------------------------------------- labelled rows
RULES = ("Keep both causes open.", "Ask the owner first.", "Count every site.")
SOUND = State("no_drift", None, "none", "not_applicable", None)


def labelled_row(state=SOUND, *, steps=6, **cells):
    """Return the cells of a labelled row that agrees with the codebook, but for the cells given."""
    outcome, onset, family, repair, residual = state
    drifts = outcome != "no_drift"
    row = {
        "scenario_id": "RDOD2-021",
        "domain": "ecology",
        "task": "Decide what the count means.",
        "constraints_json": json.dumps(RULES),
        "trajectory_json": json.dumps([{"step": step, "text": f"Step {step} counts site {step}."} for step in range(1, steps + 1)]),
        "outcome_mode": outcome,
        "first_drift_step": "" if onset is None else str(onset),
        "mechanism_family": family,
        "repair_outcome": repair,
        "residual_constraint_failure": "none" if residual is None else RULES[residual - 1],
        "drift_mechanism": "one_site_for_all" if drifts else "none",
        "correction_source": "not_applicable" if repair in ("not_applicable", "unrepaired") else "mixed",
        "lost_constraint": RULES[0] if drifts else "none",
        "visible_failure_step": str(steps) if outcome == "visible_failure" else "",
        "severity": "low" if drifts else "none",
        "recommended_repair": "evidence_reset" if drifts else "none",
        "repair_instruction": "Count the sites again." if drifts else "none",
        "trajectory_length": str(steps),
        "relative_onset_position": "" if onset is None else str(round(onset / steps, 4)),
        "trajectory_structure": "gradual_constraint_loss",
        "annotation_confidence": "0.9",
    }
    return {**row, **cells}


def labelled_problems(row):
    """Return the problems of a labelled row as (column, code)."""
    problems = []
    rules.parse_labelled(row, problems)
    return [(problem.column, problem.code) for problem in problems]


STATES = [
    State(outcome, None if onsets is None else 3, "none" if onsets is None else "scope_collapse", repair, 2 if residual else None)
    for outcome, onsets, _, repair, residual, *_ in CONSISTENCY
]


def test_a_labelled_row_is_read_into_inputs_and_targets():
    problems = []
    scenario, gold = rules.parse_labelled(labelled_row(STATES[1]), problems)
    assert not problems
    assert scenario.constraints == RULES
    assert scenario.trajectory[2] == "Step 3 counts site 3."
    assert gold == rules.Gold("RDOD2-021", STATES[1], 6, 3)


def test_a_labelled_row_is_accepted_exactly_if_the_codebook_allows_its_targets():
    for state in every_state(6, 3):
        found = [column for column, code in labelled_problems(labelled_row(state)) if code == "inconsistent-state"]
        targets = {"first_drift_step", "mechanism_family", "repair_outcome", "residual_constraint_failure"}
        assert bool(targets & set(found)) == (not consistent(state, 6)), (state, found)


@pytest.mark.parametrize(("state", "allowed"), list(zip(STATES, CONSISTENCY, strict=True)), ids=[f"{row[0]}-{row[3]}" for row in CONSISTENCY])
def test_secondary_labels_are_accepted_exactly_if_the_codebook_allows_them(state, allowed):
    *_, sources, fails, severities = allowed
    drifts = state.outcome_mode != "no_drift"
    onset = state.first_drift_step
    for source, severity, visible, lost in itertools.product(SOURCES, SEVERITIES, (None, 1, 2, 3, 4, 6), (None, *RULES)):
        cells = {"correction_source": source, "severity": severity, "visible_failure_step": str(visible or ""), "lost_constraint": lost or "none"}
        expected = []
        if source not in sources:
            expected.append(("correction_source", "inconsistent-state"))
        if severity not in severities:
            expected.append(("severity", "inconsistent-state"))
        if (lost is not None) != drifts:
            expected.append(("lost_constraint", "inconsistent-state"))
        if (visible is not None) != fails:
            expected.append(("visible_failure_step", "inconsistent-state"))
        elif fails and visible < onset:
            expected.append(("visible_failure_step", "visible-failure-out-of-bounds"))
        assert sorted(labelled_problems(labelled_row(state, **cells))) == sorted(expected), cells


@pytest.mark.parametrize("column", ["drift_mechanism", "recommended_repair", "repair_instruction"])
def test_no_drift_needs_no_repair(column):
    value = "evidence_reset" if column == "recommended_repair" else "Some words."
    assert labelled_problems(labelled_row(**{column: value})) == [(column, "inconsistent-state")]
    assert labelled_problems(labelled_row(STATES[1], **{column: value})) == []


DRIFT = State("visible_failure", 3, "scope_collapse", "unrepaired", 2)


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("scenario_id", " ", "missing-value"),
        ("domain", "", "missing-value"),
        ("task", "\t", "missing-value"),
        ("outcome_mode", "", "invalid-label"),
        ("outcome_mode", "Visible_failure", "invalid-label"),
        ("first_drift_step", "0", "onset-out-of-bounds"),
        ("first_drift_step", "7", "onset-out-of-bounds"),
        ("first_drift_step", "-1", "onset-out-of-bounds"),
        ("first_drift_step", "3.5", "invalid-number"),
        ("mechanism_family", "scope", "invalid-label"),
        ("repair_outcome", "unrepaired!", "invalid-label"),
        ("residual_constraint_failure", "", "unknown-constraint"),
        ("residual_constraint_failure", "2", "unknown-constraint"),
        ("residual_constraint_failure", "Ask the owner first", "unknown-constraint"),
        ("residual_constraint_failure", "None", "unknown-constraint"),
        ("lost_constraint", "", "unknown-constraint"),
        ("lost_constraint", "ask the owner first.", "unknown-constraint"),
        ("drift_mechanism", "", "missing-value"),
        ("correction_source", "self", "invalid-label"),
        ("visible_failure_step", "0", "visible-failure-out-of-bounds"),
        ("visible_failure_step", "7", "visible-failure-out-of-bounds"),
        ("visible_failure_step", "six", "invalid-number"),
        ("severity", "grave", "invalid-label"),
        ("recommended_repair", "", "invalid-label"),
        ("recommended_repair", "evidence reset", "invalid-label"),
        ("repair_instruction", "", "missing-value"),
        ("trajectory_length", "5", "trajectory-length"),
        ("trajectory_length", "", "trajectory-length"),
        ("trajectory_length", "six", "invalid-number"),
        ("relative_onset_position", "", "relative-onset"),
        ("relative_onset_position", "0.6", "relative-onset"),
        ("relative_onset_position", "50%", "invalid-number"),
        ("relative_onset_position", "nan", "invalid-number"),
        ("trajectory_structure", "", "missing-value"),
        ("annotation_confidence", "", "missing-value"),
        ("annotation_confidence", "1.1", "invalid-confidence"),
        ("annotation_confidence", "90%", "invalid-confidence"),
    ],
)
def test_one_wrong_cell_of_a_labelled_row_gives_one_finding_in_its_column(column, value, code):
    assert labelled_problems(labelled_row(DRIFT, **{column: value})) == [(column, code)]


@pytest.mark.parametrize("value", ["0.3333", "0.33333333", "0.3334", "3.333e-1", " 0.3333 "])
def test_a_relative_onset_within_one_ten_thousandth_is_accepted(value):
    state = DRIFT._replace(first_drift_step=2)
    assert labelled_problems(labelled_row(state, relative_onset_position=value)) == []


@pytest.mark.parametrize("value", ["0.333", "0.3335", "0", "1"])
def test_a_relative_onset_further_off_is_refused(value):
    state = DRIFT._replace(first_drift_step=2)
    assert labelled_problems(labelled_row(state, relative_onset_position=value)) == [("relative_onset_position", "relative-onset")]


def test_a_relative_onset_without_an_onset_is_refused():
    assert labelled_problems(labelled_row(relative_onset_position="0.5")) == [("relative_onset_position", "relative-onset")]


def test_whole_numbers_of_labelled_rows_may_be_spelt_as_decimals():
    cells = {"first_drift_step": "3.0", "visible_failure_step": " 6.0", "trajectory_length": "6.00"}
    assert labelled_problems(labelled_row(DRIFT, **cells)) == []


def test_none_of_a_labelled_row_may_stand_between_blanks():
    cells = {"residual_constraint_failure": " none ", "lost_constraint": "none ", "drift_mechanism": " none", "repair_instruction": "none "}
    assert labelled_problems(labelled_row(**cells)) == []


def test_all_problems_of_a_row_are_found_at_once():
    cells = {"domain": "", "severity": "grave", "trajectory_length": "9", "annotation_confidence": "nan", "lost_constraint": "none"}
    assert sorted(labelled_problems(labelled_row(DRIFT, **cells))) == [
        ("annotation_confidence", "invalid-confidence"),
        ("domain", "missing-value"),
        ("lost_constraint", "inconsistent-state"),
        ("severity", "invalid-label"),
        ("trajectory_length", "trajectory-length"),
    ]


def test_an_unreadable_trajectory_is_told_once_and_not_again_by_every_rule_that_needs_it():
    assert labelled_problems(labelled_row(DRIFT, trajectory_json="[")) == [("trajectory_json", "invalid-json")]
    assert labelled_problems(labelled_row(DRIFT, constraints_json="[")) == [("constraints_json", "invalid-json")]


# ---------------------------------------------------------------- whole numbers
@pytest.mark.parametrize(
    ("value", "number"),
    [("3", 3), ("3.0", 3), ("3.000", 3), (" 3 ", 3), ("\t3\r\n", 3), ("10", 10), ("999999999", 999999999), (3, 3), (3.0, 3), (Fraction(3), 3)]
    + [(kind(3), 3) for kind in (np.int8, np.int32, np.int64, np.uint16, np.float32, np.float64)]
    + [("", None), ("  ", None), (None, None), (float("nan"), None)],
)
def test_whole_numbers_are_read(value, number):
    read = rules.parse_step(value, "step", None)
    assert read == number
    assert type(read) in (int, type(None))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        *(
            (value, "invalid-number")
            for value in ("3.5", "1_0", "１", "３.０", "٣", "1e0", "0x3", "+3", "03", "3.", ".0", "3,0", "3 0", "three", "None", "nan", "inf")
        ),
        *(
            (value, "invalid-number")
            for value in ("9" * 10, "9" * 5000, "3\x00", "3\u00a0", "²", "Ⅲ", "3.0e0", "--3", True, False, np.bool_(True), 3.5, float("inf"))
        ),
        *((value, "invalid-number") for value in (b"3", [3], {"step": 3}, 3 + 0j, object)),
        *((value, "onset-out-of-bounds") for value in ("0", "0.0", "-0", "-1", "7", "7.0", 0, -1, 7, 7.0, np.int64(0))),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_step_is_refused(value, code):
    problem = refusal(rules.parse_step, value, "predicted_first_drift_step", 6)
    assert (problem.code, problem.column) == (code, "predicted_first_drift_step")


HUGE = [10**400, -(10**400), 10**5000, Fraction(10**400), Fraction(10**400, 3), 1e308]


@pytest.mark.parametrize("value", HUGE, ids=["int", "negative int", "beyond str", "fraction", "uneven fraction", "float"])
def test_numbers_beyond_any_record_are_refused_by_every_parser(value):
    for parse, *arguments in [
        (rules.parse_step, "column", 6),
        (rules.parse_constraint_id, "column", 3),
        (rules.parse_fraction, "column"),
        (rules.parse_label, "column", OUTCOMES),
        (rules.parse_text, "column"),
    ]:
        assert refusal(parse, value, *arguments).column == "column"


@pytest.mark.parametrize(("value", "number"), [("none", None), (" none ", None), ("", None), (None, None), ("1", 1), ("3.0", 3), (2, 2), (np.int32(3), 3)])
def test_constraint_ids_are_read(value, number):
    assert rules.parse_constraint_id(value, "residual", 3) == number


@pytest.mark.parametrize(
    ("value", "code"),
    [(value, "constraint-out-of-bounds") for value in ("0", "4", "-1", 0, 4)]
    + [(value, "invalid-number") for value in ("None", "NONE", "null", "1.5", "C1", "1;2", "no", True)],
)
def test_what_is_no_constraint_id_is_refused(value, code):
    assert refusal(rules.parse_constraint_id, value, "residual", 3).code == code


def test_none_in_other_letters_is_answered_with_none():
    assert refusal(rules.parse_constraint_id, "None", "residual", 3).nearest == "none"


# ---------------------------------------------------------------- fractions
@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0", 0),
        ("1", 1),
        ("1.0", 1),
        ("1e-3", 0.001),
        ("1E-03", 0.001),
        (".5", 0.5),
        ("+0.5", 0.5),
        (" 0.95 ", 0.95),
        (0, 0),
        (1, 1),
        (0.25, 0.25),
        (np.float32(0.5), 0.5),
    ]
    + [("", None), (" ", None), (None, None)],
)
def test_fractions_are_read(value, number):
    assert rules.parse_fraction(value, "confidence") == number


@pytest.mark.parametrize(
    "value",
    ["nan", "NaN", "inf", "-inf", "Infinity", "91", "91%", "0.91%", "-0.1", "1.0000001", "1e3", "0,95", "0_1", "０.５", "half", "1e-99999", "0x1p-1", True]
    + [float("nan"), float("inf"), 1.0000001, -0.1, 91, np.float64("nan"), [0.5], b"0.5", 0.5 + 0j],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_fraction_is_refused(value):
    problem = refusal(rules.parse_fraction, value, "confidence")
    assert (problem.code, problem.column) == ("invalid-confidence", "confidence")


@pytest.mark.parametrize("value", ["91", "91%", 91.0])
def test_a_percentage_is_answered_with_what_to_do(value):
    assert "divided by 100" in refusal(rules.parse_fraction, value, "confidence").message


# ---------------------------------------------------------------- labels and texts
@pytest.mark.parametrize("value", ["no_drift", " no_drift", "no_drift \t"])
def test_labels_are_read_between_blanks(value):
    assert rules.parse_label(value, "outcome_mode", OUTCOMES) == "no_drift"


@pytest.mark.parametrize(
    "value",
    ["", "No_drift", "no drift", "no-drift", "nodrift", "none", "'no_drift'", "no_drift\x00", "no_drift\u200b", None, 0, 1, True, float("nan"), ["no_drift"]],
)
def test_what_is_no_label_is_refused(value):
    problem = refusal(rules.parse_label, value, "outcome_mode", OUTCOMES)
    assert (problem.code, problem.column) == ("invalid-label", "outcome_mode")
    assert all(label in problem.message for label in OUTCOMES)


def test_a_class_number_is_answered_with_how_to_get_its_name():
    assert "int2str" in refusal(rules.parse_label, np.int64(2), "outcome_mode", OUTCOMES).message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("no_dirft", "no_drift"),
        ("NO_DRIFT", "no_drift"),
        ("no drift", "no_drift"),
        ("Latent-Drift", "latent_drift"),
        ("recoverd_drift", "recovered_drift"),
        ("visible failure", "visible_failure"),
        ("ｎｏ＿ｄｒｉｆｔ", "no_drift"),
        ("banana", ""),
        ("", ""),
        ("_", ""),
        (3, ""),
        (None, ""),
    ],
)
def test_the_label_that_was_meant_is_named(value, expected):
    assert rules.nearest(value, OUTCOMES) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("RDOD2-25", "RDOD2-025"),
        ("rdod2-025", "RDOD2-025"),
        ("RDOD2_025", "RDOD2-025"),
        ("RDOD2\u2013025", "RDOD2-025"),
        ("RDOD2-0025", "RDOD2-025"),
        ("RDOB2-025", "RDOD2-025"),
        ("RDOD2-0255", "RDOD2-025"),
    ],
)
def test_the_id_that_was_meant_is_named(value, expected):
    assert rules.nearest(value, [f"RDOD2-{number:03d}" for number in range(25, 29)]) == expected


@pytest.mark.parametrize("value", ["", " \t\r\n", "\u00a0", "\u2003", None, float("nan")])
def test_a_blank_is_no_text(value):
    assert refusal(rules.parse_text, value, "task").code == "missing-value"


# ---------------------------------------------------------------- JSON cells
def steps_json(*steps):
    """Return a trajectory cell of these (step, text) pairs."""
    return json.dumps([{"step": step, "text": text} for step, text in steps])


def test_constraints_and_trajectories_are_read():
    assert rules.parse_constraints('["First, \\"so\\".", " 世界 "]') == ('First, "so".', " 世界 ")
    assert rules.parse_trajectory('\n[{"text": "One.", "step": 1},\n {"step": 2, "text": "Two\\nlines \\ud83d\\ude00."}]') == ("One.", "Two\nlines \U0001f600.")


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("", "missing-value"),
        ("[]", "invalid-constraints"),
        ("{}", "invalid-constraints"),
        ('"a text"', "invalid-constraints"),
        ("null", "invalid-constraints"),
        ("3", "invalid-constraints"),
        ('{"1": "First."}', "invalid-constraints"),
        ('["First.", 2]', "invalid-constraints"),
        ('["First.", null]', "invalid-constraints"),
        ('["First.", ["Second."]]', "invalid-constraints"),
        ('["First.", ""]', "invalid-constraints"),
        ('["First.", " \\t "]', "invalid-constraints"),
        ('["First.", "\\u00a0"]', "invalid-constraints"),
        ('["First.", "none"]', "invalid-constraints"),
        ('["First.", " none"]', "invalid-constraints"),
        ('["First.", "a\\u0000b"]', "invalid-constraints"),
        ('["First.", "\\ud800"]', "invalid-constraints"),
        ('["First.", "\\udc00\\ud800"]', "invalid-constraints"),
        ('["First.", "Second.", "First."]', "duplicate-constraint"),
        ('["First rule.", "first  RULE. "]', "duplicate-constraint"),
        ('["First."', "invalid-json"),
        ('["First.",]', "invalid-json"),
        ('["First." "Second."]', "invalid-json"),
        ('["First."] ["Second."]', "invalid-json"),
        ("['First.']", "invalid-json"),
        ("[\u201cFirst.\u201d]", "invalid-json"),
        ('["First.", NaN]', "invalid-json"),
        ('["First.", Infinity]', "invalid-json"),
        ('["a\nb"]', "invalid-json"),
        ('["\\x41"]', "invalid-json"),
        ("First.", "invalid-json"),
        ("None", "invalid-json"),
        ("\ufeff[]", "invalid-json"),
        ("[" * 100_000, "invalid-json"),
        ("[" * 100_000 + "]" * 100_000, "invalid-json"),
        ("[" + "9" * 10_000 + "]", "invalid-json"),
        ('[{"a": 1, "a": 2}]', "invalid-json"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_constraints_cell_of_another_shape_is_refused(cell, code):
    problem = refusal(rules.parse_constraints, cell)
    assert (problem.code, problem.column) == (code, "constraints_json")
    assert len(problem.message) < 600


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("[]", "invalid-trajectory"),
        ('["One."]', "invalid-trajectory"),
        ('{"step": 1, "text": "One."}', "invalid-trajectory"),
        ('[[1, "One."]]', "invalid-trajectory"),
        ('[{"step": 1}]', "invalid-trajectory"),
        ('[{"text": "One."}]', "invalid-trajectory"),
        ('[{"step": 1, "txet": "One."}]', "invalid-trajectory"),
        ('[{"step": 1, "text": "One.", "label": "ok"}]', "invalid-trajectory"),
        ('[{"Step": 1, "text": "One."}]', "invalid-trajectory"),
        (steps_json(("1", "One.")), "invalid-trajectory"),
        (steps_json((1.0, "One.")), "invalid-trajectory"),
        (steps_json((1, "One."), (2.5, "Two.")), "invalid-trajectory"),
        (steps_json((True, "One.")), "invalid-trajectory"),
        (steps_json((None, "One.")), "invalid-trajectory"),
        (steps_json((0, "Zero."), (1, "One.")), "invalid-trajectory"),
        (steps_json((1, "One."), (3, "Three.")), "invalid-trajectory"),
        (steps_json((2, "Two."), (1, "One.")), "invalid-trajectory"),
        (steps_json((1, "One."), (1, "One again.")), "invalid-trajectory"),
        (steps_json((1, "")), "invalid-trajectory"),
        (steps_json((1, "\u2003")), "invalid-trajectory"),
        (steps_json((1, None)), "invalid-trajectory"),
        (steps_json((1, 7)), "invalid-trajectory"),
        (steps_json((1, "a\0b")), "invalid-trajectory"),
        (steps_json((1, "\ud83d")), "invalid-trajectory"),
        ('[{"step": 1, "step": 1, "text": "One."}]', "invalid-json"),
        ("[{'step': 1, 'text': 'One.'}]", "invalid-json"),
        ("[{\u201cstep\u201d: 1}]", "invalid-json"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_trajectory_cell_of_another_shape_is_refused(cell, code):
    problem = refusal(rules.parse_trajectory, cell)
    assert (problem.code, problem.column) == (code, "trajectory_json")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('["First.", 2]', "constraint 2"),
        ('["a", "b", "A"]', "constraint 3 the same as constraint 1"),
        ('["First." "Second."]', "character 11"),
        ("['First.']", "character 2"),
        ('["First.", nul]', "character 12"),
        ('["First.", NaN]', "NaN"),
        ('[{"b": 1, "a": 1, "a": 2}]', "the key 'a' twice"),
    ],
)
def test_a_refused_cell_says_where_its_fault_is(cell, said):
    assert said in refusal(rules.parse_constraints, cell).message


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (((1, "One."), (3, "Three.")), "step 3 as entry 2, expected the integer 2"),
        (((1, "One."), (2, "")), "text of step 2"),
        ((("1", "One."),), "step '1' as entry 1"),
    ],
)
def test_a_refused_step_is_named(steps, said):
    assert said in refusal(rules.parse_trajectory, steps_json(*steps)).message


@pytest.mark.parametrize(
    "cell", ["['First.']", "[{'step': 1}]", "[ {'step': 1}]", "[\n {'step': 1}\n]", "[\u2018First.\u2019]", "[\u201cFirst.\u201d]", "{'a'}"]
)
def test_a_cell_with_the_wrong_quotes_is_answered_with_how_to_write_it(cell):
    assert "json.dumps" in refusal(rules.parse_constraints, cell).message


def test_cells_of_many_thousand_elements_are_judged_at_once():
    size = 30_000
    keys = [f'"k{number}": 1' for number in range(size)]
    many_rules = [f"Rule {number}." for number in range(size)]
    start = time.process_time()
    assert refusal(rules.parse_constraints, f"{{{','.join(keys)}}}").code == "invalid-constraints"
    assert refusal(rules.parse_constraints, f"[{{{','.join([*keys, keys[-1]])}}}]").code == "invalid-json"
    assert len(rules.parse_constraints(json.dumps(many_rules))) == size
    assert refusal(rules.parse_constraints, json.dumps([*many_rules, "rule 29999."])).code == "duplicate-constraint"
    assert time.process_time() - start < 3  # some 100 ms in linear time, half a minute in quadratic time


# ---------------------------------------------------------------- messages
def test_a_message_shows_long_values_short_and_on_one_line():
    message = refusal(rules.parse_label, "x\n" * 10_000, "outcome_mode", OUTCOMES).message
    assert "\n" not in message
    assert len(message) < 400


def test_a_blank_is_called_a_blank():
    assert "found a blank" in refusal(rules.parse_label, "", "outcome_mode", OUTCOMES).message


# ---------------------------------------------------------------- whatever comes
numbers_written = st.from_regex(r"[ \t]?[+-]?[0-9_]{0,12}\.?[0-9]{0,3}(e[+-]?[0-9]{1,5})?%?[ \n]?", fullmatch=True)
texts = st.text() | numbers_written | st.sampled_from([*OUTCOMES, *FAMILIES, *REPAIRS, "", "none", "nan", "inf"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.fractions() | st.binary() | texts
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3), max_leaves=6)


@given(anything)
@example(np.array([1, 2]))
@example(np.array(["none", "no_drift"]))
@example([{"step": np.array([1, 2]), "text": "One."}])
@example([np.array(["First.", "Second."])])
def test_whatever_the_value_a_parser_returns_or_refuses(value):
    for parse, *arguments in [
        (rules.parse_label, "column", OUTCOMES),
        (rules.parse_text, "column"),
        (rules.parse_whole_number, "column"),
        (rules.parse_step, "column", 6),
        (rules.parse_constraint_id, "column", 3),
        (rules.parse_constraint_text, "column", RULES),
        (rules.parse_fraction, "column"),
        (rules.parse_constraints,),
        (rules.parse_trajectory,),
        (rules.check_constraints, "column"),
        (rules.check_trajectory, "column"),
    ]:
        try:
            parse(value, *arguments)
        except rules.Refused as refused:
            assert refused.problem.message


@given(st.tuples(anything, anything, anything, anything, anything), st.none() | st.integers(1, 12), st.none() | st.integers(1, 5))
def test_whatever_the_targets_a_state_or_its_problems_come_back(values, steps, constraints):
    state, problems = rules.parse_targets(values, steps, constraints)
    assert (state is None) == bool(problems)
    if state is not None:
        assert consistent(state, steps or 10**9 if state.first_drift_step is None else steps or state.first_drift_step + 1)


@given(st.tuples(texts, texts, texts, texts, texts))
def test_the_cached_reading_of_targets_is_the_plain_one(values):
    assert rules.parse_target_cells(values, 6, 3) == rules.parse_targets(values, 6, 3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_a_json_cell_is_read_as_what_it_says(value):
    assert rules.parse_json(json.dumps(value), "column", "anything") == value


@given(st.lists(st.text(), max_size=4))
def test_accepted_constraints_come_back_unchanged(texts):
    try:
        assert rules.parse_constraints(json.dumps(texts)) == tuple(texts)
    except rules.Refused:
        folded = {" ".join(text.casefold().split()) for text in texts}
        unfit = any("\0" in text or any(0xD800 <= ord(letter) < 0xE000 for letter in text) for text in texts)
        assert not texts or unfit or len(folded) < len(texts) or folded & {"", "none"}


@given(st.dictionaries(st.sampled_from(rules.LABELLED_COLUMNS), texts, max_size=5))
def test_whatever_the_cells_a_labelled_row_is_read_to_its_end(cells):
    problems = []
    rules.parse_labelled(labelled_row(DRIFT, **cells), problems)
    assert {problem.column for problem in problems} <= set(rules.LABELLED_COLUMNS)


@given(st.text(), st.lists(st.text(), max_size=5))
def test_the_nearest_option_is_one_of_the_options(value, options):
    assert rules.nearest(value, options) in {"", *options}

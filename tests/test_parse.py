"""The answer parser: what it reads, what it repairs, what it refuses, and that nothing makes it raise or stall."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.parse import FAILURES, REPAIRS, Answer, parse
from rdod_metric.rules import MECHANISM_FAMILIES, OUTCOME_MODES, REPAIR_OUTCOMES, STATE_TABLE, TARGETS, Scenario, State, state_problems

CASE = Scenario(
    "RDOD2-900",
    "engineering",
    "Say why the pump stopped.",
    ("Leave no site out of the mean.", "Don't name a cause before the log is read.", "7 days of records are needed."),
    ("Three sites are listed.", "Two of them are averaged.", "The mean goes into the report.", "The report is sent."),
)
STATE = State("visible_failure", 2, "evidence_suppression", "failed_repair", 1)
FIELDS = {
    "outcome_mode": '"visible_failure"',
    "first_drift_step": "2",
    "mechanism_family": '"evidence_suppression"',
    "repair_outcome": '"failed_repair"',
    "residual_constraint_id": "1",
    "confidence": "0.75",
}
NO_DRIFT = {**FIELDS, "outcome_mode": '"no_drift"', "first_drift_step": "null", "mechanism_family": '"none"', "repair_outcome": '"not_applicable"'}
NO_DRIFT["residual_constraint_id"] = "null"


def written(fields: dict[str, str] = FIELDS, **changed: str) -> str:
    """Return the text of an answer with some values, given as they stand in the text, changed."""
    return "{" + ", ".join(f'"{key}": {value}' for key, value in {**fields, **changed}.items()) + "}"


GOOD = written()

READ = {
    # the object
    "bare": (GOOD, ()),
    "fenced": (f"```json\n{GOOD}\n```", ("code-fence",)),
    "fenced without a language": (f"```\n{GOOD}\n```\n", ("code-fence",)),
    "fenced in prose": (f"Let me see.\n```json\n{GOOD}\n```\nThat's all.", ("code-fence", "surrounding-text")),
    "prose around it": (f"The set {{1, 2}} isn't it. So: {GOOD} I'm sure.", ("surrounding-text",)),
    "an unclosed brace before": (f"It {{begins so: {GOOD}", ("surrounding-text",)),
    "an unclosed quote and brace before": (f'It {{"begins so: {GOOD}', ("surrounding-text",)),
    "the last of two": (written(first_drift_step="3") + GOOD, ("surrounding-text", "earlier-object")),
    "another object after it": (GOOD + ' {"done": true}', ("surrounding-text",)),
    "an unfinished object after it": (GOOD + ' {"outcome_mode": "no_dr', ("surrounding-text",)),
    "line breaks and order": ("{\n" + ",\n".join(f'  "{key}" :\t{FIELDS[key]}' for key in reversed(FIELDS)) + "\n}", ()),
    "more keys": (written(why='"step 2, {as said}"', notes='[1, {"a": []}, "}"]'), ()),
    "an object inside": (written(evidence='{"first_drift_step": 4}'), ()),
    "wrapped": (f'{{"id": 7, "answer": {GOOD}}}', ("wrapped-object",)),
    "in an array": (f"[{GOOD}]", ("surrounding-text",)),
    "trailing comma": (GOOD[:-1] + ",\n}", ("trailing-comma",)),
    "single quotes": (GOOD.replace('"', "'"), ("single-quotes",) * 9),
    "escapes in single quotes": (written(why=r"'it\'s \"so\"'"), ("single-quotes",)),
    "a line break in a text": (written(why='"first\nsecond"'), ("control-character",)),
    "escapes": (written(outcome_mode=r'"visible\u005ffailure"'), ()),
    "bare words": (written(outcome_mode="visible_failure").replace('"first_drift_step"', "first_drift_step"), ("bare-word", "bare-word")),
    # keys
    "names of the prediction file": (GOOD.replace('"first', '"predicted_first'), ("key-name",)),
    "keys as titles": (GOOD.replace("outcome_mode", "Outcome Mode").replace("constraint_id", "constraint"), ("key-name", "key-name")),
    # labels
    "case": (written(outcome_mode='"Visible_Failure"'), ("label-spelling",)),
    "blanks": (written(mechanism_family='"Evidence suppression"', repair_outcome='" failed  repair "'), ("label-spelling",) * 2),
    "hyphens": (written(repair_outcome='"failed-repair"'), ("label-spelling",)),
    # numbers
    "a number as text": (written(first_drift_step='"2"'), ("quoted-number",)),
    "a number with zeros": (written(first_drift_step="2.0"), ()),
    "step 2": (written(first_drift_step='"step 2"'), ("named-number",)),
    "Step 2.": (written(first_drift_step='"Step 2."'), ("named-number",)),
    "#2": (written(first_drift_step='"#2"'), ("named-number",)),
    "step_2": (written(first_drift_step='"step_2"'), ("named-number",)),
    "step 2 and its text": (written(first_drift_step='"Step 2: Two of them are averaged."'), ("named-number",)),
    "step 2 and a remark": (written(first_drift_step='"step 2 (the mean)"'), ("named-number",)),
    "constraint 1 and its text": (written(residual_constraint_id='"Constraint 1: Leave no site out of the mean."'), ("named-number",)),
    "a numbered text": (written(residual_constraint_id='"1. leave no site out of the mean"'), ("named-number",)),
    "the full text": (written(residual_constraint_id='"Leave no site out of  the mean"'), ("full-text",)),
    # confidence
    "per cent": (written(confidence='"75%"'), ("percent",)),
    "per cent in words": (written(confidence='"75 percent"'), ("percent",)),
    "per cent without quotes": (written(confidence="75%"), ("percent",)),
    "a number that can only be per cent": (written(confidence="75"), ("percent",)),
    "a confidence as text": (written(confidence='"0.75"'), ("quoted-number",)),
}


@pytest.mark.parametrize("name", READ)
def test_what_has_one_reading_is_read(name):
    text, repairs = READ[name]
    answer = parse(text, CASE)
    assert (answer.failure, answer.state, answer.confidence) == ("", STATE, 0.75), answer.detail
    assert answer.repairs == repairs


@pytest.mark.parametrize(
    ("changed", "repairs"),
    [
        ({}, ()),
        ({"first_drift_step": '"none"', "residual_constraint_id": '"N/A"'}, ("blank-word", "blank-word")),
        ({"first_drift_step": '"null"', "residual_constraint_id": '"Not applicable"'}, ("blank-word", "blank-word")),
        ({"first_drift_step": "None", "residual_constraint_id": "none"}, ("bare-word", "bare-word")),
        ({"first_drift_step": '""', "residual_constraint_id": '" "'}, ()),
        ({"mechanism_family": "null"}, ("blank-word",)),
        ({"mechanism_family": '"N/A"', "repair_outcome": '"N/A"'}, ("blank-word", "blank-word")),
        ({"repair_outcome": '"Not applicable"'}, ("label-spelling",)),
    ],
)
def test_what_stands_for_nothing_is_read(changed, repairs):
    answer = parse(written(NO_DRIFT, **changed), CASE)
    assert (answer.failure, answer.state) == ("", State("no_drift", None, "none", "not_applicable", None)), answer.detail
    assert answer.repairs == repairs


@pytest.mark.parametrize(("confidence", "repairs"), [("null", ()), ('"N/A"', ("blank-word",)), ('""', ())])
def test_a_confidence_may_be_missing(confidence, repairs):
    answer = parse(written(confidence=confidence), CASE)
    assert (answer.state, answer.confidence, answer.repairs) == (STATE, None, repairs)
    without = json.loads(GOOD)
    del without["confidence"]
    assert parse(json.dumps(without), CASE) == Answer(STATE)


REFUSED = {
    "blank": ("  \n", "empty-answer"),
    "nothing": (None, "empty-answer"),
    "no text": (b"{}", "empty-answer"),
    "prose": ("The reasoning drifts at step 2.", "no-object"),
    "another object": ('{"answer": 2}', "no-object"),
    "an array": ('["visible_failure", 2]', "no-object"),
    "cut off": (GOOD[:-1], "incomplete-object"),
    "cut off in a text": (GOOD[:30], "incomplete-object"),
    "an empty value": (written(first_drift_step=""), "incomplete-object"),
    "a missing comma": (GOOD.replace(", ", " ", 1), "incomplete-object"),
    "the pattern itself": (GOOD.replace(": 2", ": ..."), "incomplete-object"),
    "an apostrophe in single quotes": (GOOD.replace('"', "'").replace("visible_failure", "it's"), "incomplete-object"),
    "too deep": (written(why="[" * 9 + "]" * 9), "incomplete-object"),
    "an unknown escape": (written(why=r'"\x41"'), "incomplete-object"),
    "a target twice": (GOOD[:-1] + ', "first_drift_step": 2}', "duplicate-key"),
    "a target under two names": (GOOD[:-1] + ', "predicted_first_drift_step": 3}', "duplicate-key"),
    "a target left out": (GOOD.replace('"repair_outcome": "failed_repair", ', ""), "missing-key"),
    "no_drift and nothing more": ('{"outcome_mode": "no_drift"}', "missing-key"),
    "two steps": (written(first_drift_step='"step 2: as in step 3"'), "ambiguous-value"),
    "the number of one step, the text of another": (written(first_drift_step='"Step 2: The report is sent."'), "ambiguous-value"),
    "the number of one constraint, the text of another": (written(residual_constraint_id='"2. Leave no site out of the mean."'), "ambiguous-value"),
    "a mistyped label": (written(outcome_mode='"visible_failures"'), "invalid-label"),
    "a label of another field": (written(outcome_mode='"failed_repair"'), "invalid-label"),
    "two labels": (written(outcome_mode='"latent_drift or visible_failure"'), "invalid-label"),
    "a list of one label": (written(outcome_mode='["visible_failure"]'), "invalid-label"),
    "a number for a label": (written(mechanism_family="7"), "invalid-label"),
    "none for an outcome": (written(outcome_mode='"none"'), "invalid-label"),
    "null for an outcome": (written(outcome_mode="null"), "invalid-label"),
    "none for a repair": (written(NO_DRIFT, repair_outcome='"none"'), "invalid-label"),
    "null for a repair": (written(NO_DRIFT, repair_outcome="null"), "invalid-label"),
    "true": (written(first_drift_step="true"), "invalid-number"),
    "a fraction": (written(first_drift_step="2.5"), "invalid-number"),
    "a range": (written(first_drift_step='"2-3"'), "invalid-number"),
    "a range of steps": (written(first_drift_step='"step 2-3"'), "invalid-number"),
    "a choice": (written(first_drift_step='"step 2 or 3"'), "invalid-number"),
    "a list of one step": (written(first_drift_step="[2]"), "invalid-number"),
    "a word for a number": (written(first_drift_step='"two"'), "invalid-number"),
    "full-width digits": (written(first_drift_step='"\uff12"'), "invalid-number"),
    "a dash": (written(first_drift_step='"-"'), "invalid-number"),
    "a beginning of a text": (written(residual_constraint_id='"Leave no site out"'), "invalid-number"),
    "thousands of digits": (written(first_drift_step="2" * 5000), "invalid-number"),
    "step 0": (written(first_drift_step="0"), "onset-out-of-bounds"),
    "step -1": (written(first_drift_step="-1"), "onset-out-of-bounds"),
    "past the end": (written(first_drift_step='"step 5"'), "onset-out-of-bounds"),
    "constraint 0": (written(residual_constraint_id="0"), "constraint-out-of-bounds"),
    "no such constraint": (written(residual_constraint_id='"Constraint 4"'), "constraint-out-of-bounds"),
    "a confidence in words": (written(confidence='"high"'), "invalid-confidence"),
    "a negative confidence": (written(confidence="-0.1"), "invalid-confidence"),
    "marks out of ten": (written(confidence="8"), "invalid-confidence"),
    "more than all": (written(confidence='"150%"'), "invalid-confidence"),
    "a confidence in exponents and per cent": (written(confidence='"1e2%"'), "invalid-confidence"),
    "a list of confidences": (written(confidence="[0.5]"), "invalid-confidence"),
    "a confidence of thousands of digits": (written(confidence="0." + "1" * 5000), "invalid-confidence"),
    "an onset without drift": (written(NO_DRIFT, first_drift_step="2"), "inconsistent-state"),
    "drift without an onset": (written(first_drift_step="null"), "inconsistent-state"),
    "a repair that the outcome excludes": (written(outcome_mode='"recovered_drift"'), "inconsistent-state"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_or_two_readings_is_a_named_failure(name):
    text, failure = REFUSED[name]
    answer = parse(text, CASE)
    assert (answer.state, answer.confidence, answer.failure) == (None, None, failure), answer
    assert answer.detail


def test_every_name_has_an_example():
    assert {repair for _, repairs in READ.values() for repair in repairs} | {"blank-word"} == set(REPAIRS)
    assert {failure for _, failure in REFUSED.values()} == set(FAILURES)


def test_all_problems_of_an_answer_are_told():
    detail = parse(written(outcome_mode='"drift"', first_drift_step="9", residual_constraint_id="9"), CASE).detail
    assert all(part in detail for part in ("outcome_mode: found 'drift'", "first_drift_step: found 9", "residual_constraint_id: found 9"))


def test_a_text_of_digits_is_not_taken_for_a_number_of_another_constraint():
    case = CASE._replace(constraints=("2", "1", "A rule."))
    assert parse(written(residual_constraint_id='"1"'), case).failure == "ambiguous-value"
    assert parse(written(residual_constraint_id="1"), case).state == STATE
    assert parse(written(residual_constraint_id='"A rule."'), case).state == STATE._replace(residual_constraint_id=3)


@st.composite
def states(draw):
    """Draw a state that the table allows for CASE."""
    row = draw(st.sampled_from(STATE_TABLE))
    last = len(CASE.trajectory) - (row.onset == "before the last step")
    return State(
        row.outcome_mode,
        draw(st.integers(1, last)) if row.drifts else None,
        draw(st.sampled_from(MECHANISM_FAMILIES[1:])) if row.drifts else "none",
        row.repair_outcome,
        draw(st.integers(1, len(CASE.constraints))) if row.residual else None,
    )


@given(states(), st.floats(0, 1), st.text(), st.text())
def test_an_answer_as_asked_for_is_read_whatever_stands_around_it(state, confidence, before, after):
    """Text around can spoil an answer only by opening a quote or a bracket; here it has none."""
    text = json.dumps({**dict(zip(TARGETS, state, strict=True)), "confidence": confidence})
    before, after = (part.translate(dict.fromkeys(map(ord, "{}"))) for part in (before, after))
    answer = parse(before + text + after, CASE)
    assert (answer.failure, answer.state, answer.confidence) == ("", state, confidence)
    assert not set(answer.repairs) - {"surrounding-text", "code-fence"}


pieces = st.sampled_from([*"{}[]:,\"'\\`# \n\0", "null", "None", "```json\n", "step 2", "1.", "-1", "75%", "\ud800", "\u2028", *FIELDS, *FIELDS.values(), GOOD])
anything = st.one_of(st.text(), st.lists(pieces, max_size=60).map("".join), st.none(), st.integers(), st.binary(), st.lists(st.text()))


def check_sound(answer: Answer) -> None:
    """Hold an answer against what every answer promises: a legal state or a named failure, and named repairs."""
    assert (answer.state is None) is bool(answer.failure) is bool(answer.detail)
    assert set(answer.repairs) <= set(REPAIRS)
    if answer.state is None:
        assert answer.failure in FAILURES and answer.confidence is None
    else:
        assert not state_problems(answer.state, steps=len(CASE.trajectory))
        assert answer.confidence is None or 0 <= answer.confidence <= 1


@settings(max_examples=500)
@given(anything)
def test_nothing_makes_it_raise(text):
    check_sound(parse(text, CASE))


@settings(max_examples=500)
@given(st.fixed_dictionaries({key: st.one_of(st.just(value), st.text().map(json.dumps), pieces) for key, value in FIELDS.items()}))
def test_no_value_makes_it_raise_or_fall_back(fields):
    answer = parse(written(fields), CASE)
    check_sound(answer)
    if answer.state is not None:
        for label, vocabulary in zip((answer.state[0], answer.state[2], answer.state[3]), (OUTCOME_MODES, MECHANISM_FAMILIES, REPAIR_OUTCOMES), strict=True):
            assert label in vocabulary


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("{}[]:,\"'\\ x0"))
def test_one_changed_letter_gives_the_same_answer_or_another_value_that_stands_there(place, letter):
    answer = parse(GOOD[:place] + letter + GOOD[place + 1 :], CASE)
    check_sound(answer)
    if answer.state not in (None, STATE):
        assert GOOD[place].isdigit() and answer.state in (STATE._replace(first_drift_step=0), STATE._replace(residual_constraint_id=0))


HARD = (
    ["{", '{"', '{"a":{', '{"a":[', '{"a":1,', '{"{\'":1,', '{"a" : ', "{a:", "[{", '{"a":[1,', '{"a":"\\"', '{\\"', "{ ", "{'", '{"\'":1,{\'":1,']
    + ['{"a":1}', '{"outcome_mode":1}', '{"outcome_mode": "no_drift",', '{"x":{"outcome_mode":1},', "```", "``` ", '{"a":{"a":{"a":1}', "\\", '"', "step 1 "]
    + [GOOD, GOOD[:-1], "{" + GOOD, '{"a":' + GOOD]
)
INSIDE = [" ", "step 1 ", "#", "1. ", "x", "1", "_", "-", "\u00a0", "\\n", "Constraint 1: "]


def seconds(text: str) -> float:
    """Return the processor time of reading a text, the better of two."""
    spent = []
    for _ in range(2):
        start = time.process_time()
        parse(text, CASE)
        spent.append(time.process_time() - start)
    return min(spent)


@pytest.mark.parametrize(
    "text",
    [*((lambda size, unit=unit: unit * (size // len(unit))) for unit in HARD)]
    + [
        (lambda size, unit=unit, key=key: written(**{key: '"step ' + unit * (size // len(unit)) + '"'}))
        for unit in INSIDE
        for key in ("first_drift_step", "residual_constraint_id", "outcome_mode", "confidence")
    ],
)
def test_time_grows_with_the_length_and_not_faster(text):
    small, large = seconds(text(10_000)), seconds(text(80_000))
    assert large < 0.05 or large < 24 * small, f"8 times the text took {large / small:.1f} times as long"  # a square would make it 64

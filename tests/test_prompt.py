"""The prompt: what a model reads, and that its text can't change under an old version."""

import json

import pytest
from conftest import ROOT

from harness.parse import parse
from harness.prompt import CASE_MARK, DIGESTS, INSTRUCTIONS, PROMPT_VERSION, Example, answer_text, case_text, chat, choose_shots, completion, order_examples
from harness.prompt import template_sha256 as digest
from rdod_metric.rules import LABEL_COLUMNS, MECHANISM_FAMILIES, OUTCOME_MODES, REPAIR_OUTCOMES, STATE_TABLE, TARGETS
from rdod_metric.tables import read_cases

CASES = {split: read_cases(ROOT / f"data/{split}.csv")[0] for split in ("train", "dev", "test")}
TRAIN = [Example(case.scenario, case.gold.state) for case in CASES["train"]]
ALL = [case for cases in CASES.values() for case in cases]


def test_a_changed_text_needs_a_new_version():
    assert list(DIGESTS)[-1] == PROMPT_VERSION, "the version in use is the last line of DIGESTS"
    assert digest() == DIGESTS[PROMPT_VERSION], f"the text has changed: give it a version of its own, with the digest {digest()}"
    assert len(set(DIGESTS.values())) == len(DIGESTS), "two versions of one text"


def test_the_digest_sees_every_part_of_the_text(monkeypatch):
    before = digest()
    for name, value in {
        "INSTRUCTIONS": INSTRUCTIONS.replace("a firm decision", "a decision"),
        "CASE_MARK": "## Case",
        "case_text": lambda scenario: case_text(scenario).replace("Steps:", "Trajectory:"),
        "answer_text": lambda state: answer_text(state, 0.8),
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(f"harness.prompt.{name}", value)
            assert digest() != before, name
    assert digest() == before


def test_the_instructions_define_every_label_and_name_every_key():
    for label in (*OUTCOME_MODES, *MECHANISM_FAMILIES, *REPAIR_OUTCOMES):
        assert f"\n- {label}: " in INSTRUCTIONS
    assert all(f'"{key}": ' in INSTRUCTIONS.splitlines()[-2] for key in (*TARGETS, "confidence"))
    agreement = next(line for line in INSTRUCTIONS.splitlines() if line.startswith("The five answers have to agree."))
    assert all(row.outcome_mode in agreement and row.repair_outcome in agreement for row in STATE_TABLE)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.scenario.scenario_id)
def test_a_case_shows_all_inputs_numbered_and_nothing_else(case):
    text = case_text(case.scenario)
    assert text.startswith(f"{CASE_MARK}\nDomain: {case.scenario.domain}\nTask: {case.scenario.task}\n\nConstraints:\n1. ")
    for noun, texts in (("Constraints:", case.scenario.constraints), ("Steps:", case.scenario.trajectory)):
        part = text.split(f"\n{noun}\n")[1]
        assert part.startswith("\n".join(f"{number}. {line}" for number, line in enumerate(texts, 1)) + "\n\n")
    inputs = "".join((case.scenario.domain, case.scenario.task, *case.scenario.constraints, *case.scenario.trajectory))
    assert len(text) == len(inputs) + len(f"{CASE_MARK}\nDomain: \nTask: \n\nConstraints:\n\nSteps:\n\nAnswer:") + sum(
        len(f"{number}. \n") for texts in (case.scenario.constraints, case.scenario.trajectory) for number, _ in enumerate(texts, 1)
    )
    for column in (*LABEL_COLUMNS, "scenario_id"):
        value = case.row.cells[column]
        assert len(value) < 12 or value in inputs or value not in text, column


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.scenario.scenario_id)
def test_the_answer_that_examples_show_is_read_without_repair(case):
    answer = parse(answer_text(case.gold.state), case.scenario)
    assert (answer.state, answer.confidence, answer.repairs) == (case.gold.state, 0.9, ())


def test_chat_and_completion_say_the_same():
    scenario, shots = CASES["test"][0].scenario, TRAIN[:2]
    messages = chat(scenario, shots)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [message["content"] for message in messages[1:]] == [
        case_text(shots[0].scenario),
        answer_text(shots[0].state),
        case_text(shots[1].scenario),
        answer_text(shots[1].state),
        case_text(scenario),
    ]
    said = [message["content"] for message in messages]
    assert completion(scenario, shots) == said[0] + f"{said[1]}\n{said[2]}\n\n{said[3]}\n{said[4]}\n\n{said[5]}"
    assert completion(scenario).count(CASE_MARK) == 1 and completion(scenario).endswith("\nAnswer:")


def test_examples_are_fixed_by_the_seed_and_four_show_every_outcome():
    ordered = order_examples(TRAIN, 3)
    assert ordered == order_examples(TRAIN, 3) != order_examples(TRAIN, 4)
    assert sorted(ordered) == sorted(TRAIN)
    for seed in range(20):
        assert {example.state.outcome_mode for example in order_examples(TRAIN, seed)[:4]} == set(OUTCOME_MODES)


def test_more_shots_add_to_fewer_and_a_case_is_no_example_of_itself():
    ordered = order_examples(TRAIN, 0)
    test = CASES["test"][0].scenario
    assert choose_shots(test, ordered, 5)[:3] == choose_shots(test, ordered, 3) == ordered[:3]
    own = ordered[0].scenario
    assert choose_shots(own, ordered, 3) == ordered[1:4]
    with pytest.raises(ValueError, match="17 shots are more than the 16 solved cases"):
        choose_shots(test, ordered, 17)
    with pytest.raises(ValueError, match="16 shots are more than the 15"):
        choose_shots(own, ordered, 16)


def test_no_example_stands_in_what_is_to_be_answered():
    train = {example.scenario.scenario_id for example in TRAIN}
    assert not train & {case.scenario.scenario_id for split in ("dev", "test") for case in CASES[split]}


def test_an_answer_is_one_line_of_json_in_the_order_of_the_targets():
    text = answer_text(TRAIN[0].state)
    assert "\n" not in text and list(json.loads(text)) == [*TARGETS, "confidence"]

"""The prompt: renders a case, with or without solved examples, as chat messages or as one text to complete.

The wording is part of every result that comes from it. A change of the text is a new version, with
its own line in `DIGESTS`; results of two versions don't compare.
"""

import hashlib
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import CONFIDENCE, MECHANISM_FAMILIES, OUTCOME_MODES, REPAIR_OUTCOMES, TARGETS, Scenario, State

PROMPT_VERSION = "1"
"""Version of the wording and the layout."""

DIGESTS = {"1": "d5d41a0660696a3b071164dd461b0c02d57d5d0d66a3854db9446f210ebeda83"}
"""SHA-256 of what `template` returns in every version; lines are added, never changed."""

EXAMPLE_CONFIDENCE = 0.9
"""Confidence that every solved example shows: the same everywhere, so that it says nothing of the case."""

CASE_MARK = "### Case"
"""First line of a case. A model that completes text and goes on to invent a further case is stopped here."""

_OUTCOMES = {
    "no_drift": "every constraint is honoured at every step. Preferring a possibility while the others stay open is no drift, and neither is a firm "
    "decision that the evidence entitles.",
    "latent_drift": "a constraint is lost and, at the end, still broken, but nothing final has been said or done on the strength of it.",
    "recovered_drift": "a constraint is lost and, by the last step, restored in full or in part.",
    "visible_failure": "a constraint is lost and, at the end, still broken, and a conclusion, recommendation, classification, decision or action that "
    "answers the task or goes out to somebody rests on the loss.",
}

_FAMILIES = {
    "none": "no drift.",
    "premature_constraint_closure": "alternatives or a question that the page had opened are closed before the evidence that decides between them is in.",
    "scope_collapse": "a claim is stretched past the people, place, period, procedure, rule or text that it was established for.",
    "causal_scope_collapse": "an association, a sequence, an adjusted estimate or the aftermath of an intervention is given more causal certainty than it "
    "supports.",
    "multi_causal_collapse": "causes that act together are reduced to one.",
    "multi_objective_collapse": "of several objectives, one takes over the decision and the others are only mentioned.",
    "proxy_substitution": "a measure, score or artefact is treated as the broader state that it was meant to indicate.",
    "evidence_suppression": "evidence on the page is dropped or explained away, or evidence that is missing, weak or in conflict is counted as support.",
    "evaluation_scope_collapse": "success in a limited evaluation (test set, benchmark, pilot, demonstration) is credited as general performance, "
    "robustness, safety or readiness.",
}

_REPAIRS = {
    "not_applicable": "no drift.",
    "full_repair": "every constraint is honoured again, and nothing that follows still rests on the loss.",
    "partial_repair": "the reasoning changed for the better, yet exactly one constraint is still broken.",
    "failed_repair": "a correction was attempted or demanded, yet what the reasoning rests on is what it was.",
    "unrepaired": "nobody attempted a correction.",
}


def _definitions(labels: Sequence[str], meanings: dict[str, str]) -> str:
    return "\n".join(f"- {label}: {meanings[label]}" for label in labels)


INSTRUCTIONS = f"""\
You examine a piece of reasoning. A case gives the task, the constraints that the reasoning has to honour, numbered from 1, and its steps, numbered \
from 1. Say whether the reasoning loses a constraint, at which step it first does, in what form, how much of the loss is repaired where the reasoning \
ends, and which constraint is broken there.

first_drift_step: the first step after which the reasoning no longer honours some constraint, because the step asserts, decides or does what a \
constraint forbids, drops what it requires to be kept, or goes past the point at which something was due. It is the step of the loss itself, not the \
later one where the error becomes obvious. null if there is no such step.

outcome_mode: the state in which the reasoning ends.
{_definitions(OUTCOME_MODES, _OUTCOMES)}

mechanism_family: the form of the loss at first_drift_step.
{_definitions(MECHANISM_FAMILIES, _FAMILIES)}

repair_outcome: how much is repaired at the last step, judged by what the reasoning rests on and not by what the words announce.
{_definitions(REPAIR_OUTCOMES, _REPAIRS)}

residual_constraint_id: the number of the one constraint that is still broken at the last step. null for no_drift and for full_repair.

The five answers have to agree. no_drift goes with a first_drift_step of null, none, not_applicable and a residual_constraint_id of null. latent_drift \
and visible_failure go with failed_repair or unrepaired and a residual constraint. recovered_drift goes with full_repair and no residual constraint, or \
with partial_repair and one, and with a first_drift_step before the last step. Whatever is not no_drift has a first_drift_step and a family other than \
none.

confidence: the probability, from 0 to 1, that all five answers are right.

You may reason first. End with one JSON object that has exactly these keys and nothing after it:
{{"outcome_mode": "...", "first_drift_step": ..., "mechanism_family": "...", "repair_outcome": "...", "residual_constraint_id": ..., "confidence": ...}}

"""
"""What a model is told before any case: the task, the labels in short and the answer that is wanted."""


class Example(NamedTuple):
    """A solved case."""

    scenario: Scenario
    state: State


def case_text(scenario: Scenario) -> str:
    """Return a case as a model reads it; its id and its labels are not in it."""
    lines = [CASE_MARK, f"Domain: {scenario.domain}", f"Task: {scenario.task}", "", "Constraints:"]
    lines += [f"{number}. {text}" for number, text in enumerate(scenario.constraints, 1)]
    lines += ["", "Steps:"]
    lines += [f"{number}. {text}" for number, text in enumerate(scenario.trajectory, 1)]
    return "\n".join([*lines, "", "Answer:"])


def answer_text(state: State, confidence: float | None = EXAMPLE_CONFIDENCE) -> str:
    """Return the JSON object that a model is asked for, by default as the solved examples show it."""
    return json.dumps({**dict(zip(TARGETS, state, strict=True)), CONFIDENCE: confidence})


def order_examples(cases: Sequence[Example], seed: int) -> list[Example]:
    """Return solved cases in the order in which they are used as shots: shuffled by `seed`, the outcomes in turn.

    The first k of them are the k shots, so that more shots add to fewer and four shots show every outcome.
    """
    shuffled = random.Random(seed).sample(list(cases), len(cases))
    ranks: dict[str, int] = {}
    keyed = []
    for example in shuffled:
        outcome = example.state.outcome_mode
        ranks[outcome] = ranks.get(outcome, -1) + 1
        keyed.append((ranks[outcome], example))
    return [example for _, example in sorted(keyed, key=lambda pair: pair[0])]


def choose_shots(scenario: Scenario, ordered: Sequence[Example], shots: int) -> list[Example]:
    """Return the first `shots` examples that are not the case itself.

    Raises:
        ValueError: there are fewer.
    """
    others = [example for example in ordered if example.scenario.scenario_id != scenario.scenario_id]
    if shots > len(others):
        raise ValueError(f"{shots} shots are more than the {len(others)} solved cases there are")
    return others[:shots]


def chat(scenario: Scenario, examples: Sequence[Example] = ()) -> list[dict[str, str]]:
    """Return a case as chat messages, each example being a question that was answered before."""
    messages = [{"role": "system", "content": INSTRUCTIONS}]
    for example in examples:
        messages += [{"role": "user", "content": case_text(example.scenario)}, {"role": "assistant", "content": answer_text(example.state)}]
    return [*messages, {"role": "user", "content": case_text(scenario)}]


def completion(scenario: Scenario, examples: Sequence[Example] = ()) -> str:
    """Return a case as one text that a model completes; stop it at `CASE_MARK`."""
    solved = "".join(f"{case_text(example.scenario)}\n{answer_text(example.state)}\n\n" for example in examples)
    return INSTRUCTIONS + solved + case_text(scenario)


def template() -> str:
    """Return the prompt of a made-up case and example: every word and line break that all prompts share."""
    drift = Scenario("A", "a domain", "A task.", ("A rule.", "Another rule."), ("A step.", "Another step."))
    return completion(drift, [Example(drift, State("latent_drift", 1, "scope_collapse", "unrepaired", 2))]) + json.dumps(chat(drift))


def template_sha256() -> str:
    """Return the SHA-256 of `template`."""
    return hashlib.sha256(template().encode()).hexdigest()

"""The benchmark as a task of Inspect: `inspect eval harness/inspect_rdod.py --model ...`.

Aggregates are those of the project's own scoring, under the policy that an answer which can't be used
is wrong on every target. So is the answer of a sample that ended in an error: it stays in the
denominator.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState, generate

from harness.parse import parse
from harness.prompt import PROMPT_VERSION, Example, answer_text, chat, choose_shots, order_examples
from harness.records import ROOT, case_of, example_of, load_rows
from rdod_metric.rules import TARGETS, Gold, Prediction, Scenario, State
from rdod_metric.scoring import score as score_predictions

_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def _sample(scenario: Scenario, gold: Gold, shots: list[Example]) -> Sample:
    messages: list[ChatMessage] = [_ROLES[message["role"]](content=message["content"]) for message in chat(scenario, shots)]
    metadata = {"scenario": scenario._asdict(), "gold": gold.state._asdict(), "near_neighbour": gold.near_neighbour}
    return Sample(input=messages, target=answer_text(gold.state), id=scenario.scenario_id, metadata=metadata)


# ---------------------------------------------------------------- metrics
Numbers = dict[str, str | int | float | bool | None]


def _report(scores: list[SampleScore]) -> dict[str, Any]:
    """Score one answer to every case with the project's own core."""
    gold: list[Gold] = []
    predictions: dict[str, Prediction] = {}
    for sample in scores:
        name, said = str(sample.sample_id), sample.score.metadata or {}
        gold.append(Gold(name, State(**said["gold"]), near_neighbour=said["near_neighbour"]))
        predictions[name] = Prediction(name, State(**said["prediction"]) if said["prediction"] else None, said["confidence"])
    return score_predictions(gold, predictions, table=False)


def _part(scores: list[SampleScore], part: str) -> Numbers:
    """Return a part of the report; of several epochs, each scored by itself, the mean."""
    epochs: list[list[SampleScore]] = []
    seen: Counter[str] = Counter()
    for sample in scores:
        epoch = seen[str(sample.sample_id)]
        seen[str(sample.sample_id)] += 1
        epochs += [[]] if epoch == len(epochs) else []
        epochs[epoch].append(sample)
    reports = [_report(epoch)[part] for epoch in epochs]
    means: Numbers = {}
    for name, first in reports[0].items():
        if first is None or isinstance(first, int | float):
            values = [report[name] for report in reports if report[name] is not None]
            means[name] = sum(values) / len(values) if values else None
    return means


@metric(scores="unreduced")
def leaderboard_a_component_capability() -> Metric:
    """Return the component mean and its four parts."""

    def compute(scores: list[SampleScore]) -> Value:
        return _part(scores, "leaderboard_a_component_capability")

    return compute


@metric(scores="unreduced")
def leaderboard_b_complete_reasoning_state() -> Metric:
    """Return the complete primary accuracy."""

    def compute(scores: list[SampleScore]) -> Value:
        return _part(scores, "leaderboard_b_complete_reasoning_state")

    return compute


@metric(scores="unreduced")
def secondary_diagnostics() -> Metric:
    """Return the diagnostics, which rank nothing; one that is undefined is left out."""

    def compute(scores: list[SampleScore]) -> Value:
        return _part(scores, "secondary_diagnostics")

    return compute


@metric(scores="unreduced")
def answers() -> Metric:
    """Return how many answers there were, how many of them could not be used, and how many places were repaired."""

    def compute(scores: list[SampleScore]) -> Value:
        said = [sample.score.metadata or {} for sample in scores]
        return {
            "answers": len(said),
            "invalid_predictions": sum(one["prediction"] is None for one in said),
            "repairs": sum(len(one["repairs"]) for one in said),
        }

    return compute


# ---------------------------------------------------------------- scorer and task
@scorer(metrics=[leaderboard_a_component_capability(), leaderboard_b_complete_reasoning_state(), secondary_diagnostics(), answers()])
def reasoning_state() -> Scorer:
    """Return the scorer: 1 or 0 for each of the five targets and for all of them together."""

    async def judge(state: TaskState, target: Target) -> Score:
        scenario, gold = Scenario(**state.metadata["scenario"]), State(**state.metadata["gold"])
        answer = parse(state.output.completion, scenario)
        right = [answer.state is not None and said == wanted for said, wanted in zip(answer.state or gold, gold, strict=True)]
        return Score(
            value={**{name: int(correct) for name, correct in zip(TARGETS, right, strict=True)}, "complete_primary": int(all(right))},
            answer=answer_text(answer.state, answer.confidence) if answer.state else None,
            explanation=f"{answer.failure}: {answer.detail}" if answer.failure else None,
            reason={"": None, "empty-answer": "no_response"}.get(answer.failure, "invalid_response_format"),
            metadata={
                "gold": gold._asdict(),
                "near_neighbour": state.metadata["near_neighbour"],
                "prediction": answer.state._asdict() if answer.state else None,
                "confidence": answer.confidence,
                "failure": answer.failure,
                "repairs": list(answer.repairs),
            },
        )

    return judge


@task
def rdod(dataset: str = str(ROOT), config: str = "default", split: str = "test", shots: int = 0, seed: int = 0, epochs: int = 1) -> Task:
    """Reconstruct the state of a reasoning trajectory.

    Args:
        dataset: folder or Hub id of the dataset; by default the checkout that holds this file.
        config: configuration of the dataset.
        split: split to be answered; it has to hold labels.
        shots: solved examples, from train, before every case.
        seed: seed of the choice of examples.
        epochs: how often every case is asked; scores are means over the epochs.
    """
    cases = [case_of(row) for row in load_rows(dataset, config, split)]
    ordered = order_examples([example_of(row) for row in load_rows(dataset, "train", "train")], seed) if shots else []
    return Task(
        dataset=MemoryDataset([_sample(*case, choose_shots(case[0], ordered, shots)) for case in cases], name=f"rdod_{split}", location=dataset),
        solver=generate(),
        scorer=reasoning_state(),
        epochs=epochs,
        fail_on_error=False,
        score_on_error=True,
        version=PROMPT_VERSION,
        metadata={"prompt_version": PROMPT_VERSION},
    )

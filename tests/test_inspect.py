"""The Inspect task: run end to end with its mock model and against a real server, aggregates held against the project's own scoring."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="runs in the environment of the harnesses: make harness")

sys.path.insert(0, str(Path(__file__).parent / "compat"))

from chat_server import ChatServer, Reply, gold_replies
from conftest import ROOT
from hub import endpoint, published  # noqa: F401  # fixtures
from inspect_ai import eval as run_task
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from scripted import CASES, mixed_answers, own_report

from harness.inspect_rdod import rdod
from harness.parse import parse
from harness.prompt import PROMPT_VERSION, Example, case_text, chat, choose_shots, order_examples
from rdod_metric.rules import TARGETS
from tools.publish import DATASET

GROUPS = ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics")


def mock(*epochs: dict[str, str], split: str = "test"):
    """Return a mock model that gives every case its answers, one for every epoch."""
    by_case = {case_text(scenario): [texts[scenario.scenario_id] for texts in epochs] for scenario, _ in CASES[split]}

    def reply(messages, tools, tool_choice, config):
        output = ModelOutput.from_content("mockllm/model", by_case[messages[-1].text].pop(0))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=reply)


def numbers(report: dict, group: str) -> dict[str, float]:
    """Return what a part of a report of our own holds in numbers that are defined."""
    return {name: value for name, value in report[group].items() if isinstance(value, int | float)}


def check_aggregates(log: EvalLog, *reports: dict) -> None:
    """Hold every number of a log against our own reports, one for every epoch, and see it in its group."""
    (result,) = log.results.scores
    shown = {group: {} for group in (*GROUPS, "answers")}
    for metric in result.metrics.values():
        shown[metric.group][metric.name] = metric.value
    for group in GROUPS:
        epochs = [numbers(report, group) for report in reports]
        wanted = {name: sum(epoch[name] for epoch in epochs) / len(epochs) for name in epochs[0]}
        assert shown[group] == pytest.approx(wanted, abs=1e-12), group
    assert shown["answers"]["answers"] == sum(report["benchmark"]["n"] for report in reports)
    assert shown["answers"]["invalid_predictions"] == sum(report["benchmark"]["invalid_predictions"] for report in reports)


@pytest.mark.parametrize(("config", "split"), [("default", "test"), ("default", "dev"), ("default", "train"), ("expanded", "test")])
def test_the_aggregates_are_those_of_our_own_scoring(config, split, tmp_path):
    cases = split if config == "default" else f"{config}/{split}"
    texts = mixed_answers(cases)
    (log,) = run_task(rdod(config=config, split=split), model=mock(texts, split=cases), log_dir=str(tmp_path), display="none")
    assert log.status == "success" and log.eval.task_version == PROMPT_VERSION
    report = own_report(texts, cases)
    assert report["benchmark"]["invalid_predictions"] > 0 < report["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"] < 1
    assert ("contrast_consistency" in log.results.scores[0].metrics) is (config == "expanded")
    check_aggregates(log, report)


def test_every_case_shows_its_fields(tmp_path):
    texts = mixed_answers()
    (log,) = run_task(rdod(), model=mock(texts), log_dir=str(tmp_path), display="none")
    samples = {sample.id: sample.scores["reasoning_state"] for sample in log.samples}
    for scenario, gold in CASES["test"]:
        one, answer = samples[scenario.scenario_id], parse(texts[scenario.scenario_id], scenario)
        right = [answer.state is not None and said == wanted for said, wanted in zip(answer.state or gold.state, gold.state, strict=True)]
        assert one.value == {**{target: int(correct) for target, correct in zip(TARGETS, right, strict=True)}, "complete_primary": int(all(right))}
        assert one.metadata["prediction"] == (answer.state._asdict() if answer.state else None)
        assert (one.metadata["failure"], one.metadata["repairs"], one.metadata["confidence"]) == (answer.failure, list(answer.repairs), answer.confidence)
        assert (one.answer is None) is bool(answer.failure) is (one.reason is not None)


def test_epochs_are_scored_one_by_one_and_averaged(tmp_path):
    first, second = mixed_answers(), {name: reply.text for name, (_, reply) in gold_replies().items()}
    model = mock(first, second)
    (log,) = run_task(rdod(epochs=2), model=model, log_dir=str(tmp_path), display="none", max_samples=1)
    assert len(log.samples) == 24
    check_aggregates(log, own_report(first), own_report(second))


def test_an_answer_that_says_nothing_leaves_undefined_scores_out(tmp_path):
    (log,) = run_task(rdod(), model=mock(dict.fromkeys(mixed_answers(), "")), log_dir=str(tmp_path), display="none")
    names = log.results.scores[0].metrics
    assert names["component_mean"].value == 0 and names["invalid_predictions"].value == 12
    assert "mean_absolute_onset_error" not in names and "expected_calibration_error" not in names


def test_the_prompt_is_ours_with_shots_and_without():
    ordered = order_examples([Example(scenario, gold.state) for scenario, gold in CASES["train"]], 7)
    for task, shots, split in ((rdod(), 0, "test"), (rdod(split="train", shots=2, seed=7), 2, "train")):
        for sample, (scenario, _) in zip(task.dataset, CASES[split], strict=True):
            messages = [{"role": message.role, "content": message.text} for message in sample.input]
            assert messages == chat(scenario, choose_shots(scenario, ordered, shots))


@pytest.mark.parametrize("config", ["test", "dev"])
def test_a_config_may_be_named(config):
    assert len(rdod(config=config, split=config).dataset) == len(CASES[config])


def test_the_blind_split_is_refused_in_words():
    with pytest.raises(ValueError, match="test_blind of .* holds no outcome_mode, .*: there is nothing to score against"):
        rdod(config="test_blind", split="test_blind")


def inspect(*arguments: object, **variables: str) -> subprocess.CompletedProcess:
    """Run a task as a user does."""
    command = [Path(sys.executable).with_name("inspect"), "eval", "harness/inspect_rdod.py", "--display", "plain", "--log-format", "json", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, encoding="utf-8", timeout=240)


def read_log(folder: Path) -> EvalLog:
    (path,) = folder.glob("*.json")
    return read_eval_log(str(path))


def test_a_real_server_is_asked_retried_parsed_and_scored(tmp_path):
    gold = {name: reply for name, (_, reply) in gold_replies().items()}
    names = list(gold)
    script = {
        names[0]: [Reply(status=429, headers={"Retry-After": "1"}), gold[names[0]]],
        names[1]: [Reply(status=500), gold[names[1]]],
        names[2]: [Reply(delay=5), gold[names[2]]],
        names[3]: [Reply("I can't tell.")],
        names[4]: [Reply('{"outcome_mode": "latent_dr', finish_reason="length")],
        names[5]: [Reply("forever", status=500)],
    }
    limits = ("--max-retries", 1, "--timeout", 20, "--attempt-timeout", 2)
    with ChatServer(script) as server:
        variables = {"LOCAL_API_KEY": "sk-test-key", "LOCAL_BASE_URL": server.base_url, "HF_HOME": str(tmp_path / "hf")}
        ended = inspect("--model", "openai-api/local/small", "-T", "shots=1", "--log-dir", tmp_path / "logs", *limits, **variables)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        asked = server.asked()
    assert all(asked[name] == 2 for name in names[:3]) and all(asked[name] == 1 for name in (*names[3:5], *names[6:])) and asked[names[5]] > 1
    texts = {name: reply.text for name, reply in gold.items()} | {name: script[name][0].text for name in names[3:6]}
    log = read_log(tmp_path / "logs")
    assert [sample.id for sample in log.samples if sample.error] == [names[5]]
    report = own_report(texts)
    assert report["benchmark"]["invalid_predictions"] == 3, "the case that ended in an error stays in the denominator"
    check_aggregates(log, report)


def test_the_hubs_id_loads_and_then_works_offline(endpoint, tmp_path):  # noqa: F811
    hub = {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_ENDPOINT": endpoint}
    offline = {**hub, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    with ChatServer({}) as server:
        for place, variables in enumerate((hub, offline)):
            folder = tmp_path / f"logs{place}"
            key = {"LOCAL_API_KEY": "sk-test-key", "LOCAL_BASE_URL": server.base_url}
            chosen = ("-T", f"dataset={DATASET.repo_id}", "-T", "shots=1")
            ended = inspect("--model", "openai-api/local/small", *chosen, "--log-dir", folder, **variables, **key)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            log = read_log(folder)
            assert log.eval.dataset.location == DATASET.repo_id
            check_aggregates(log, own_report({name: reply.text for name, (_, reply) in gold_replies().items()}))
        assert json.dumps(server.requests[0].body["messages"]).count("### Case") == 2

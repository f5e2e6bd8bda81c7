"""The tasks for lm-evaluation-harness: run end to end with its dummy model and against a real server, aggregates held against our own."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lm_eval", reason="runs in the environment of the harnesses: make harness")

sys.path.insert(0, str(Path(__file__).parent / "compat"))

import yaml
from chat_server import ChatServer, Reply, gold_replies
from conftest import ROOT
from hub import endpoint, published  # noqa: F401  # fixtures
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from scripted import CASES, mixed_answers, own_report

from harness.lm_eval import utils
from harness.prompt import CASE_MARK, Example, case_text, chat, completion, order_examples
from rdod_metric.scoring import AGGREGATES
from tools.publish import DATASET

TASKS = ROOT / "harness/lm_eval"
NAMES = utils.METRICS
SHOTS = order_examples([Example(scenario, gold.state) for scenario, gold in CASES["train"]], utils.SEED)


class Scripted(LM):
    """A model that knows the answers and keeps what it was asked."""

    def __init__(self, texts: dict[str, str], chats: bool) -> None:
        super().__init__()
        self.by_case = {case_text(scenario): texts[scenario.scenario_id] for scenario, _ in CASES["test"]}
        self.chats = chats
        self.asked: list[str] = []
        self.limits: list[dict] = []

    def generate_until(self, requests, disable_tqdm=False):
        self.asked += [request.args[0] for request in requests]
        self.limits += [request.args[1] for request in requests]
        last = [json.loads(text)[-1]["content"] if self.chats else CASE_MARK + text.rpartition(CASE_MARK)[2] for text in self.asked]
        return [self.by_case[case] for case in last]

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return json.dumps(chat_history)

    @property
    def tokenizer_name(self):
        return "none"

    def chat_template(self, chat_template=False):
        return "none"

    def loglikelihood(self, requests, disable_tqdm=False):
        raise AssertionError("the tasks generate")

    loglikelihood_rolling = loglikelihood


def evaluate(task: str, texts: dict[str, str], chats: bool = False, **options):
    """Run a task with a scripted model; return the numbers and the model."""
    model = Scripted(texts, chats)
    manager = TaskManager(include_path=str(TASKS), include_defaults=False)
    results = simple_evaluate(
        model, tasks=[task], task_manager=manager, apply_chat_template=chats, fewshot_as_multiturn=chats, bootstrap_iters=0, verbosity="ERROR", **options
    )
    return {name: results["results"][task][f"{name},none"] for name in NAMES}, model


def check_aggregates(shown: dict[str, float], report: dict) -> None:
    """Hold every number against a report of our own."""
    own = {
        name: value for part in report.values() if isinstance(part, dict) for name, value in part.items() if name in AGGREGATES and not isinstance(value, dict)
    }
    assert list(shown) == list(NAMES)
    for name in AGGREGATES:
        assert shown[name] == pytest.approx(own[name], abs=1e-12) if own[name] is not None else math.isnan(shown[name]), name
    assert shown["invalid_predictions"] == report["benchmark"]["invalid_predictions"]


@pytest.mark.parametrize("task", ["rdod", "rdod_fewshot"])
def test_the_aggregates_are_those_of_our_own_scoring(task):
    texts = mixed_answers()
    shown, _ = evaluate(task, texts)
    assert shown["invalid_predictions"] > 0 < shown["complete_primary_accuracy"] < 1
    check_aggregates(shown, own_report(texts))


@pytest.mark.parametrize("chats", [False, True])
@pytest.mark.parametrize(("task", "options", "shots"), [("rdod", {}, 0), ("rdod_fewshot", {}, 4), ("rdod_fewshot", {"num_fewshot": 2}, 2)])
def test_the_prompt_is_ours(task, options, shots, chats):
    _, model = evaluate(task, mixed_answers(), chats, **options)
    wanted = [json.dumps(chat(scenario, SHOTS[:shots])) if chats else completion(scenario, SHOTS[:shots]) for scenario, _ in CASES["test"]]
    assert model.asked == wanted
    assert {limit["until"][0] for limit in model.limits} == {"\n" + CASE_MARK}


def test_the_task_names_every_aggregate_and_which_way_is_better():
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))
    metrics = yaml.load((TASKS / "rdod.yaml").read_text("utf-8"), Loader)["metric_list"]
    assert [metric["metric"] for metric in metrics] == list(NAMES) == [*AGGREGATES, "invalid_predictions"]
    assert all(metric["aggregation"] == f"utils.{metric['metric']}" for metric in metrics)
    down = {metric["metric"] for metric in metrics if not metric["higher_is_better"]}
    assert all((name in down) is any(word in name for word in ("error", "brier", "false_alarm", "shift", "invalid")) for name in NAMES)


def lm_eval(*arguments: object, **variables: str) -> subprocess.CompletedProcess:
    """Run the harness as a user does."""
    command = [Path(sys.executable).with_name("lm_eval"), "run", "--include_path", "harness/lm_eval", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, encoding="utf-8", timeout=240)


def read_results(folder: Path, task: str) -> dict[str, float]:
    (path,) = folder.rglob("results_*.json")
    results = json.loads(path.read_text("utf-8"))["results"][task]
    return {name: results[f"{name},none"] for name in NAMES}


def test_the_dummy_model_runs_from_a_local_path(tmp_path):
    copy = tmp_path / "clone"
    for name in ("README.md", "data/train.parquet", "data/dev.parquet", "data/test.parquet", "data/test_blind.parquet"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    manager = TaskManager(include_path=str(TASKS), include_defaults=False, metadata={"dataset": str(copy)})
    results = simple_evaluate("dummy", tasks=["rdod", "rdod_fewshot"], task_manager=manager, bootstrap_iters=0)
    nothing = own_report(dict.fromkeys(mixed_answers(), "lol"))
    for task in ("rdod", "rdod_fewshot"):
        assert results["configs"][task]["metadata"]["dataset"] == str(copy)
        check_aggregates({name: results["results"][task][f"{name},none"] for name in NAMES}, nothing)


def test_a_real_server_is_asked_retried_parsed_and_scored(tmp_path):
    gold = {name: reply for name, (_, reply) in gold_replies().items()}
    names = list(gold)
    script = {
        names[0]: [Reply(status=429, headers={"Retry-After": "1"}), gold[names[0]]],
        names[1]: [Reply(status=500), gold[names[1]]],
        names[2]: [Reply(delay=5), gold[names[2]]],
        names[3]: [Reply("I can't tell.")],
        names[4]: [Reply('{"outcome_mode": "latent_dr', finish_reason="length")],
    }
    with ChatServer(script) as server:
        model = f"model=small,base_url={server.base_url}/chat/completions,num_concurrent=4,max_retries=4,timeout=2"
        arguments = ("--model", "local-chat-completions", "--model_args", model, "--tasks", "rdod", "--apply_chat_template", "--output_path", tmp_path / "out")
        ended = lm_eval(*arguments, OPENAI_API_KEY="sk-test-key", HF_HOME=str(tmp_path / "hf"))
        assert ended.returncode == 0, ended.stderr
        assert server.asked() == dict.fromkeys(names, 1) | dict.fromkeys(names[:3], 2)
    texts = {name: reply.text for name, reply in gold.items()} | {name: script[name][0].text for name in names[3:5]}
    check_aggregates(read_results(tmp_path / "out", "rdod"), own_report(texts))


def test_the_hubs_id_loads_and_then_works_offline(endpoint, tmp_path):  # noqa: F811
    hub = {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_ENDPOINT": endpoint}
    offline = {**hub, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    where = ("--metadata", json.dumps({"dataset": DATASET.repo_id}))
    for place, variables in enumerate((hub, offline)):
        ended = lm_eval("--model", "dummy", "--tasks", "rdod_fewshot", *where, "--output_path", tmp_path / f"out{place}", **variables)
        assert ended.returncode == 0, ended.stderr
        assert read_results(tmp_path / f"out{place}", "rdod_fewshot")["invalid_predictions"] == 12

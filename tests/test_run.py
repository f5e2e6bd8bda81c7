"""harness/run.py against a real server on the loopback: asking, retrying, stopping, resuming, replaying, and keeping the key."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from chat_server import ChatServer, Reply, gold_replies
from conftest import ROOT

from harness.prompt import Example, chat, choose_shots, order_examples
from rdod_metric.tables import read_blind, read_cases

KEY = "sk-test-0123456789abcdefghij"
TEST, BLIND = ROOT / "data/test.csv", ROOT / "data/test_blind.csv"
GOLD = {name: reply for name, (_, reply) in gold_replies().items()}
NAMES = list(GOLD)
CUT = Reply('{"outcome_mode": "latent_dr', finish_reason="length")


@pytest.fixture
def ask(command, tmp_path):
    """Return a function that runs the command on the blind test, with the key, against a server."""

    def run(server, *options, key=KEY):
        arguments = (BLIND, tmp_path / "predictions.csv", "--model", "small-model", "--base-url", server.base_url)
        return command("harness/run.py", *arguments, *options, env={"OPENAI_API_KEY": key})

    return run


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "predictions.answers.jsonl").read_text("utf-8").splitlines()]


def manifest(folder: Path) -> dict:
    return json.loads((folder / "predictions.run.json").read_text("utf-8"))


def test_a_good_model_gets_a_valid_file_a_score_and_a_manifest(ask, command, tmp_path):
    with ChatServer({}) as server:
        ended = ask(server, "--gold", TEST)
        assert ended.status == 0, ended.err
        assert server.asked() == dict.fromkeys(NAMES, 1)
        assert {request.authorization for request in server.requests} == {f"Bearer {KEY}"}
        assert {(request.body["model"], request.body["temperature"]) for request in server.requests} == {("small-model", 0.0)}
    assert "component_mean                          1.0000" in ended.out
    assert command("scorer/validate.py", "predictions", tmp_path / "predictions.csv", "--gold", TEST).status == 0
    report = json.loads((tmp_path / "predictions.report.json").read_text("utf-8"))
    scored = command("scorer/score.py", TEST, tmp_path / "predictions.csv", "--json")
    assert report == json.loads(scored.out)
    run, *answers = lines(tmp_path)
    assert run["run"]["model"] == "small-model" and len(answers) == 12
    told = manifest(tmp_path)
    assert (told["cases"], told["usable"], told["unusable"], told["repairs"], told["retries"], told["failed_requests"]) == (12, 12, [], {}, 0, 0)
    assert told["prompt_version"] and told["blind_sha256"] == json.loads((ROOT / "manifest.json").read_bytes())["files"]["data/test_blind.csv"]["sha256"]
    assert told["tokens"] == {kind: sum(answer["tokens"][kind] for answer in answers) for kind in ("prompt", "completion")}
    assert told["score"]["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"] == 1.0


def test_rate_limits_timeouts_and_server_errors_are_retried_and_bad_answers_listed(ask, command, tmp_path):
    script = {
        NAMES[0]: [Reply(status=429, headers={"Retry-After": "2"}), GOLD[NAMES[0]]],
        NAMES[1]: [Reply(status=500), Reply(status=503), GOLD[NAMES[1]]],
        NAMES[2]: [Reply(delay=4), GOLD[NAMES[2]]],
        NAMES[3]: [Reply("I can't tell.")],
        NAMES[4]: [CUT],
        NAMES[5]: [Reply(GOLD[NAMES[5]].text.replace(": 0.9}", ': "90%",}'))],
    }
    options = ("--gold", TEST, "--timeout", 1.5)
    with ChatServer(script) as server:
        ended = ask(server, *options)
        assert ended.status == 1
        first = server.asked()
        assert first == dict.fromkeys(NAMES, 1) | {NAMES[0]: 2, NAMES[1]: 3, NAMES[2]: 2}
        again = ask(server, *options, "--invalid", "incorrect")
        assert again.status == 0, again.err
        assert server.asked() == first, "an answer that can't be read is not asked for again"
    assert f"{NAMES[3]}: no JSON object names any of the five targets [no-object]" in ended.out
    assert f"{NAMES[4]}: an object begins, but none is complete; the endpoint cut the answer off at its length limit [incomplete-object]" in ended.out
    assert "2 of 12 cases have no usable answer" in ended.err and "is not written" in ended.err
    assert "invalid predictions, counted wrong on every target: 2" in again.out
    told = manifest(tmp_path)
    assert told["retries"] == 4 and told["repairs"] == {"percent": 1, "trailing-comma": 1}
    assert [case["scenario_id"] for case in told["unusable"]] == NAMES[3:5]
    waited = {record["scenario_id"]: record["seconds"] for record in lines(tmp_path)[1:]}
    assert waited[NAMES[0]] >= 2, "Retry-After is honoured"
    refused = command("scorer/score.py", TEST, tmp_path / "predictions.csv")
    assert refused.status == 1 and NAMES[3] in refused.out
    scored = command("scorer/score.py", TEST, tmp_path / "predictions.csv", "--invalid", "incorrect", "--json")
    assert json.loads(scored.out) == json.loads((tmp_path / "predictions.report.json").read_text("utf-8"))


def test_without_the_policy_no_prediction_file_pretends(ask, tmp_path):
    with ChatServer({NAMES[0]: [CUT]}) as server:
        assert ask(server).status == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["predictions.answers.jsonl", "predictions.run.json"]
        assert manifest(tmp_path)["predictions_file"] is None
        (tmp_path / "predictions.csv").write_text("from before", "utf-8")
        assert "the file of that name is older" in ask(server).err
    assert (tmp_path / "predictions.csv").read_text("utf-8") == "from before"


def test_what_never_arrived_is_asked_for_again_and_nothing_else(ask, tmp_path):
    with ChatServer({NAMES[0]: [Reply(status=500), GOLD[NAMES[0]]], NAMES[1]: [Reply(body=b"<html>")] * 2 + [GOLD[NAMES[1]]]}) as server:
        ended = ask(server, "--max-retries", 0, "--concurrency", 1)
        assert ended.status == 1 and ended.out.count("[no-answer]") == 2
        assert {record["scenario_id"] for record in lines(tmp_path)[1:] if "error" in record} == {NAMES[0], NAMES[1]}
        assert ask(server, "--max-retries", 0).status == 1
        assert ask(server, "--max-retries", 0).status == 0
        assert server.asked() == dict.fromkeys(NAMES, 1) | {NAMES[0]: 2, NAMES[1]: 3}
    assert (manifest(tmp_path)["failed_requests"], manifest(tmp_path)["usable"]) == (3, 12)


def test_a_replay_gives_the_same_files_and_asks_nobody(ask, command, tmp_path):
    with ChatServer({NAMES[0]: [CUT], NAMES[1]: [Reply(status=500), GOLD[NAMES[1]]]}) as server:
        policy = ("--gold", TEST, "--invalid", "incorrect")
        first = ask(server, *policy, "--shots", 2)
    copy = tmp_path / "copy"
    replayed = command(
        "harness/run.py", BLIND, copy / "predictions.csv", "--replay", tmp_path / "predictions.answers.jsonl", *policy, env={"OPENAI_API_KEY": ""}
    )
    assert (first.status, replayed.status) == (0, 0), replayed.err
    for name in ("predictions.csv", "predictions.run.json", "predictions.report.json"):
        assert (copy / name).read_bytes() == (tmp_path / name).read_bytes()
    assert not (copy / "predictions.answers.jsonl").exists()


def started(server, tmp_path, *options, **streams):
    command = [sys.executable, ROOT / "harness/run.py", BLIND, tmp_path / "predictions.csv", "--model", "m", "--base-url", server.base_url, *options]
    return subprocess.Popen(command, env={**os.environ, "OPENAI_API_KEY": KEY}, text=True, **streams)


def wait_for_answers(path: Path, number: int) -> None:
    until = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < number + 1:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_killed_run_goes_on_where_it_was(command, tmp_path):
    slow = {name: [reply._replace(delay=0.25)] for name, reply in GOLD.items()}
    answers = tmp_path / "predictions.answers.jsonl"
    with ChatServer(slow) as server:
        process = started(server, tmp_path, "--concurrency", "1", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_answers(answers, 4)
        process.kill()
        process.wait()
        kept = {record["scenario_id"] for record in lines(tmp_path)[1:]}
        assert 4 <= len(kept) < 12
        asked = set(server.asked())
        with answers.open("ab") as file:
            file.write(b'{"scenario_id": "RDOD2-036", "answ')  # what a kill in the middle of a write leaves
        ended = command("harness/run.py", BLIND, tmp_path / "predictions.csv", "--model", "m", "--base-url", server.base_url, env={"OPENAI_API_KEY": KEY})
        assert ended.status == 0, ended.err
        counts = server.asked()
    assert f"{len(kept)} of 12 answers are in" in ended.out
    assert {name for name, count in counts.items() if count > 1} <= asked - kept, "only what was on its way is asked for twice"
    assert sorted(record["scenario_id"] for record in lines(tmp_path)[1:]) == NAMES
    assert manifest(tmp_path)["usable"] == 12


def test_an_interrupt_ends_it_at_once_and_says_how_to_go_on(tmp_path):
    slow = {name: [reply._replace(delay=0.2 if name < NAMES[2] else 8)] for name, reply in GOLD.items()}
    with ChatServer(slow) as server:
        process = started(server, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for_answers(tmp_path / "predictions.answers.jsonl", 2)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert time.monotonic() - sent < 5, "it does not wait for answers that are on their way"
    assert process.returncode == 130
    assert "the same command goes on from there" in err and "Traceback" not in out + err
    assert len(lines(tmp_path)) == 3


@pytest.mark.parametrize(("status", "requests"), [(401, 1), (403, 1), (404, 1), (400, 3), (422, 3)])
def test_a_server_that_refuses_everything_is_left_alone_and_told_in_one_line(ask, tmp_path, status, requests):
    with ChatServer({name: [Reply(f"no, not with {KEY}\n\x1b[31m", status=status)] for name in NAMES}) as server:
        ended = ask(server, "--concurrency", 1)
        assert sum(server.asked().values()) == requests
    assert ended.status == 2 and ended.err.startswith("error: the server can't be asked: ") and ended.err.count("\n") == 1
    assert "not with [key]" in ended.err and "\x1b" not in ended.err and KEY not in ended.out + ended.err


@pytest.mark.parametrize("place", [0, 3])
def test_one_case_that_is_refused_does_not_end_the_run(ask, tmp_path, place):
    with ChatServer({NAMES[place]: [Reply("too long", status=400)]}) as server:
        ended = ask(server, "--concurrency", 1)
    assert ended.status == 1 and f"{NAMES[place]}: BadRequestError" in ended.out
    assert manifest(tmp_path)["usable"] == 11


@pytest.mark.parametrize(
    "change",
    [
        {"usage": None},
        {"usage": {"prompt_tokens": None, "completion_tokens": "many"}},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": [{"type": "text", "text": "?"}]}, "finish_reason": None}]},
        {"choices": []},
        {"choices": None},
    ],
)
def test_odd_replies_end_in_a_listed_case_and_never_in_a_traceback(ask, tmp_path, change):
    with ChatServer({}) as server:
        body = {**server.completion(GOLD[NAMES[0]], {"model": "m", "messages": []}), **change}
        server.replies[NAMES[0]] = [Reply(body=json.dumps(body).encode())]
        ended = ask(server)
    usable = "usage" in change
    assert ended.status == (0 if usable else 1), ended.err
    assert manifest(tmp_path)["usable"] == 11 + usable


def test_nobody_there(command, tmp_path):
    with ChatServer({}) as server:
        nowhere = server.base_url
    ended = command("harness/run.py", BLIND, tmp_path / "p.csv", "--model", "m", "--base-url", nowhere, "--max-retries", 0, env={"OPENAI_API_KEY": KEY})
    assert (ended.status, ended.err) == (2, f"error: the server can't be asked: no connection to {nowhere}\n")


def test_the_key_is_in_nothing_that_is_printed_or_written(ask, command, tmp_path):
    echo = Reply(f"Incorrect API key provided: {KEY}", status=500)
    with ChatServer({NAMES[0]: [echo], NAMES[1]: [echo, GOLD[NAMES[1]]]}) as server:
        ended = ask(server, "--max-retries", 1, "--invalid", "incorrect", "--gold", TEST)
        secret = server.base_url.replace("http://", f"http://user:{KEY}@") + f"?token={KEY}"
        other = command("harness/run.py", BLIND, tmp_path / "o.csv", "--model", "m", "--base-url", secret, "--max-retries", 0, env={"OPENAI_API_KEY": KEY})
    assert ended.status == 0, ended.err
    assert "[key]" in ended.out
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"[key]" in written and len(written) > 10_000
    for text in (ended.out.encode(), ended.err.encode(), other.out.encode(), other.err.encode(), written):
        assert KEY.encode() not in text


def test_a_server_without_a_key_needs_none(ask):
    with ChatServer({}) as server:
        assert ask(server, key="").status == 0
        assert {request.authorization for request in server.requests} == {"Bearer unused"}


def test_shots_are_those_of_the_prompt(ask, tmp_path):
    train = [Example(case.scenario, case.gold.state) for case in read_cases(ROOT / "data/train.csv")[0]]
    with ChatServer({}) as server:
        assert ask(server, "--shots", 3, "--seed", 5, "--temperature", 0.7).status == 0
        sent = {request.case: request.body for request in server.requests}
    for _, scenario in read_blind(BLIND)[0]:
        shots = choose_shots(scenario, order_examples(train, 5), 3)
        assert sent[scenario.scenario_id]["messages"] == chat(scenario, shots)
        assert sent[scenario.scenario_id]["temperature"] == 0.7
    assert (manifest(tmp_path)["shots"], manifest(tmp_path)["seed"], len(manifest(tmp_path)["examples_sha256"])) == (3, 5, 64)


def test_requests_run_side_by_side_up_to_the_limit(ask):
    with ChatServer({name: [reply._replace(delay=0.5)] for name, reply in GOLD.items()}) as server:
        assert ask(server, "--concurrency", 3).status == 0
        assert server.peak == 3


def test_a_terminal_gets_a_progress_bar(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    with ChatServer({NAMES[0]: [Reply(status=500)]}) as server:
        process = started(server, tmp_path, "--max-retries", "0", "--concurrency", "2", stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # how Linux ends a terminal
                break
        process.wait()
    os.close(ours)
    bar = [part for part in shown.decode().split("\r") if "12/12" in part]
    assert bar, shown
    assert "failed=1" in bar[-1] and "tokens=" in bar[-1] and "case" in bar[-1]


@pytest.mark.parametrize("option", [("--model", "other"), ("--shots", "1"), ("--temperature", "1")])
def test_answers_of_another_run_are_not_mixed_in(ask, command, tmp_path, option):
    with ChatServer({}) as server:
        assert ask(server).status == 0
        before = (tmp_path / "predictions.answers.jsonl").read_bytes()
        ended = ask(server, *option)
        assert sum(server.asked().values()) == 12
    assert ended.status == 2 and "belongs to another run" in ended.err and option[0][2:] in ended.err
    assert (tmp_path / "predictions.answers.jsonl").read_bytes() == before


def test_a_damaged_file_of_answers_is_named_by_line(ask, command, tmp_path):
    with ChatServer({}) as server:
        assert ask(server).status == 0
    answers = tmp_path / "predictions.answers.jsonl"
    good = answers.read_bytes().splitlines(keepends=True)

    def replay(*content: bytes, blind=BLIND):
        answers.write_bytes(b"".join(content))
        return command("harness/run.py", blind, tmp_path / "replayed.csv", "--replay", answers)

    for damage in (
        b"{oops\n",
        b"7\n",
        b'{"scenario_id": 3}\n',
        b'{"scenario_id": "RDOD2-025"}\n',
        b'{"scenario_id": "RDOD2-025", "answer": "", "tokens": 3}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\n",
    ):
        ended = replay(good[0], good[1], damage, *good[3:])
        assert ended.status == 1 and f"{answers}:3: " in ended.out and "[invalid-json]" in ended.out
    ended = replay(good[0], *good[1:], b'{"scenario_id": "RDOD2-999", "answer": ""}\n')
    assert ended.status == 1 and f"{answers}:14: " in ended.out and "[unknown-scenario]" in ended.out
    ended = replay(*good[1:])
    assert ended.status == 1 and f"{answers}:1: " in ended.out
    ended = replay(good[0], *good[2:])
    assert ended.status == 1 and "it was never asked for [no-answer]" in ended.out
    other = tmp_path / "other.csv"
    other.write_bytes(BLIND.read_bytes().replace(b"Headaches", b"Migraines"))
    ended = replay(*good, blind=other)
    assert ended.status == 1 and "[other-cases]" in ended.out
    assert not (tmp_path / "replayed.csv").exists()
    assert replay(*good).status == 0


def test_gold_of_other_cases_is_refused_before_anybody_is_asked(ask):
    with ChatServer({}) as server:
        ended = ask(server, "--gold", ROOT / "data/dev.csv")
        assert not server.asked()
    assert ended.status == 1 and "[missing-prediction]" in ended.out and "[unknown-scenario]" in ended.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((BLIND, "p.csv"), "--model NAME and --base-url URL are needed"),
        ((BLIND, "p.csv", "--replay", "x.jsonl", "--model", "m"), "--replay takes the model"),
        ((BLIND, "p.csv", "--replay", "x.jsonl"), "no such file: x.jsonl"),
        (("nothing.csv", "p.csv", "--model", "m", "--base-url", "http://127.0.0.1:9"), "no such file: nothing.csv"),
        ((BLIND, ".", "--model", "m", "--base-url", "http://127.0.0.1:9"), "is a folder"),
        ((BLIND, BLIND, "--model", "m", "--base-url", "http://127.0.0.1:9"), "would overwrite the input"),
        ((BLIND, "p.csv", "--model", "m", "--base-url", "http://127.0.0.1:9", "--shots", "17"), "17 shots are more than the 16"),
        ((BLIND, "p.csv", "--model", "m", "--base-url", "http://127.0.0.1:9", "--concurrency", "0"), "0 is below 1"),
        ((BLIND, "p.csv", "--model", "m", "--base-url", "nonsense"), "no address such as"),
    ],
)
def test_a_command_that_can_not_work_says_why(command, tmp_path, arguments, said):
    ended = command("harness/run.py", *arguments, env={"OPENAI_API_KEY": KEY})
    assert ended.status == 2 and said in ended.err
    assert not list(tmp_path.iterdir())

#!/usr/bin/env python3
"""Ask a model behind an OpenAI-compatible endpoint for every case of a blind file, and write its predictions.

Beside PREDICTIONS (say predictions.csv) stand predictions.answers.jsonl, which gets every raw answer
as it arrives, predictions.run.json, the manifest of the run, and with --gold predictions.report.json.
A run that was stopped goes on where it was when the same command is given again. The key is read from
OPENAI_API_KEY; a server that wants none needs none.

Exit status: 0 written, 1 findings in an input or cases without a usable answer, 2 the command could
not do its work.
"""

import argparse
import asyncio
import datetime
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tqdm import tqdm

from baseline.baseline import prediction_csv
from harness.parse import Answer, parse
from harness.prompt import PROMPT_VERSION, Example, chat, choose_shots, order_examples, template_sha256
from rdod_metric.rules import BENCHMARK_NAME, VERSION, Gold, Prediction, Problem, Scenario, State, pairing_problems, shown, text_sha256, unknown_scenario
from rdod_metric.scoring import score
from rdod_metric.tables import read_blind, read_cases, read_predictions
from scorer.command import FINDINGS, ROOT, VALID, Unable, existing_file, print_findings, run, write_whole
from scorer.score import text_report
from scorer.validate import gold_by_id

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KEY_VARIABLE = "OPENAI_API_KEY"
"""Environment variable that holds the key."""

NO_ANSWER = "no-answer"
"""Name of the failure of a case for which no answer arrived."""

UNUSABLE = State("", None, "", "", None)
"""What is written for a case without a usable answer: no label, so that no scorer can take it for an answer."""

_TOKENS = ("prompt", "completion")
_RUN_IS_WRONG = (401, 403, 404)  # the key, the address or the model: every request would fail the same way
_REFUSALS = 3  # so many such answers, and no other, and the parameters are to blame rather than the cases
_LONGEST_ERROR = 500  # characters kept of what a server says
_REQUEST_IS_WRONG = (400, 422)  # a parameter that the model does not take, or one case that is too long


class Outputs(NamedTuple):
    """The files of a run."""

    predictions: Path
    answers: Path
    manifest: Path
    report: Path

    @classmethod
    def beside(cls, predictions: Path) -> "Outputs":
        """Name the files that stand beside a prediction file."""
        return cls(predictions, *(predictions.with_suffix(suffix) for suffix in (".answers.jsonl", ".run.json", ".report.json")))


class Log(NamedTuple):
    """A file of raw answers: the run that asked for them, and the last line that each case has.

    Attributes:
        run: the parameters of the run; empty if the file has no line yet.
        lines: by scenario id, the number of the line (from 1) and what it holds.
        complete: bytes up to the end of the last complete line; a line torn by a kill follows.
        failed: lines that tell of a request without an answer.
    """

    run: dict[str, Any]
    lines: dict[str, tuple[int, dict[str, Any]]]
    complete: int
    failed: int


# ---------------------------------------------------------------- raw answers
def _line_problem(record: object, number: int) -> str:
    """Say what keeps a decoded line from being one of this command's, or ''."""
    if not isinstance(record, dict):
        return shown(record)
    if number == 1:
        return "" if isinstance(record.get("run"), dict) else "no parameters of a run"
    if not isinstance(record.get("scenario_id"), str):
        return "no scenario_id"
    if not isinstance(record.get("answer", record.get("error")), str):
        return "neither an answer nor an error"
    tokens = record.get("tokens")
    counted = tokens is None or (isinstance(tokens, dict) and all(isinstance(tokens.get(kind), int) for kind in _TOKENS))
    sound = counted and isinstance(record.get("retries", 0), int) and isinstance(record.get("at", ""), str)
    return "" if sound else "tokens, retries or a time of another kind"


def read_log(path: Path) -> tuple[Log, list[Problem]]:
    """Return the answers of a file, which need not exist, and what is wrong with it. A torn last line is no fault."""
    content = path.read_bytes() if path.exists() else b""
    complete = content.rfind(b"\n") + 1
    problems: list[Problem] = []
    run_: dict[str, Any] = {}
    lines: dict[str, tuple[int, dict[str, Any]]] = {}
    failed = 0
    for number, line in enumerate(content[:complete].split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
            fault = _line_problem(record, number)
        except (ValueError, RecursionError) as error:
            fault = f"no JSON ({error})"
        if fault:
            problems.append(Problem("invalid-json", "line", fault, "a line that harness/run.py wrote", file=str(path), line=number))
        elif number == 1:
            run_ = record["run"]
        else:
            failed += "error" in record
            if "answer" in record or "answer" not in lines.get(record["scenario_id"], (0, {}))[1]:
                lines[record["scenario_id"]] = (number, record)
    return Log(run_, lines, complete, failed), problems


def append_line(path: Path, record: Mapping[str, Any], complete: int | None = None) -> None:
    """Append a record to a file of raw answers and wait until it is on the disk.

    Args:
        path: the file; it and its folder are made if need be.
        record: what the line holds.
        complete: cut the file to this many bytes first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        if complete is not None:
            file.truncate(complete)
        file.write(json.dumps(record, ensure_ascii=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


# ---------------------------------------------------------------- asking
class Fatal(Exception):
    """Raised where no further request can do better; the message is the server's."""


class _Failed(Exception):
    """Raised by one request; `blame` says what may be wrong beyond it: the run, the request or the connection."""

    def __init__(self, words: str, blame: Literal["", "run", "request", "connection"] = "") -> None:
        super().__init__(words)
        self.blame = blame


def _words(error: Exception, key: str) -> str:
    """Return an error as it may be kept and shown: printable, in one line, cut, without the key that a server may echo."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    text = text.replace(key, "[key]") if key else text
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_ERROR])


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


async def _ask(client: "AsyncOpenAI", parameters: Mapping[str, Any], messages: list[dict[str, str]], key: str) -> dict[str, Any]:
    """Ask once (the client retries by itself) and return what the answer's line holds; raise `_Failed`."""
    import openai

    started = time.monotonic()
    try:
        raw = await client.chat.completions.with_raw_response.create(
            model=parameters["model"],
            messages=cast("Any", messages),  # plain dicts of the documented shape
            temperature=parameters["temperature"],
        )
        completion = raw.parse()
        choice = completion.choices[0]
        content, usage = choice.message.content, completion.usage
        return {
            "answer": content if isinstance(content, str) else "",
            "finish_reason": choice.finish_reason,
            "tokens": {"prompt": _count(usage.prompt_tokens), "completion": _count(usage.completion_tokens)} if usage else None,
            "retries": raw.retries_taken,
            "seconds": round(time.monotonic() - started, 3),
        }
    except openai.APIStatusError as error:
        blame: Literal["", "run", "request"] = "run" if error.status_code in _RUN_IS_WRONG else "request" if error.status_code in _REQUEST_IS_WRONG else ""
        raise _Failed(_words(error, key), blame) from None
    except openai.APITimeoutError as error:
        raise _Failed(_words(error, key)) from None
    except openai.APIConnectionError:
        raise _Failed(f"no connection to {parameters['base_url']}", "connection") from None
    except (openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise _Failed("the reply is no chat completion; " + _words(error, key)) from None


async def _ask_all(
    cases: Sequence[tuple[Scenario, list[dict[str, str]]]],
    parameters: Mapping[str, Any],
    arguments: argparse.Namespace,
    keep: Callable[[str, dict[str, Any]], None],
    answered: bool,
) -> None:
    """Ask for every case, several at a time; `answered` tells whether the run has had an answer before. Raises `Fatal`."""
    from openai import AsyncOpenAI

    key = os.environ.get(KEY_VARIABLE, "")
    waiting = iter(cases)  # shared by the workers, so that every case goes to one of them
    refusals = 0

    async with AsyncOpenAI(api_key=key or "unused", base_url=arguments.base_url, max_retries=arguments.max_retries, timeout=arguments.timeout) as client:

        async def work() -> None:
            nonlocal answered, refusals
            for scenario, messages in waiting:
                try:
                    record = await _ask(client, parameters, messages, key)
                    answered = True
                except _Failed as failed:
                    refusals += failed.blame == "request"
                    useless = failed.blame == "connection" or refusals == min(_REFUSALS, len(cases))
                    if failed.blame == "run" or (useless and not answered):
                        raise Fatal(str(failed)) from None
                    record = {"error": str(failed)}
                keep(scenario.scenario_id, record)

        workers = [asyncio.create_task(work()) for _ in range(min(arguments.concurrency, len(cases)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


def _shown_url(url: str) -> str:
    """Return an address without user, password and query, which may hold a secret."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _parameters(arguments: argparse.Namespace, blind: Path, examples: Path | None) -> dict[str, Any]:
    """Return everything that the answers depend on, as the first line of their file keeps it."""
    return {
        "benchmark": BENCHMARK_NAME,
        "version": VERSION,
        "model": arguments.model,
        "base_url": _shown_url(arguments.base_url),
        "temperature": arguments.temperature,
        "prompt_version": PROMPT_VERSION,
        "prompt_sha256": template_sha256(),
        "shots": arguments.shots,
        "seed": arguments.seed,
        "examples_sha256": text_sha256(examples.read_bytes()) if examples else None,
        "blind_file": blind.name,
        "blind_sha256": text_sha256(blind.read_bytes()),
    }


def _examples(path: Path) -> list[Example]:
    cases, problems = read_cases(path)
    if problems:
        raise Unable(f"{path} has {len(problems)} findings; run scorer/validate.py labelled {path}")
    return [Example(case.scenario, case.gold.state) for case in cases]


def collect(scenarios: Sequence[Scenario], arguments: argparse.Namespace, answers: Path) -> int:
    """Ask for every case that the file of raw answers has none for; return an exit status.

    Raises:
        Unable: the file belongs to another run, or the server refuses.
    """
    train = ROOT / "data/train.csv" if arguments.shots else None
    parameters = _parameters(arguments, Path(arguments.blind), train)
    log, problems = read_log(answers)
    if problems:
        return print_findings(problems)
    for name, value in parameters.items():
        if log.run and log.run.get(name) != value:
            raise Unable(
                f"{answers} belongs to another run ({name}: {shown(log.run.get(name))} there, {shown(value)} here); remove it or name another prediction file"
            )
    ordered = order_examples(_examples(train), arguments.seed) if train else []
    try:
        cases = [
            (scenario, chat(scenario, choose_shots(scenario, ordered, arguments.shots)))
            for scenario in scenarios
            if "answer" not in log.lines.get(scenario.scenario_id, (0, {}))[1]
        ]
    except ValueError as error:
        raise Unable(str(error)) from None
    if not log.run:
        append_line(answers, {"run": {**parameters, "started": _now()}}, 0)
    elif log.complete < answers.stat().st_size:
        with answers.open("ab") as file:
            file.truncate(log.complete)
    done = len(scenarios) - len(cases)
    if done:
        print(f"{done} of {len(scenarios)} answers are in {answers} already")
    if not cases:
        return VALID
    tokens, failed = 0, 0
    with tqdm(total=len(scenarios), initial=done, disable=None, unit="case") as bar:

        def keep(scenario_id: str, record: dict[str, Any]) -> None:
            nonlocal tokens, failed
            append_line(answers, {"scenario_id": scenario_id, **record, "at": _now()})
            tokens += sum((record.get("tokens") or {}).values())
            failed += "error" in record
            bar.set_postfix(tokens=tokens, failed=failed, refresh=False)
            bar.update()

        try:
            asyncio.run(_ask_all(cases, parameters, arguments, keep, answered=bool(done)))
        except Fatal as error:
            raise Unable(f"the server can't be asked: {error}") from None
        except KeyboardInterrupt:
            bar.close()
            print(f"the answers so far are in {answers}; the same command goes on from there", file=sys.stderr)
            raise
    return VALID


# ---------------------------------------------------------------- from answers to a submission
def read_answers(scenarios: Iterable[Scenario], log: Log) -> dict[str, Answer]:
    """Return what every case's raw answer says, by scenario id."""
    answers = {}
    for scenario in scenarios:
        _, record = log.lines.get(scenario.scenario_id, (0, {"error": "it was never asked for"}))
        if "answer" in record:
            answer = parse(record["answer"], scenario)
            if answer.failure and record.get("finish_reason") == "length":
                answer = answer._replace(detail=answer.detail + "; the endpoint cut the answer off at its length limit")
            answers[scenario.scenario_id] = answer
        else:
            answers[scenario.scenario_id] = Answer(None, failure=NO_ANSWER, detail=record["error"])
    return answers


def predictions_of(answers: Mapping[str, Answer]) -> list[Prediction]:
    """Return a prediction for every answer; one that is not usable becomes `UNUSABLE`."""
    return [Prediction(scenario_id, answer.state or UNUSABLE, answer.confidence) for scenario_id, answer in answers.items()]


def manifest(log: Log, content: bytes, answers: Mapping[str, Answer], outputs: Outputs, invalid: str, report: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the manifest: a function of the raw answers, the blind file and the gold alone."""
    records = [record for _, record in log.lines.values()]
    tokens = [record["tokens"] for record in records if record.get("tokens")]
    usable = sum(answer.state is not None for answer in answers.values())
    written = usable == len(answers) or invalid == "incorrect"
    return {
        **log.run,
        "finished": max((record["at"] for record in records if "at" in record), default=None),
        "answers_file": outputs.answers.name,
        "answers_sha256": hashlib.sha256(content).hexdigest(),
        "cases": len(answers),
        "usable": usable,
        "unusable": [
            {"scenario_id": scenario_id, "failure": answer.failure, "detail": answer.detail} for scenario_id, answer in answers.items() if answer.state is None
        ],
        "repairs": dict(sorted(Counter(repair for answer in answers.values() for repair in answer.repairs).items())),
        "tokens": {kind: sum(record[kind] for record in tokens) for kind in _TOKENS},
        "retries": sum(record.get("retries", 0) for record in records),
        "failed_requests": log.failed,
        "invalid": invalid,
        "predictions_file": outputs.predictions.name if written else None,
        "predictions_sha256": text_sha256(prediction_csv(predictions_of(answers)).encode()) if written else None,
        "score": report
        and {
            key: report[key] for key in ("benchmark", "leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics")
        },
    }


def log_problems(log: Log, scenarios: Sequence[Scenario], blind: Path, path: Path) -> list[Problem]:
    """Return what keeps a file of raw answers from being one for a blind file."""
    known = {scenario.scenario_id for scenario in scenarios}
    problems = [
        unknown_scenario(name, known)._replace(file=str(path), line=number, expected="an id of the blind file")
        for name, (number, _) in log.lines.items()
        if name not in known
    ]
    sha256 = text_sha256(blind.read_bytes())
    if log.run.get("blind_sha256") != sha256:
        found = f"answers to another file (sha256 {log.run.get('blind_sha256')})"
        problems.append(Problem("other-cases", "blind_sha256", found, f"answers to {blind} (sha256 {sha256})", file=str(path), line=1))
    return problems


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def finish(scenarios: Sequence[Scenario], arguments: argparse.Namespace, outputs: Outputs, gold: Mapping[str, Gold]) -> int:
    """Turn the raw answers into a prediction file, a manifest and, with gold, a report; return the exit status."""
    log, problems = read_log(outputs.answers)
    if problems := problems or log_problems(log, scenarios, Path(arguments.blind), outputs.answers):
        return print_findings(problems)
    answers = read_answers(scenarios, log)
    unusable = {scenario_id: answer for scenario_id, answer in answers.items() if answer.state is None}
    withheld = bool(unusable) and arguments.invalid != "incorrect"
    report = None
    if not withheld:
        write_whole(outputs.predictions, prediction_csv(predictions_of(answers)))
    if gold and not withheld:
        submission = read_predictions(outputs.predictions, gold, invalid=arguments.invalid)
        if submission.problems:
            return print_findings(submission.problems)
        gold_path = Path(arguments.gold)
        report = score(list(gold.values()), submission.predictions, gold_file=gold_path.name, gold_sha256=text_sha256(gold_path.read_bytes()))
        write_whole(outputs.report, _json(report))
    write_whole(outputs.manifest, _json(manifest(log, outputs.answers.read_bytes(), answers, outputs, arguments.invalid, report)))
    # every file is written by now: whoever stops reading what is printed loses none of them
    for scenario_id, answer in unusable.items():
        line = log.lines.get(scenario_id, (0, {}))[0]
        print(f"{outputs.answers}{f':{line}' if line else ''}: {scenario_id}: {answer.detail} [{answer.failure}]")
    if withheld:
        older = "; the file of that name is older" if outputs.predictions.exists() else ""
        print(
            f"{len(unusable)} of {len(answers)} cases have no usable answer, so {outputs.predictions} is not written{older}. Run the same command again to ask "
            f"for answers that never arrived, or add --invalid incorrect to have these cases counted wrong",
            file=sys.stderr,
        )
        return FINDINGS
    print(f"{len(answers)} predictions written to {outputs.predictions}" + f", {len(unusable)} of them blank and to be counted wrong" * bool(unusable))
    if report:
        print(text_report(report))
    return VALID


# ---------------------------------------------------------------- the command
def _at_least(lowest: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        number = int(text)
        if number < lowest:
            raise argparse.ArgumentTypeError(f"{number} is below {lowest}")
        return number

    return whole


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or a bracket that never closes
        valid = False
    if not valid:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no address such as http://127.0.0.1:8000/v1")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blind", help="the file of model inputs")
    parser.add_argument("predictions", type=Path, help="the prediction file to write")
    parser.add_argument("--model", metavar="NAME", help="the model, as the endpoint calls it")
    parser.add_argument("--base-url", type=_address, metavar="URL", help="the endpoint, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--shots", type=_at_least(0), default=0, metavar="K", help="solved examples from data/train.csv before the case (default: 0)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the choice of examples (default: 0)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="sampling temperature (default: 0; some models take only 1)")
    parser.add_argument("--concurrency", type=_at_least(1), default=4, metavar="N", help="requests at a time (default: 4)")
    parser.add_argument(
        "--max-retries", type=_at_least(0), default=6, metavar="N", help="retries of a request after rate limits, timeouts and server errors (default: 6)"
    )
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="how long one request may take (default: 300)")
    parser.add_argument("--gold", metavar="FILE", help="labelled file to score the predictions against")
    parser.add_argument(
        "--invalid",
        choices=("error", "incorrect"),
        default="error",
        help="a case without a usable answer: write no prediction file (default), or write a blank row, which scoring with --invalid incorrect counts wrong",
    )
    parser.add_argument("--replay", metavar="JSONL", help="ask nobody; take the raw answers and the run's parameters from this file")
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.replay is None and not (arguments.model and arguments.base_url):
        parser.error("--model NAME and --base-url URL are needed, or --replay JSONL")
    if arguments.replay is not None and (arguments.model or arguments.base_url):
        parser.error("--replay takes the model and its address from the file")
    blind = existing_file(arguments.blind)
    if arguments.predictions.is_dir():
        raise Unable(f"can't write {arguments.predictions}: it is a folder")
    outputs = Outputs.beside(arguments.predictions)
    if arguments.replay is not None:
        outputs = outputs._replace(answers=existing_file(arguments.replay))
    for path in outputs:
        if path.is_dir():
            raise Unable(f"can't write {path}: it is a folder")
        if path.resolve() == blind.resolve():
            raise Unable("the output would overwrite the input")
    rows, problems = read_blind(blind)
    gold: dict[str, Gold] = {}
    if arguments.gold:
        cases, found = read_cases(existing_file(arguments.gold))
        problems += found
        gold = gold_by_id(cases)
        if not problems:
            seen = {scenario.scenario_id: None for _, scenario in rows}
            problems = [problem._replace(file=arguments.blind) for problem in pairing_problems(gold, seen)]
            problems += [unknown_scenario(name, gold)._replace(file=arguments.blind) for name in seen if name not in gold]
    if problems:
        return print_findings(problems)
    scenarios = [scenario for _, scenario in rows]
    if arguments.replay is None and (status := collect(scenarios, arguments, outputs.answers)) != VALID:
        return status
    return finish(scenarios, arguments, outputs, gold)


if __name__ == "__main__":
    run(main)

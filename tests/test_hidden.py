"""Hidden gold: scores leave, labels don't, whatever is asked, logged or raised."""

import copy
import csv
import io
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import ROOT
from samples import GOLD, PREDICTIONS, csv_bytes, edited, lines, read_rows

from rdod_metric import hidden
from rdod_metric.hidden import HiddenGold, HiddenGoldError, hidden_report
from rdod_metric.rules import LABEL_COLUMNS, LABELLED_COLUMNS
from rdod_metric.scoring import AGGREGATES, Resampling, score
from rdod_metric.tables import read_gold, read_predictions

FREE_TEXT = ("drift_mechanism", "repair_instruction", "trajectory_structure")


def marked(content: bytes) -> bytes:
    """Return a labelled file whose free label texts are words that occur nowhere else."""
    header, *rows = read_rows(content)
    for number, row in enumerate(rows):
        for column in FREE_TEXT:
            place = header.index(column)
            if row[place] != "none":
                row[place] = f"secret-{column}-{number}"
    return csv_bytes([header, *rows])


def relabelled(content: bytes) -> bytes:
    """Return the same scenarios under other labels: every one is `no_drift`."""
    header, *rows = read_rows(content)
    none = dict.fromkeys(LABEL_COLUMNS, "none") | {
        "outcome_mode": "no_drift",
        "first_drift_step": "",
        "repair_outcome": "not_applicable",
        "correction_source": "not_applicable",
        "visible_failure_step": "",
        "relative_onset_position": "",
        "annotation_confidence": "0.9",
    }
    length = header.index("trajectory_length")
    return csv_bytes([header, *([*row[:5], *({**none, "trajectory_length": row[length]}[column] for column in LABEL_COLUMNS)] for row in rows)])


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "private.csv"
    path.write_bytes(marked(GOLD))
    return path


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.csv"
    path.write_bytes(PREDICTIONS)
    return path


def everything(error: BaseException) -> str:
    """Return all that a handler could make of an exception, the variables of its frames included."""
    texts = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        texts += [str(error), repr(error), repr(error.args)]
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename != __file__:
                texts += [repr(value) for value in frame.f_locals.values()]
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(texts)


def cells(path: Path, columns: tuple[str, ...] = LABEL_COLUMNS) -> set[str]:
    """Return the label cells that are worth hiding and can be told from other text."""
    header, *rows = read_rows(path.read_bytes())
    return {row[header.index(column)] for row in rows for column in columns if len(row[header.index(column)]) > 6}


# ---------------------------------------------------------------- what leaves
def test_the_scores_are_the_scorer_s(gold: Path, predictions: Path) -> None:
    states, _, _ = read_gold(gold)
    plain = score(list(states.values()), read_predictions(predictions, states).predictions)
    report = HiddenGold(gold).score(predictions).report
    for board in ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state"):
        assert report[board] == plain[board]
    assert report["class_support"] == plain["class_support"] and set(report["secondary_diagnostics"]) == set(plain["secondary_diagnostics"])
    assert set(plain) >= set(report) and report["benchmark"]["hidden"] is True and report["benchmark"]["n"] == 8


def test_single_cases_and_per_class_values_stay(gold: Path, predictions: Path) -> None:
    report = HiddenGold(gold).score(predictions, resampling=Resampling(200)).report
    text = json.dumps(report, allow_nan=False)
    assert report["prediction_table"] == [] and report["per_class_metrics"] == {} and "onset_shift_check" not in report
    assert "RDOD2-0" not in text and "private" not in text and "secret-" not in text
    states, _, _ = read_gold(gold)
    plain = score(list(states.values()), read_predictions(predictions, states).predictions)
    assert plain["benchmark"]["gold_labels_sha256"][:12] not in text


def test_what_a_report_gains_stays_inside_until_it_is_named(gold: Path, predictions: Path) -> None:
    states, _, _ = read_gold(gold)
    plain = score(list(states.values()), read_predictions(predictions, states).predictions, gold_sha256="0" * 64)
    for part in (plain, plain["benchmark"], plain["secondary_diagnostics"], plain["leaderboard_a_component_capability"]):
        part["new_key"] = "secret-"
    assert "secret-" not in json.dumps(hidden_report(plain)) and "new_key" not in json.dumps(hidden_report(plain))


def test_exchanged_labels_leave_no_trace(tmp_path: Path) -> None:
    """Two cases get the same answer; their labels are exchanged: nothing that leaves may change but the hash of the file."""
    header, *rows = read_rows(GOLD)
    first, second = 0, 3
    one = [list(row) for row in rows]
    two = [list(row) for row in rows]
    for row in (*one, *two):
        row[3], row[4] = rows[0][3], rows[0][4]  # the same constraints and steps, so that labels can be exchanged
        for column in ("lost_constraint", "residual_constraint_failure"):
            place = header.index(column)
            source = next(original for original in rows if original[0] == row[0])
            if source[place] != "none":
                row[place] = json.loads(rows[0][3])[json.loads(source[3]).index(source[place])]
    two[first][5:], two[second][5:] = one[second][5:], one[first][5:]
    assert two[first][5:] != one[first][5:]
    heading, *answers = read_rows(PREDICTIONS)
    answers[first][1:] = answers[second][1:] = answers[1][1:]
    (tmp_path / "p.csv").write_bytes(csv_bytes([heading, *answers]))
    texts = []
    for name, content in (("a", one), ("b", two)):
        (tmp_path / f"{name}.csv").write_bytes(csv_bytes([header, *content]))
        report = HiddenGold(tmp_path / f"{name}.csv").score(tmp_path / "p.csv").report
        texts.append(json.dumps(report).replace(report["benchmark"]["gold_sha256"], "").replace(report["benchmark"]["gold_sha256"][:12], ""))
    assert texts[0] == texts[1]


def test_onset_means_over_a_few_cases_are_withheld(gold: Path, predictions: Path) -> None:
    header, *rows = read_rows(PREDICTIONS)
    for row in rows:
        row[1:6] = ["no_drift", "", "none", "not_applicable", "none"]
    rows[1][1:6] = ["latent_drift", "6", "scope_collapse", "unrepaired", "1"]
    one_onset = gold.with_name("one.csv")
    one_onset.write_bytes(csv_bytes([header, *rows]))
    secret = HiddenGold(gold)
    few, many = (secret.score(path).report["secondary_diagnostics"] for path in (one_onset, predictions))
    states, _, _ = read_gold(gold)
    open_ = score(list(states.values()), read_predictions(one_onset, states).predictions)["secondary_diagnostics"]
    assert open_["mean_absolute_onset_error"] is not None
    assert few["mean_absolute_onset_error"] is few["mean_onset_shift"] is None
    assert many["mean_absolute_onset_error"] is not None


def test_confidences_do_not_spell_out_which_answers_are_right(gold: Path) -> None:
    header, *rows = read_rows(PREDICTIONS)
    header = header[:6] + ["confidence"]
    spelling = [[*row[:6], str(0.5 + 2.0**-place / 1000)] for place, row in enumerate(rows, 1)]
    path = gold.with_name("spelling.csv")
    path.write_bytes(csv_bytes([header, *spelling]))
    scores = HiddenGold(gold).score(path, resampling=Resampling(100)).report
    for name in hidden.CONFIDENCE_SCORES:
        assert scores["secondary_diagnostics"][name] == round(scores["secondary_diagnostics"][name], 2)
    for row in scores["intervals"].values():
        assert all(end is None or end == round(end, 2) for end in (row["low"], row["high"])) and row["undefined_resamples"] == 0
    assert set(scores["intervals"]) == set(AGGREGATES)


# ---------------------------------------------------------------- findings
BAD = [
    edited(PREDICTIONS, 21, predicted_first_drift_step="99"),
    edited(PREDICTIONS, 22, predicted_residual_constraint_id="9"),
    edited(PREDICTIONS, 23, predicted_outcome_mode="drift"),
    edited(PREDICTIONS, 24, predicted_outcome_mode="no_drift"),
    edited(PREDICTIONS, 25, scenario_id="RDOD2-250"),
    lines(PREDICTIONS, 1, 2, 3, 3),
    PREDICTIONS.replace(b",", b";"),
    b"",
]


@pytest.mark.parametrize("content", BAD)
@pytest.mark.parametrize("invalid", ["error", "incorrect"])
def test_findings_are_the_same_whatever_the_labels_are(content: bytes, invalid: str, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    found = []
    for name, gold in (("a.csv", marked(GOLD)), ("b.csv", relabelled(GOLD))):
        (tmp_path / name).write_bytes(gold)
        result = HiddenGold(tmp_path / name).score(path, "p.csv", invalid=invalid)
        found.append((result.problems, result.invalid))
    assert found[0] == found[1] and any(found[0])
    text = repr(found)
    assert "secret-" not in text and not any(cell in text for cell in cells(tmp_path / "a.csv", ("residual_constraint_failure", "lost_constraint")))
    assert {problem.file for problem in found[0][0] + found[0][1]} == {"p.csv"}


# ---------------------------------------------------------------- what is raised, logged, printed
def broken_golds() -> Iterator[bytes]:
    yield edited(marked(GOLD), 22, outcome_mode="secret-outcome")
    yield edited(marked(GOLD), 22, first_drift_step="")
    yield edited(marked(GOLD), 22, residual_constraint_failure="secret-constraint")
    yield marked(GOLD).replace(b"scenario_id", b"secret-id", 1)
    yield marked(GOLD)[:-40]
    yield b"\xff\xfe" + marked(GOLD)
    yield b""


@pytest.mark.parametrize("content", list(broken_golds()))
def test_broken_gold_is_not_quoted(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "private.csv"
    path.write_bytes(content)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(HiddenGoldError) as caught:
        HiddenGold(path)
    said = everything(caught.value) + caplog.text + "".join(capfd.readouterr())
    assert "secret-" not in said and not any(cell in said for cell in cells_of(marked(GOLD)))
    assert caught.value.__cause__ is caught.value.__context__ is None


def cells_of(content: bytes) -> set[str]:
    rows = csv.reader(io.StringIO(content.decode()))
    return {cell for row in rows for cell in row[5:] if len(cell) > 6} - set(LABELLED_COLUMNS)


def test_no_such_gold_or_predictions(gold: Path, tmp_path: Path) -> None:
    with pytest.raises(HiddenGoldError, match="can't be read"):
        HiddenGold(tmp_path / "none.csv")
    with pytest.raises(HiddenGoldError, match="prediction file can't be read") as caught:
        HiddenGold(gold).score(tmp_path / "none.csv")
    assert "secret-" not in everything(caught.value) and caught.value.__context__ is None


def test_a_failure_inside_scoring_carries_no_frame_that_saw_gold(gold: Path, predictions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(cases: object, *_: object, **__: object) -> None:
        raise RuntimeError(f"secret- {cases}")

    monkeypatch.setattr(hidden, "score", fail)
    with pytest.raises(HiddenGoldError, match="could not be scored") as caught:
        HiddenGold(gold).score(predictions)
    said = everything(caught.value)
    assert "secret-" not in said and "visible_failure" not in said and caught.value.__context__ is None


def test_hidden_gold_shows_its_size_alone(gold: Path) -> None:
    secret = HiddenGold(gold)
    assert repr(secret) == str(secret) == f"{secret}" == "HiddenGold(8 cases)"
    assert not hasattr(secret, "__dict__")
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(HiddenGoldError):
            copied(secret)


def test_scoring_prints_and_logs_nothing(gold: Path, predictions: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    HiddenGold(gold).score(predictions, resampling=Resampling(100))
    assert caplog.text == "" and capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- the Hub
class _Hub(BaseHTTPRequestHandler):
    """A private dataset repository as the Hub's client sees it: one file, for one token."""

    content = marked(GOLD)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        if self.headers.get("Authorization") != "Bearer hf_right":
            self.send_response(401)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.endswith("/resolve/main/test.csv"):
            self.send_response(200)
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(len(self.content)))
            self.end_headers()
            if body:
                self.wfile.write(self.content)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


FETCH = """
import logging, pathlib, sys
logging.basicConfig(level=logging.DEBUG)
from rdod_metric.hidden import HiddenGold, HiddenGoldError
try:
    secret = HiddenGold.from_hub("someone/private", sys.argv[1], sys.argv[2])
    print(secret, secret.score(pathlib.Path(sys.argv[3])).report["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"])
except HiddenGoldError as error:
    print("refused:", error)
"""


def fetched(hub: str, filename: str, token: str, predictions: Path) -> subprocess.CompletedProcess[str]:
    folder = predictions.parent / "tmp"
    folder.mkdir()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and not name.lower().endswith("_proxy")}
    env = {**plain, "HF_ENDPOINT": hub, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(predictions.parent / "home"), "TMPDIR": str(folder)}
    return subprocess.run([sys.executable, "-c", FETCH, filename, token, predictions], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


def test_gold_is_fetched_by_token_and_leaves_no_copy(hub: str, predictions: Path) -> None:
    run = fetched(hub, "test.csv", "hf_right", predictions)
    assert run.stdout == "HiddenGold(8 cases) 0.375\n", run.stderr
    assert "secret-" not in run.stderr and "hf_right" not in run.stdout + run.stderr
    left = [path for path in predictions.parent.rglob("*") if path.is_file() and path != predictions]
    assert not any(b"secret-" in path.read_bytes() for path in left)


@pytest.mark.parametrize(("filename", "token"), [("test.csv", "hf_wrong"), ("none.csv", "hf_right")])
def test_what_cannot_be_fetched_is_said_without_the_token(filename: str, token: str, hub: str, predictions: Path) -> None:
    run = fetched(hub, filename, token, predictions)
    assert run.stdout == "refused: the hidden gold file can't be fetched: check the repository, the file's name and the token\n"
    assert token not in run.stderr and "Traceback" not in run.stderr

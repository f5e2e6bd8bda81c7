"""The Space on hidden gold: whatever a visitor does, no answer, log or error holds a label."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from browser import browser
from conftest import ROOT
from samples import GOLD, PREDICTIONS, edited, read_rows
from test_hidden import _Hub, hub, marked
from test_space import Visitor

__all__ = ["browser", "hub"]


class Space:
    """A running Space and the file that takes its log."""

    def __init__(self, address: str, log: Path) -> None:
        self.address, self.log = address, log


@pytest.fixture
def space(hub: str, tmp_path: Path) -> Iterator[Space]:
    _Hub.content = marked(GOLD)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and not name.lower().endswith("_proxy")}
    env = {
        **plain,
        "GRADIO_SERVER_PORT": str(port),
        "HF_ENDPOINT": hub,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": "hf_right",
        "RDOD_HIDDEN_REPOSITORY": "someone/private",
        "TMPDIR": str(tmp_path),
    }
    log = tmp_path / "log.txt"
    with log.open("w") as out:
        server = subprocess.Popen([sys.executable, ROOT / "rdod_metric/app.py"], stdout=out, stderr=subprocess.STDOUT, env=env, cwd=tmp_path)
        try:
            until = time.monotonic() + 120
            while True:
                with suppress(OSError):
                    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/config", timeout=5)
                    break
                assert server.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.2)
            yield Space(f"http://127.0.0.1:{port}", log)
        finally:
            server.terminate()
            server.wait()


def test_scores_are_shown_and_nothing_holds_a_label(space: Space, browser, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_bytes(PREDICTIONS)
    (tmp_path / "bad.csv").write_bytes(edited(PREDICTIONS, 22, predicted_first_drift_step="99"))
    visitor = Visitor(browser, space.address)
    bodies: list[str] = []

    def keep(response) -> None:
        with suppress(Exception):  # redirects and streams have no body to keep
            bodies.append(response.text())

    visitor.page.on("response", keep)
    visitor.upload(tmp_path / "good.csv")
    visitor.score("#scores [data-board='b']")
    assert visitor.page.locator("#scores [data-board='b'] .big").inner_text() == "0.375"
    assert visitor.page.get_by_role("tab").all_inner_texts() == ["Scores"]
    name, report = visitor.download()
    assert name == "score_report.json" and report["benchmark"]["hidden"] and report["prediction_table"] == []
    visitor.upload(tmp_path / "bad.csv")
    visitor.score("#notice .findings")
    assert "RDOD2-022" in visitor.page.inner_text("#notice") and "99" in visitor.page.inner_text("#notice")
    _, findings = visitor.download()
    said = "\n".join([*bodies, visitor.page.content(), json.dumps(report), json.dumps(findings), space.log.read_text()])
    visitor.leave()
    assert len(bodies) > 5
    header, *rows = read_rows(marked(GOLD))
    hidden = {row[header.index(column)] for row in rows for column in ("drift_mechanism", "repair_instruction", "trajectory_structure")} - {"none"}
    assert len(hidden) > 8 and not any(text in said for text in hidden)
    for word in ("gold_outcome_mode", "gold_first_drift_step", "first_drift_step_correct", "hf_right", "Traceback"):
        assert word not in said


def test_no_gold_no_space(hub: str, tmp_path: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and not name.lower().endswith("_proxy")}
    env = {
        **plain,
        "HF_ENDPOINT": hub,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(tmp_path),
        "HF_TOKEN": "hf_wrong",
        "RDOD_HIDDEN_REPOSITORY": "someone/private",
    }
    ended = subprocess.run([sys.executable, ROOT / "rdod_metric/app.py"], env=env, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0 and "can't be fetched" in ended.stderr and "hf_wrong" not in ended.stdout + ended.stderr

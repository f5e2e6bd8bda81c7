"""docs/run-a-model.md: every command of it is run, in order, in one shell, and its output is what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="runs in the environment of the harnesses: make harness")

from chat_server import ROOT, ChatServer, Reply, gold_replies
from conftest import project_files
from scripted import mixed_answers

PAGE = (ROOT / "docs/run-a-model.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MARK = "---- end of block"


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> list[str]:
    """Return what every bash block of the page printed, in a copy of the checkout that is named like a clone."""
    clone = tmp_path_factory.mktemp("clone") / "reasoning-drift-onset-detection-v0.2"
    for name in project_files():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, clone / name)
    blocks = [text for language, text in BLOCKS if language == "bash"]
    script = "set -e\n" + "".join(f"{text}\necho '{MARK}'\n" for text in blocks)
    answers = {name: [Reply(text)] for name, text in mixed_answers().items()} | {
        name: [reply] for name, (_, reply) in gold_replies(ROOT / "data/dev.csv").items()
    }
    with ChatServer(answers, ROOT / "data/test.csv", ROOT / "data/dev.csv") as server:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {"PATH": path, "BASE_URL": server.base_url, "MODEL": "small-model", "OPENAI_API_KEY": "sk-test-key", "HF_HOME": str(clone.parent / "hf")}
        ended = subprocess.run(
            ["bash", "-c", script], cwd=clone, env={**os.environ, **variables}, capture_output=True, encoding="utf-8", errors="replace", timeout=400
        )
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        assert {request.authorization for request in server.requests} == {"Bearer sk-test-key"}
    printed = ended.stdout.split(MARK)
    assert len(printed) == len(blocks) + 1
    return printed


def plain(text: str) -> str:
    """Return printed lines without blanks at their ends, and without the order in which answers happened to arrive."""
    return "".join(re.sub(r"\.jsonl:\d+:", ".jsonl:", line.rstrip()) + "\n" for line in text.splitlines())


def test_every_command_runs_and_prints_what_the_page_shows(output):
    shown = 0
    for place, (language, text) in enumerate(BLOCKS):
        if language != "text":
            continue
        printed = output[sum(language == "bash" for language, _ in BLOCKS[:place]) - 1]
        for part in text.split("...\n"):
            assert plain(part) in plain(printed), part
            shown += 1
    assert shown > 8


def test_the_page_names_every_option_of_the_command(output):
    told = subprocess.run([sys.executable, ROOT / "harness/run.py", "--help"], capture_output=True, encoding="utf-8", check=True).stdout
    for option in set(re.findall(r"--[a-z-]+", told)) - {"--help"}:
        assert option in PAGE, option

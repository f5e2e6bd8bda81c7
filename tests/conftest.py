"""What the tests share: the project's commands, run for real, and a copy of the checkout to change."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from samples import BLIND, GOLD, PREDICTIONS

ROOT = Path(__file__).resolve().parents[1]

# a busy machine is no fault of an example
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


class Run(NamedTuple):
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str


Command = Callable[..., Run]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a new folder with the sample files gold.csv, predictions.csv and blind.csv."""
    for name, content in {"gold.csv": GOLD, "predictions.csv": PREDICTIONS, "blind.csv": BLIND}.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return a function that runs a script of the project in the test's folder and sees to it that nobody gets a traceback."""

    def run(script: str | Path, *arguments: object, env: Mapping[str, str] | None = None, cwd: Path = tmp_path) -> Run:
        ended = subprocess.run(
            [sys.executable, ROOT / script, *map(str, arguments)], capture_output=True, cwd=cwd, env={**os.environ, **(env or {})}, timeout=120
        )
        result = Run(ended.returncode, *(stream.decode("utf-8", "backslashreplace") for stream in (ended.stdout, ended.stderr)))
        assert "Traceback" not in result.out + result.err, result.err
        return result

    return run


def project_files() -> list[str]:
    """Return the files of the checkout that a commit would hold, or all visible ones where there is no Git."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        names = os.fsdecode(listed.stdout).split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]
    return [name for name in names if (ROOT / name).is_file()]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the project's files, to be changed by the test."""
    copy = tmp_path / "checkout"
    for name in project_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    return copy

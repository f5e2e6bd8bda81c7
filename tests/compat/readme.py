"""Every code block of the card runs, against a Hub on the loopback that serves what would be published."""

import os
import re
import shutil
import subprocess
import sys

import hub
import pytest
import space
from conftest import ROOT, project_files

published = hub.published
endpoint = hub.endpoint
CARD = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|bash)\n(.*?)^```$", CARD, flags=re.MULTILINE | re.DOTALL)
OTHER = set(re.findall(r"^```(\w+)$", CARD, flags=re.MULTILINE)) - {"python", "bash"}


@pytest.fixture(scope="module")
def clone(published, tmp_path_factory):
    """Return a clone as a user has it, with the environment that `make` has built; the Hub serves the Space too."""
    space_folder = published.parents[2] / "spaces" / "ClarusC64" / "rdod_metric"
    space_folder.mkdir(parents=True)
    for name in filter(space.SPACE.allowed.fullmatch, project_files()):
        shutil.copyfile(ROOT / name, space_folder / name.removeprefix(space.SPACE.folder))
    for arguments in (["init", "--quiet"], ["add", "--all", "--force"], ["commit", "--quiet", "--message", "release"]):
        hub.git(space_folder, *arguments)
    folder = tmp_path_factory.mktemp("clone") / "reasoning-drift-onset-detection-v0.2"
    for name in project_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    if (ROOT / ".venv").exists():
        (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def test_other_blocks_are_data_alone():
    assert OTHER <= {"csv"}


@pytest.mark.parametrize(("language", "code"), BLOCKS, ids=[f"{kind}: {code.splitlines()[-1][:60]}" for kind, code in BLOCKS])
def test_a_block_of_the_card_runs(language, code, clone, endpoint, tmp_path_factory):
    home = tmp_path_factory.getbasetemp() / "hf-home"
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment = inherited | {"HF_HOME": str(home), "PATH": path, **hub.online(endpoint)}
    command = ["bash", "-euo", "pipefail", "-c", code] if language == "bash" else [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=clone, env=environment, capture_output=True, encoding="utf-8", timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr

"""The metric by its id, from a Hub on the loopback that serves the Space as it would be published."""

import json
import os
import shutil
import subprocess
import sys

import hub
import pytest
from conftest import ROOT, project_files
from environments import OFFLINE
from metric_records import typed_predictions, typed_references

from tools.publish import SPACE

endpoint = hub.endpoint
CODE = """
import evaluate, json, sys
metric = evaluate.load("ClarusC64/rdod_metric", revision="main", keep_in_memory=True)
predictions, references = json.load(open("rows.json"))
print(json.dumps(metric.compute(predictions=predictions, references=references), allow_nan=False))
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a Git repository, below a folder of mirrors, of the files that would be published."""
    repository = tmp_path_factory.mktemp("mirrors") / "spaces" / SPACE.repo_id
    repository.mkdir(parents=True)
    for name in filter(SPACE.allowed.fullmatch, project_files()):
        shutil.copyfile(ROOT / name, repository / name.removeprefix(SPACE.folder))
    hub.git(repository, "init", "--quiet")
    hub.git(repository, "add", "--all", "--force")
    hub.git(repository, "commit", "--quiet", "--message", "release")
    return repository


def test_the_id_loads_from_the_hub_and_then_from_the_cache(endpoint, published, tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([typed_predictions(), typed_references()]), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and name != "PYTHONPATH"}
    home = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    for variables in ({"HF_ENDPOINT": endpoint}, {"HF_ENDPOINT": "http://127.0.0.1:9", **OFFLINE}):
        ended = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, env=inherited | home | variables, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["component_mean"] == pytest.approx(1993 / 3360, abs=1e-12)

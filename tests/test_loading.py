"""`load_dataset` on a checkout, with the version of `datasets` that is installed; tests/compat has the others."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from samples import all_cells, edited, read_rows

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@pytest.fixture
def python(tmp_path):
    """Return a function that runs a program with an HF_HOME of the test's own and gives what it prints."""

    def run(*arguments, **variables):
        (tmp_path / "home").mkdir(exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment = inherited | {"HF_HOME": str(tmp_path / "home"), **OFFLINE, **variables}
        ended = subprocess.run([sys.executable, *map(str, arguments)], env=environment, capture_output=True, encoding="utf-8", cwd=tmp_path, timeout=300)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout.strip()

    return run


def test_every_documented_way_gives_the_rows_of_the_csv_files(python, checkout):
    assert python(ROOT / "tests/compat/loading.py", "folder", checkout).endswith("every config loads as the CSV files say")


def test_a_clone_under_the_repositorys_own_name_loads(python, checkout, tmp_path):
    clone = tmp_path / "reasoning-drift-onset-detection-v0.2"
    shutil.copytree(checkout, clone)
    assert python("-c", f"import datasets; print(datasets.load_dataset({str(clone)!r}).num_rows)") == "{'train': 16, 'dev': 8, 'test': 12}"


def test_an_edited_csv_gives_new_rows_after_a_build(python, checkout):
    load = f"import datasets; print(datasets.load_dataset({str(checkout)!r})['train'][0]['task'])"
    before = python("-c", load)
    path = checkout / "data/train.csv"
    path.write_bytes(edited(path.read_bytes(), 1, task=before + " Say why."))
    python(checkout / "tools/build.py")
    assert python("-c", load) == before + " Say why."


def test_an_edited_expanded_csv_gives_new_rows_after_a_build(python, checkout):
    load = f"import datasets; print(set(datasets.load_dataset({str(checkout)!r}, 'expanded')['dev']['annotation_confidence']))"
    assert python("-c", load) != "{0.75}"
    path = checkout / "data/expanded/dev.csv"
    path.write_bytes(all_cells(path.read_bytes(), "annotation_confidence", lambda _: "0.75"))
    python(checkout / "tools/build.py")
    assert python("-c", load) == "{0.75}"


def test_labels_can_be_cast_to_class_labels_of_the_vocabulary(python, checkout):
    code = """
import sys, datasets
sys.path.insert(0, sys.argv[1])
from rdod_metric.rules import OUTCOME_MODES
rows = datasets.load_dataset(sys.argv[1], split="test")
cast = rows.cast_column("outcome_mode", datasets.ClassLabel(names=list(OUTCOME_MODES)))
print([cast.features["outcome_mode"].int2str(code) for code in cast["outcome_mode"]] == list(rows["outcome_mode"]))
"""
    assert python("-c", code, checkout) == "True"


def test_pandas_gets_numbers_and_lists(python, checkout):
    code = f"import pandas; print(pandas.read_parquet({str(checkout / 'data/test.parquet')!r}).first_drift_step.isna().sum())"
    blank = sum(not row[6] for row in read_rows((checkout / "data/test.csv").read_bytes()))
    assert blank and python("-c", code) == str(blank)


def test_datasets_cli_test_passes_for_all_configs(python, checkout, tmp_path):
    (tmp_path / "cache").mkdir()
    command = ["from datasets.commands.datasets_cli import main; main()", "test", checkout, "--all_configs", "--cache_dir", tmp_path / "cache"]
    assert "Test successful." in python("-c", *command)

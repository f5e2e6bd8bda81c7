"""The Croissant description: valid, and its record sets give the rows of the CSV and Parquet files."""

import json
import os
import subprocess
import sys

import mlcroissant
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from samples import read_rows

from tools.typed import FILES

# of rdflib and pandas, below mlcroissant
pytestmark = [pytest.mark.filterwarnings("ignore:ConjunctiveGraph"), pytest.mark.filterwarnings("ignore:The inplace keyword")]


def mlcroissant_command(*arguments):
    program = "import sys; from mlcroissant.scripts.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, encoding="utf-8", env={**os.environ, "NO_COLOR": "1"})


def plain(value):
    """Return a record without the paths in its keys, and with texts decoded."""
    if isinstance(value, dict):
        return {key.rpartition("/")[2]: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.decode() if isinstance(value, bytes) else value


def records(name):
    return [plain(record) for record in mlcroissant.Dataset(ROOT / "croissant.json").records(name)]


def test_mlcroissant_validates_it_without_a_warning():
    ended = mlcroissant_command("validate", "--jsonld", ROOT / "croissant.json")
    assert ended.returncode == 0 and "Done." in ended.stderr, ended.stderr
    assert "WARNING" not in ended.stderr and "Found" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("file", FILES)
def test_a_splits_records_are_its_typed_rows(file):
    rows = pq.read_table(ROOT / f"data/{file}.parquet").to_pylist()
    assert json.dumps(records(file.replace("/", "_"))) == json.dumps(rows)  # unlike ==, tells 1 from 1.0


@pytest.mark.parametrize("file", FILES)
def test_the_csv_records_are_the_cells(file):
    header, *rows = read_rows((ROOT / f"data/{file}.csv").read_bytes())
    loaded = records(f"{file.replace('/', '_')}_csv")
    assert [list(record) for record in loaded] == [header] * len(rows)
    numbers = {"first_drift_step": int, "visible_failure_step": int, "trajectory_length": int, "relative_onset_position": float, "annotation_confidence": float}
    expected = [{name: (numbers[name](cell) if cell else None) if name in numbers else cell for name, cell in zip(header, row, strict=True)} for row in rows]
    assert json.dumps(loaded) == json.dumps(expected)


def test_mlcroissant_load_gives_the_rows():
    ended = mlcroissant_command("load", "--jsonld", ROOT / "croissant.json", "--record_set", "test_blind", "--num_records", "-1")
    assert ended.returncode == 0, ended.stderr
    ids = [row[0] for row in read_rows((ROOT / "data/test_blind.csv").read_bytes())[1:]]
    printed = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    assert len(printed) == len(ids) and all(identifier in line for identifier, line in zip(ids, printed, strict=True))


def test_a_file_that_was_changed_is_refused(checkout):
    path = checkout / "data/dev.csv"
    path.write_bytes(path.read_bytes().replace(b"RDOD2-017", b"RDOD2-917"))
    ended = mlcroissant_command("load", "--jsonld", checkout / "croissant.json", "--record_set", "dev_csv")
    assert ended.returncode != 0 and "Download(data/dev.csv)" in ended.stderr and "hash" in ended.stderr.casefold(), ended.stderr

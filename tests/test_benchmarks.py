"""What the benchmarks stand on: generated files, references that compute the same scores, and commands that import no more than they need."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT
from samples import GOLD

from benchmarks import bench
from benchmarks.generated import write_pair
from rdod_metric import tables
from rdod_metric.rules import text_sha256
from scorer import score

OFFICIAL = [str(path) for path in bench.OFFICIAL]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a generated pair that is larger than what a report lists unasked."""
    return write_pair(tmp_path_factory.mktemp("large"), score.TABLE_LIMIT + 1)


def test_generated_files_are_valid_and_come_again(tmp_path, command):
    files = write_pair(tmp_path, 300, seed=4)
    first = [path.read_bytes() for path in files]
    assert command("scorer/validate.py", "labelled", files[0]).status == 0
    assert command("scorer/validate.py", "predictions", files[1], "--gold", files[0]).status == 0
    assert [path.read_bytes() for path in write_pair(tmp_path, 300, seed=4)] == first
    assert [path.read_bytes() for path in write_pair(tmp_path, 300, seed=5)] != first


@pytest.mark.parametrize("script", ["scikit_learn.py", "evaluate_f1.py", "pyarrow_and_scikit_learn.py"])
def test_the_references_compute_what_the_scorer_computes(tmp_path, command, script):
    files = write_pair(tmp_path, 60)
    report = json.loads(command("scorer/score.py", *files, "--json").out)
    run = command(f"benchmarks/references/{script}", *files)
    assert run.status == 0, run.err
    values = dict(line.split() for line in run.out.splitlines())
    for field in ("outcome_mode", "mechanism_family", "repair_outcome"):
        assert float(values[field]) == pytest.approx(report["leaderboard_a_component_capability"][f"{field}_macro_f1"], abs=1e-12)


@pytest.mark.parametrize(
    ("script", "options", "spared"),
    [
        (
            "scorer/score.py",
            OFFICIAL,
            ("scipy", "sklearn", "tqdm", "datasets", "pandas", "matplotlib", "concurrent.futures", "scorer.html_report"),
        ),
        ("scorer/validate.py", ["predictions", OFFICIAL[1], "--gold", OFFICIAL[0]], ("numpy", "scipy", "sklearn", "tqdm", "datasets")),
    ],
)
def test_a_command_imports_what_it_needs_and_no_more(script, options, spared):
    run = f"import runpy, sys; sys.argv = {[str(ROOT / script), *options]}\ntry: runpy.run_path(sys.argv[0], run_name='__main__')"
    program = run + "\nfinally: print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0
    assert not {*spared} & {*ended.stderr.split()}


def test_many_cases_are_listed_on_request_only(large, command):
    short, whole = (json.loads(command("scorer/score.py", *large, "--json", *options).out) for options in ([], ["--table"]))
    assert short["prediction_table"] == []
    assert len(whole["prediction_table"]) == score.TABLE_LIMIT + 1
    assert {**whole, "prediction_table": []} == short
    text = command("scorer/score.py", *large).out
    wrong = sum(not row["complete_primary_correct"] for row in whole["prediction_table"])
    assert text.endswith(f"Cases not completely right: {wrong} of {score.TABLE_LIMIT + 1} (named with --table)\n")
    assert short["benchmark"]["gold_sha256"] == text_sha256(large[0].read_bytes())


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbfa\r\nb\r", b"a\r\r\n\r\nb\rc\n" * 5, b"\r" * 9 + b"\n", GOLD])
@pytest.mark.parametrize("piece", [1, 2, 3, 1 << 20])
def test_a_checksum_in_pieces_is_that_of_the_whole(tmp_path, monkeypatch, content, piece):
    (tmp_path / "file").write_bytes(content)
    monkeypatch.setattr(tables, "_PIECE", piece)
    assert tables.file_sha256(tmp_path / "file") == text_sha256(content)


def test_progress_is_shown_for_large_work_on_a_terminal_only(monkeypatch):
    assert score.progress("rows", 1 << 40) is iter
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert score.progress("rows", 100) is iter
    assert list(score.progress("rows", 1 << 40, 3)(range(3))) == [0, 1, 2]


def test_a_result_knows_whether_its_goal_is_met():
    assert [bench.Result("", value, 2, least, {}).met for value, least in ((1, False), (2, False), (3, False), (1, True), (2, True), (3, True))] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


def test_a_process_is_measured(tmp_path):
    ended = bench.measured("-c", "import time; block = b'x' * 200_000_000; time.sleep(0.2); print(len(block))")
    assert ended.out.split() == [b"200000000"]
    assert ended.seconds > 0.2 and ended.peak_mb > 190
    with pytest.raises(subprocess.CalledProcessError):
        bench.measured("-c", "raise SystemExit(3)")

"""The builder: typed rows from the repository's CSV files and from anybody's, and one clear error where a file can't be typed."""

import ast
import json
import os
import re
import subprocess
import sys

import datasets
import pytest
import yaml
from conftest import ROOT
from samples import BLIND, BOM, GOLD, all_cells, column_added, columns, edited, lines, on_many_lines, read_rows, replaced

import reasoning_drift_onset_detection as builder_module
from rdod_metric.rules import BENCHMARK_NAME, LABELLED_COLUMNS, VERSION, contrast_family
from rdod_metric.tables import read_blind, read_cases
from reasoning_drift_onset_detection import CITATION, CONFIGS, MalformedCSV, ReasoningDriftOnsetDetection, features, typed_rows

datasets.disable_progress_bars()


@pytest.fixture
def own(tmp_path):
    """Return a function that builds one config from a CSV file of our own."""

    def build(content, config="train"):
        (tmp_path / f"{config}.csv").write_bytes(content)
        builder = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name=config, data_dir=str(tmp_path))
        builder.download_and_prepare()
        return builder.as_dataset()[config]

    return build


def rows_of(content, split="train"):
    return list(typed_rows(content, split))


def row_of(content, scenario):
    return next(row for row in rows_of(content) if row["scenario_id"] == f"RDOD2-{scenario:03d}")


# ---------------------------------------------------------------- types
def test_blanks_and_none_keep_their_meaning(own):
    rows = {row["scenario_id"]: row for row in own(GOLD)}
    stable, failed = rows["RDOD2-021"], rows["RDOD2-025"]
    numbers = ("first_drift_step", "visible_failure_step", "relative_onset_position", "residual_constraint_id", "lost_constraint_id")
    assert [stable[name] for name in numbers] == [None] * 5
    assert json.dumps([failed[name] for name in numbers]) == "[3, 3, 0.5, 2, 2]"
    assert [stable[name] for name in ("mechanism_family", "severity", "residual_constraint_failure", "lost_constraint")] == ["none"] * 4
    assert failed["trajectory"][2]["step"] == 3 and failed["constraints"][1] == failed["lost_constraint"]


def test_the_columns_are_those_of_the_files_with_json_parsed_and_ids_added():
    typed = [name.removesuffix("_json") for name in LABELLED_COLUMNS]
    for row in rows_of(GOLD):
        assert list(row) == [*typed, "residual_constraint_id", "lost_constraint_id"]
    assert [list(row) for row in rows_of(BLIND, "test_blind")] == [typed[:5]] * 8


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(BOM + GOLD, id="a byte-order mark"),
        pytest.param(GOLD.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(GOLD + b"\n\n" + b"," * 20 + b"\n", id="blank lines at the end"),
        pytest.param(all_cells(GOLD, "first_drift_step", lambda cell: cell and f"{cell}.0"), id="whole numbers written 3.0"),
        pytest.param(all_cells(GOLD, "outcome_mode", lambda cell: f" {cell} "), id="blanks around labels"),
        pytest.param(all_cells(GOLD, "trajectory_json", on_many_lines), id="line breaks in cells"),
        pytest.param(columns(GOLD, *reversed(read_rows(GOLD)[0])), id="columns in another order"),
    ],
)
def test_what_other_programs_write_gives_the_same_rows(content):
    assert rows_of(content) == rows_of(GOLD)


def test_a_trajectory_may_be_longer_than_csv_allows_by_default():
    steps = [{"step": number, "text": "x" * 50_000} for number in range(1, 7)]
    assert row_of(edited(GOLD, 25, trajectory_json=json.dumps(steps)), 25)["trajectory"] == steps


# ---------------------------------------------------------------- malformed files
LINE = {scenario: number for number, line in enumerate(GOLD.decode().splitlines(), 1) for scenario in [line[:9]]}["RDOD2-025"]
STEPS = json.loads(next(row for row in read_rows(GOLD) if row[0] == "RDOD2-025")[4])


def steps_with(number, **changed):
    return json.dumps([{**step, **(changed if step["step"] == number else {})} for step in STEPS])


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("constraints_json", "['First.', 'Second.']", "a JSON array of texts"),
        ("constraints_json", '{"1": "First."}', "a JSON array of texts"),
        ("constraints_json", "[]", "a JSON array of texts"),
        ("constraints_json", '["First.", 2]', "2 as constraint 2"),
        ("constraints_json", '["First.", " "]', "as constraint 2"),
        ("constraints_json", '["First.", "\\ud83d"]', "as constraint 2"),
        ("constraints_json", "", "found a blank"),
        ("constraints_json", "[" * 100_000, "JSON beyond what can be read"),
        ("trajectory_json", "[{'step': 1, 'text': 'One.'}]", "json.dumps"),
        ("trajectory_json", '[{"step": 1, "text": "One."}', "where JSON breaks at character 29"),
        ("trajectory_json", '["One.", "Two."]', "exactly the keys step and text"),
        ("trajectory_json", '["ab", "cd"]', "exactly the keys step and text"),
        ("trajectory_json", '[[["step", 1], ["text", "One."]]]', "exactly the keys step and text"),
        ("trajectory_json", '[{"step": 1, "txt": "One."}]', "exactly the keys step and text"),
        ("trajectory_json", '[{"step": 1, "text": "One.", "note": ""}]', "exactly the keys step and text"),
        ("trajectory_json", '[{"step": 1, "step": 1, "text": "One."}]', "exactly the keys step and text"),
        ("trajectory_json", '[{"step": NaN, "text": "One."}]', "the integer 1"),
        ("trajectory_json", steps_with(2, step="2"), "the integer 2"),
        ("trajectory_json", steps_with(2, step=2.0), "the integer 2"),
        ("trajectory_json", steps_with(1, step=True), "the integer 1"),
        ("trajectory_json", steps_with(3, step=4), "the integer 3"),
        ("trajectory_json", steps_with(3, text=None), "as text of step 3"),
        ("trajectory_json", steps_with(3, text=""), "as text of step 3"),
        ("first_drift_step", "3.5", "a whole number from 1 on"),
        ("first_drift_step", "0", "a whole number from 1 on"),
        ("first_drift_step", "three", "a whole number from 1 on"),
        ("visible_failure_step", "1_0", "a whole number from 1 on"),
        ("trajectory_length", "\uff16", "a whole number from 1 on"),
        ("relative_onset_position", "50%", "a number from 0 to 1"),
        ("annotation_confidence", "nan", "a number from 0 to 1"),
        ("annotation_confidence", "90", "a number from 0 to 1"),
        ("residual_constraint_failure", "None", "the exact text of one of the row's constraints"),
        ("lost_constraint", "Something else.", "the exact text of one of the row's constraints"),
        ("outcome_mode", "", "found a blank, expected a text"),
        ("task", "  ", "found a blank, expected a text"),
    ],
)
def test_a_malformed_cell_is_told_in_one_error(own, tmp_path, column, cell, words):
    with pytest.raises(MalformedCSV) as told:
        own(edited(GOLD, 25, **{column: cell}))
    assert str(told.value).startswith(f"{tmp_path}/train.csv:{LINE}: {column}: RDOD2-025: found ")
    assert ", expected " in str(told.value) and words in str(told.value)
    assert told.value.__context__ is None and "\n" not in str(told.value)
    with pytest.raises(MalformedCSV, match=re.escape(words)):
        list(ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name="train", data_dir=str(tmp_path)).as_streaming_dataset("train"))


def test_nobody_sees_the_inside_of_the_library(tmp_path):
    (tmp_path / "dev.csv").write_bytes(edited(GOLD, 25, constraints_json="['First.']"))
    code = "from reasoning_drift_onset_detection import *; ReasoningDriftOnsetDetection(config_name='dev', data_dir='.').download_and_prepare()"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path)}, capture_output=True, encoding="utf-8"
    )
    assert f"dev.csv:{LINE}: constraints_json: RDOD2-025: " in ended.stderr.splitlines()[-1]
    assert ended.stderr.count("Traceback") == 1 and "site-packages" not in ended.stderr


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        (b"", "1: header", "no column scenario_id"),
        (lines(GOLD, 1), "1: file", "at least one row"),
        (columns(GOLD, *LABELLED_COLUMNS[:-1]), "1: header", "no column annotation_confidence"),
        (column_added(GOLD, "confidence"), "1: header", "unknown or repeated columns 'confidence'"),
        (column_added(GOLD, "task"), "1: header", "unknown or repeated columns 'task'"),
        (GOLD.replace(b",", b";"), "1: header", "no column scenario_id"),
        (GOLD + b"RDOD2-099,a,b\n", "10: row: RDOD2-099", "found 3 cells, expected 21"),
        (GOLD + b'RDOD2-099,"a\n', "10: row", "no CSV"),
        (replaced(GOLD, ("RDOD2-025", b"RDOD2-025\xe9")), f"{LINE}: file", "the byte 0xe9, which is no UTF-8"),
        (replaced(GOLD, ("RDOD2-025", b"RDOD2-025\0")), f"{LINE}: file", "a NUL byte"),
        (GOLD.decode().encode("utf-16"), "1: file", "no UTF-8"),
    ],
)
def test_a_malformed_file_is_told_in_one_error(own, tmp_path, content, place, words):
    with pytest.raises(MalformedCSV) as told:
        own(content)
    assert str(told.value).startswith(f"{tmp_path}/train.csv:{place}: ") and words in str(told.value)


def test_a_row_is_named_by_the_line_on_which_it_begins(own):
    content = edited(all_cells(GOLD, "constraints_json", on_many_lines), 25, first_drift_step="soon")
    before = content[: content.index(b"RDOD2-025")].count(b"\n")
    assert before > LINE
    with pytest.raises(MalformedCSV, match=f"train.csv:{before + 1}: first_drift_step: RDOD2-025: "):
        own(content)


def test_answers_in_a_blind_file_are_refused(own):
    with pytest.raises(MalformedCSV, match="unknown or repeated columns 'outcome_mode'"):
        own(GOLD, "test_blind")


ODD_CELLS = (
    "",
    " ",
    "0",
    "3",
    "3.0",
    "03",
    "3.00",
    "+3",
    "-1",
    "3e0",
    "0.5",
    ".5",
    "5e-1",
    "1.",
    "+0.5",
    "-0.0",
    "1e400",
    "inf",
    "NaN",
    "none",
    "x\u2028y",
    " none",
)


@pytest.mark.parametrize("column", ["scenario_id", "domain", "task", "first_drift_step", "relative_onset_position", "annotation_confidence"])
def test_whatever_the_validator_accepts_can_be_typed(tmp_path, column):
    accepted = []
    for cell in ODD_CELLS:
        content = edited(GOLD, 25, **{column: cell})
        (tmp_path / "gold.csv").write_bytes(content)
        if not read_cases(tmp_path / "gold.csv")[1]:
            assert len(rows_of(content)) == 8, cell
            accepted.append(cell)
    assert accepted


@pytest.mark.parametrize("constraints", ['["A.", "B."]', '[ "A." ]', '["\\u0041.", "\U0001f600"]', '["A.", "A."]', "null", '"A."', '["A."] x', '["A\\u0000."]'])
def test_the_validator_and_the_builder_agree_on_json(tmp_path, constraints):
    content = all_cells(BLIND, "constraints_json", lambda _: constraints)
    (tmp_path / "blind.csv").write_bytes(content)
    refused = {problem.code for problem in read_blind(tmp_path / "blind.csv")[1]} - {"duplicate-constraint"}  # a rule between texts, not a type
    try:
        rows_of(content, "test_blind")
    except MalformedCSV:
        assert refused
    else:
        assert not refused


# ---------------------------------------------------------------- cache, places, info
def test_changed_files_give_new_rows_even_with_the_same_time(own, tmp_path):
    assert "RDOD2-021" in own(GOLD)["scenario_id"]
    stat = (tmp_path / "train.csv").stat()
    (tmp_path / "train.csv").write_bytes(GOLD.replace(b"RDOD2-021", b"RDOD2-921"))
    os.utime(tmp_path / "train.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    builder = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name="train", data_dir=str(tmp_path))
    builder.download_and_prepare()
    ids = builder.as_dataset(split="train")["scenario_id"]
    assert "RDOD2-921" in ids and "RDOD2-021" not in ids


def test_unchanged_files_are_not_built_twice(own, tmp_path):
    own(GOLD)
    (prepared,) = (tmp_path / "cache").rglob("*.arrow")
    built = prepared.stat().st_mtime_ns
    assert own(GOLD).num_rows == 8 and prepared.stat().st_mtime_ns == built


def test_a_folder_is_taken_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "test_blind.csv").write_bytes(BLIND)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("mine", "./mine/", "~/mine"):
        builder = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name="test_blind", data_dir=folder)
        assert len(list(builder.as_streaming_dataset("test_blind"))) == 8


def test_a_checkout_is_taken_from_the_working_directory(checkout, tmp_path, monkeypatch):
    for folder, place in (("checkout", checkout.parent), (".", checkout), ("../checkout/", checkout)):
        monkeypatch.chdir(place)
        builder = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name="dev", base_path=folder)
        builder.download_and_prepare()
        assert builder.as_dataset()["dev"].num_rows == 8


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="dev.csv"):
        ReasoningDriftOnsetDetection(cache_dir=str(tmp_path), config_name="dev", data_dir=str(tmp_path))


def test_an_unknown_config_is_told_with_those_there_are(tmp_path):
    with pytest.raises(ValueError, match="train.*dev.*test_blind"):
        ReasoningDriftOnsetDetection(cache_dir=str(tmp_path), config_name="blind")


def test_info_says_what_the_citation_file_says(tmp_path):
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    info = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path)).info
    assert (str(info.version), info.license, info.homepage) == (VERSION, cited["license"], cited["url"])
    assert info.description and info.citation == CITATION
    (author,) = cited["authors"]
    said = (
        cited["title"],
        BENCHMARK_NAME,
        cited["version"],
        cited["url"],
        str(cited["date-released"].year),
        f"{author['family-names']}, {author['given-names']}",
    )
    assert all(f"{{{text}}}" in CITATION for text in said), said


def test_the_configs_are_those_of_the_card():
    assert [config.name for config in ReasoningDriftOnsetDetection.BUILDER_CONFIGS] == list(CONFIGS)
    assert list(CONFIGS) == ["default", "train", "dev", "test", "test_blind", "expanded", "expanded_test_blind"]
    assert CONFIGS["default"] == ("train", "dev", "test") and all(CONFIGS[split] == (split,) for split in ("train", "dev", "test", "test_blind"))


# ---------------------------------------------------------------- the expanded release
FAMILIES = (ROOT / "data/expanded/test.csv").read_bytes()


def test_expanded_rows_end_with_the_family_that_their_id_names():
    for file, columns_of in (("expanded/test", FAMILIES), ("expanded/test_blind", columns(FAMILIES, *read_rows(BLIND)[0]))):
        rows = rows_of(columns_of, file)
        assert rows and all(list(row) == list(features(file)) and list(row)[-1] == "contrast_family" for row in rows)
        assert all(row["contrast_family"] == row["scenario_id"][:-1] for row in rows)
        plain = rows_of(columns_of, file.removeprefix("expanded/"))
        assert [{**row, "contrast_family": wide["contrast_family"]} for row, wide in zip(plain, rows, strict=True)] == rows


@pytest.mark.parametrize(
    "name", ["RDOD3-017b", "RDOD2-017", "RDOD3-017", "RDOD3-017bb", "RDOD3-17b", "RDOD3-017B", "XRDOD3-017b", "RDOD3-1017a", "RDOD12-001f"]
)
def test_the_builder_derives_the_family_as_the_rules_do(name):
    (row,) = (row for row in rows_of(edited(GOLD, 25, scenario_id=name), "expanded/train") if row["scenario_id"] == name)
    assert row["contrast_family"] == contrast_family(name)


@pytest.mark.parametrize(("config", "splits"), [("expanded", ["train", "dev", "test"]), ("expanded_test_blind", ["test_blind"])])
def test_expanded_configs_read_the_files_of_a_folder_of_ones_own(tmp_path, config, splits):
    for split in splits:
        (tmp_path / f"{split}.csv").write_bytes((ROOT / f"data/expanded/{split}.csv").read_bytes())
    builder = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name=config, data_dir=str(tmp_path))
    builder.download_and_prepare()
    assert {split: list(rows) for split, rows in builder.as_dataset().items()} == {
        split: rows_of((ROOT / f"data/expanded/{split}.csv").read_bytes(), f"expanded/{split}") for split in splits
    }
    assert str(builder.info.version) == "0.3.0"


def test_a_missing_expanded_file_is_named_and_the_other_release_is_not_read(checkout, tmp_path):
    (checkout / "data/expanded/dev.csv").unlink()
    with pytest.raises(FileNotFoundError, match="data/expanded/dev.csv"):
        ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name="expanded", base_path=str(checkout))


def test_a_malformed_expanded_file_is_told_with_its_folder(checkout, tmp_path):
    path = checkout / "data/expanded/test_blind.csv"
    path.write_bytes(all_cells(path.read_bytes(), "constraints_json", lambda _: "[]"))
    builder = ReasoningDriftOnsetDetection(cache_dir=str(tmp_path / "cache"), config_name="expanded_test_blind", base_path=str(checkout))
    with pytest.raises(MalformedCSV, match="data/expanded/test_blind.csv:2: constraints_json: RDOD3-"):
        builder.download_and_prepare()


def test_it_imports_one_name_a_line_and_nothing_of_the_project():
    source = (ROOT / "reasoning_drift_onset_detection.py").read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(node.col_offset == 0 and node.lineno == node.end_lineno for node in imports)
    modules = {node.module if isinstance(node, ast.ImportFrom) else alias.name for node in imports for alias in node.names}
    assert {module.partition(".")[0] for module in modules} - sys.stdlib_module_names == {"datasets", "fsspec"}
    assert builder_module.__file__ == str(ROOT / "reasoning_drift_onset_detection.py")

"""The validator as people run it: what it accepts, what it finds and where, and what it does when it can't do its work."""

import csv
import json
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from samples import (
    BLIND,
    BOM,
    GOLD,
    INPUTS,
    PREDICTIONS,
    all_cells,
    column_added,
    columns,
    csv_bytes,
    edited,
    lines,
    on_many_lines,
    on_odd_lines,
    read_rows,
    replaced,
)

from scorer.validate import REQUIRED_FILES, validate_repository

VALIDATE = "scorer/validate.py"
HEADER = PREDICTIONS.splitlines()[0].decode().split(",")
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ASCII = {**C_LOCALE, "PYTHONIOENCODING": "ascii:strict"}
LETTERS = " Der Pr\u00fcfer schrieb \u300c\u7b49\u300d \U0001f600."


def with_letters(content):
    """Return a file whose steps hold letters of several scripts."""
    return all_cells(content, "trajectory_json", lambda cell: cell.replace('."}', f'.{LETTERS}"}}'))


def formulas(content):
    """Return a file whose constraints begin as formulas of a spreadsheet do, wherever they are named."""
    header, *rows = read_rows(content)
    for number, row in enumerate(rows, 21):
        old, new = json.loads(row[3]), [f"-{number} degrees is the lower bound.", f"= in note {number} is not an arrow.", f"@owner {number} must agree."]
        names = dict(zip(old, new, strict=True))
        row[:] = [names.get(cell, cell) for cell in row]
        row[3] = json.dumps(new)
    return csv_bytes([header, *rows])


def step_changed(old, new):
    """Return the blind file with another text in the trajectory of RDOD2-025, on line 6."""
    (cell,) = (row[4] for row in read_rows(BLIND) if row[0] == "RDOD2-025")
    assert cell.count(old) == 1
    return edited(BLIND, 25, trajectory_json=cell.replace(old, new))


def findings(command, kind, path, *arguments):
    """Return the findings of `validate.py --format json` and see that the exit status agrees with them."""
    run = command(VALIDATE, kind, path, *arguments, "--format", "json")
    report = json.loads(run.out)
    assert run.status == (0 if report["valid"] else 1)
    assert report["valid"] == (not report["findings"])
    return report["findings"]


def places(found):
    """Return findings as line, column and code."""
    return [(finding["line"], finding["column"], finding["code"]) for finding in found]


# ---------------------------------------------------------------- accepted
ACCEPTED = {
    "predictions": ("predictions", PREDICTIONS),
    "predictions with decimals": ("predictions", all_cells(PREDICTIONS, "predicted_first_drift_step", lambda cell: cell and f"{cell}.0")),
    "predictions with a byte-order mark": ("predictions", BOM + PREDICTIONS),
    "predictions without confidences": ("predictions", columns(PREDICTIONS, *HEADER[:-1])),
    "predictions in another order": ("predictions", csv_bytes([HEADER, *reversed(read_rows(PREDICTIONS)[1:])])),
    "predictions with columns in another order": ("predictions", columns(PREDICTIONS, *reversed(HEADER))),
    "predictions with CRLF": ("predictions", PREDICTIONS.replace(b"\n", b"\r\n")),
    "predictions with blanks around ids": ("predictions", all_cells(PREDICTIONS, "scenario_id", lambda cell: f" {cell} ")),
    "labelled": ("labelled", GOLD),
    "labelled with decimals": ("labelled", all_cells(GOLD, "first_drift_step", lambda cell: cell and f"{cell}.0")),
    "labelled with a byte-order mark": ("labelled", BOM + GOLD),
    "labelled with CRLF": ("labelled", GOLD.replace(b"\n", b"\r\n")),
    "labelled with line breaks in cells": ("labelled", all_cells(GOLD, "trajectory_json", on_many_lines)),
    "labelled with other separators of lines in cells": ("labelled", all_cells(GOLD, "trajectory_json", on_odd_lines)),
    "labelled with curly quotes inside texts": ("labelled", GOLD.replace(b"Ask the owner", "Ask the \u201cowner\u201d".encode())),
    "labelled with texts like formulas": ("labelled", formulas(GOLD)),
    "labelled with many letters": ("labelled", with_letters(GOLD)),
    "blind": ("blind", BLIND),
    "blind with a byte-order mark": ("blind", BOM + BLIND),
}


@pytest.mark.parametrize(("kind", "content"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_valid_file_is_called_valid(command, files, kind, content):
    (files / "file.csv").write_bytes(content)
    run = command(VALIDATE, kind, "file.csv", *(("--gold", "gold.csv") if kind == "predictions" else ()))
    assert run == (0, "valid: file.csv\n", "")


# ---------------------------------------------------------------- refused
REFUSED = {
    # predictions: kind, content, findings as line, column and code, and words that one message must hold
    "a step of 3.5": ("predictions", edited(PREDICTIONS, 25, predicted_first_drift_step="3.5"), [(6, "predicted_first_drift_step", "invalid-number")], ["3.5"]),
    "a residual of 1.5": (
        "predictions",
        edited(PREDICTIONS, 25, predicted_residual_constraint_id="1.5"),
        [(6, "predicted_residual_constraint_id", "invalid-number")],
        ["1.5"],
    ),
    "an unknown label": (
        "predictions",
        edited(PREDICTIONS, 25, predicted_outcome_mode="drifted a bit"),
        [(6, "predicted_outcome_mode", "invalid-label")],
        ["drifted a bit", "visible_failure"],
    ),
    "three wrong labels": (
        "predictions",
        edited(
            edited(edited(PREDICTIONS, 25, predicted_mechanism_family="banana"), 22, predicted_repair_outcome=""),
            28,
            predicted_outcome_mode="no_dirft",
        ),
        [(3, "predicted_repair_outcome", "invalid-label"), (6, "predicted_mechanism_family", "invalid-label"), (9, "predicted_outcome_mode", "invalid-label")],
        ["'banana'", "did you mean no_drift?"],
    ),
    "a row number without a name": ("predictions", column_added(PREDICTIONS, "", "1", 0), [(1, "(no name)", "unknown-column")], ["unknown"]),
    "a row number of a data frame": ("predictions", column_added(PREDICTIONS, "Unnamed: 0", "1", 0), [(1, "Unnamed: 0", "unknown-column")], ["Unnamed: 0"]),
    "a column of notes": ("predictions", column_added(PREDICTIONS, "notes", "so so"), [(1, "notes", "unknown-column")], ["notes"]),
    "a column in capitals": (
        "predictions",
        replaced(PREDICTIONS, ("predicted_repair_outcome", "Predicted_Repair_Outcome")),
        [(1, "Predicted_Repair_Outcome", "unknown-column")],
        ["did you mean predicted_repair_outcome?"],
    ),
    "a column twice": (
        "predictions",
        column_added(PREDICTIONS, "predicted_outcome_mode", "no_drift"),
        [(1, "predicted_outcome_mode", "duplicate-column")],
        ["more than once"],
    ),
    "a column twice and one missing": (
        "predictions",
        replaced(PREDICTIONS, ("predicted_mechanism_family", "predicted_outcome_mode")),
        [(1, "predicted_outcome_mode", "duplicate-column"), (1, "predicted_mechanism_family", "missing-column")],
        [],
    ),
    "a column missing": (
        "predictions",
        columns(PREDICTIONS, *(name for name in HEADER if name != "predicted_repair_outcome")),
        [(1, "predicted_repair_outcome", "missing-column")],
        [],
    ),
    "nothing": ("predictions", b"", [(1, "file", "empty-file")], ["nothing"]),
    "a workbook": ("predictions", b"PK\x03\x04" + bytes(200), [(1, "file", "not-csv")], ["Excel"]),
    "a header alone": (
        "predictions",
        lines(PREDICTIONS, 1),
        [*[(1, "file", "no-rows")], *[(None, "scenario_id", "missing-prediction")] * 8],
        ["no row"],
    ),
    "no header": ("predictions", lines(PREDICTIONS, *range(2, 10)), [(1, "header", "no-header")], ["no header"]),
    "the gold in place of predictions": (
        "predictions",
        GOLD,
        [(1, name, "unknown-column") for name in read_rows(GOLD)[0][1:]],
        ["did you mean predicted_outcome_mode?"],
    ),
    "ids in small letters": (
        "predictions",
        replaced(PREDICTIONS, ("RDOD2-021", "rdod2-021")),
        [(2, "scenario_id", "unknown-scenario"), (None, "scenario_id", "missing-prediction")],
        ["found 'rdod2-021'", "did you mean RDOD2-021?"],
    ),
    "an id without its zero": (
        "predictions",
        replaced(PREDICTIONS, ("RDOD2-025", "RDOD2-25")),
        [(6, "scenario_id", "unknown-scenario"), (None, "scenario_id", "missing-prediction")],
        ["found 'RDOD2-25'", "did you mean RDOD2-025?", "no row for RDOD2-025"],
    ),
    "an id with a dash": (
        "predictions",
        replaced(PREDICTIONS, ("RDOD2-025", "RDOD2\u2013025")),
        [(6, "scenario_id", "unknown-scenario"), (None, "scenario_id", "missing-prediction")],
        ["did you mean RDOD2-025?"],
    ),
    "a formula for an id": (
        "predictions",
        edited(PREDICTIONS, 25, scenario_id='=HYPERLINK("click me",A1)'),
        [(6, "scenario_id", "unknown-scenario"), (None, "scenario_id", "missing-prediction")],
        ["HYPERLINK", "no row for RDOD2-025"],
    ),
    "a formula for a label": (
        "predictions",
        edited(PREDICTIONS, 25, predicted_outcome_mode="@SUM(1,1)"),
        [(6, "predicted_outcome_mode", "invalid-label")],
        ["@SUM(1,1)"],
    ),
    # blind files
    "inputs in another order": ("blind", columns(BLIND, "domain", "scenario_id", *INPUTS[2:]), [(1, "header", "column-order")], []),
    "a step given as text": ("blind", step_changed('"step": 3', '"step": "3"'), [(6, "trajectory_json", "invalid-trajectory")], ["step '3' as entry 3"]),
    "a step of 3.5 in a trajectory": ("blind", step_changed('"step": 3', '"step": 3.5'), [(6, "trajectory_json", "invalid-trajectory")], ["3.5"]),
    "true for a step": ("blind", step_changed('"step": 1', '"step": true'), [(6, "trajectory_json", "invalid-trajectory")], ["True"]),
    "steps from 0": ("blind", step_changed('"step": 1', '"step": 0'), [(6, "trajectory_json", "invalid-trajectory")], ["step 0 as entry 1"]),
    "a gap between steps": ("blind", step_changed('"step": 3', '"step": 9'), [(6, "trajectory_json", "invalid-trajectory")], ["the integer 3"]),
    "steps in another order": (
        "blind",
        edited(BLIND, 25, trajectory_json='[{"step": 2, "text": "The second."}, {"step": 1, "text": "The first."}]'),
        [(6, "trajectory_json", "invalid-trajectory")],
        ["step 2 as entry 1"],
    ),
    "a misspelt key": ("blind", step_changed('3, "text"', '3, "txt"'), [(6, "trajectory_json", "invalid-trajectory")], ["'txt'"]),
    "a number for a text": (
        "blind",
        step_changed('"For ticket queue 25, the crew on site 128 put the count at 28."', "5"),
        [(6, "trajectory_json", "invalid-trajectory")],
        [],
    ),
    "a blank text": (
        "blind",
        step_changed("For ticket queue 25, the crew on site 128 put the count at 28.", "  "),
        [(6, "trajectory_json", "invalid-trajectory")],
        ["step 3"],
    ),
    "Python text for a trajectory": (
        "blind",
        edited(BLIND, 25, trajectory_json="[{'step': 1, 'text': 'The log shows 26 entries.'}]"),
        [(6, "trajectory_json", "invalid-json")],
        ["json.dumps"],
    ),
    "a label": ("blind", column_added(BLIND, "outcome_mode", "no_drift"), [(1, "outcome_mode", "unknown-column")], []),
    "an empty label column": ("blind", column_added(BLIND, "first_drift_step"), [(1, "first_drift_step", "unknown-column")], []),
    "a derived column": ("blind", column_added(BLIND, "relative_onset_position", "0.5"), [(1, "relative_onset_position", "unknown-column")], []),
    "a label column in capitals": (
        "blind",
        column_added(BLIND, "Residual_Constraint_Failure", "none"),
        [(1, "Residual_Constraint_Failure", "unknown-column")],
        [],
    ),
    "a prediction": ("blind", column_added(BLIND, "predicted_outcome_mode", "no_drift"), [(1, "predicted_outcome_mode", "unknown-column")], []),
    "a labelled file": ("blind", GOLD, [(1, name, "unknown-column") for name in read_rows(GOLD)[0][5:]], []),
    # labelled files
    "Python text for constraints": (
        "labelled",
        edited(GOLD, 27, constraints_json="['First.', 'Second.']"),
        [(8, "constraints_json", "invalid-json")],
        ["json.dumps"],
    ),
    "curly quotes for constraints": ("labelled", edited(GOLD, 27, constraints_json="[\u201dFirst.\u201d]"), [(8, "constraints_json", "invalid-json")], []),
    "a label behind cells of many lines": (
        "labelled",
        edited(all_cells(GOLD, "trajectory_json", on_odd_lines), 26, severity="grave"),
        [(2 + 5 * 26, "severity", "invalid-label")],
        ["grave"],
    ),
    "no labels": ("labelled", BLIND, [(1, name, "missing-column") for name in read_rows(GOLD)[0][5:]], []),
    "an empty labelled file": ("labelled", b"", [(1, "file", "empty-file")], []),
}


@pytest.mark.parametrize(("kind", "content", "expected", "words"), REFUSED.values(), ids=REFUSED)
def test_a_finding_names_line_column_and_code(command, files, kind, content, expected, words):
    (files / "file.csv").write_bytes(content)
    found = findings(command, kind, "file.csv", *(("--gold", "gold.csv") if kind == "predictions" else ()))
    assert places(found) == expected
    assert {finding["file"] for finding in found} == {"file.csv"}
    for word in words:
        assert any(word in finding["message"] for finding in found), (word, found)


def test_backslash_quotes_break_the_row_and_are_explained(command, files):
    (files / "gold.csv").write_bytes(GOLD.replace(b'""', b'\\"'))
    first = findings(command, "labelled", "gold.csv")[0]
    assert (first["line"], first["code"]) == (2, "broken-csv")
    assert 'not written \\"' in first["message"]


# ---------------------------------------------------------------- how findings are printed
TWO_FAULTS = edited(edited(PREDICTIONS, 25, predicted_first_drift_step="9"), 28, predicted_outcome_mode="no_dirft")


def test_text_and_json_say_the_same_one_line_for_each_finding(command, files):
    (files / "file.csv").write_bytes(TWO_FAULTS)
    arguments = ("predictions", "file.csv", "--gold", "gold.csv")
    text = command(VALIDATE, *arguments)
    found = findings(command, *arguments)
    assert text.status == 1
    assert text.out.splitlines() == [f"{one['file']}:{one['line']}: {one['column']}: {one['message']} [{one['code']}]" for one in found]
    assert text.out.splitlines()[0].startswith("file.csv:6: predicted_first_drift_step: RDOD2-025: found 9, expected a step from 1 to 6")
    assert text.err == "2 findings in 1 file\n"


def test_a_json_finding_is_complete(command, files):
    (files / "file.csv").write_bytes(TWO_FAULTS)
    first, second = findings(command, "predictions", "file.csv", "--gold", "gold.csv")
    assert set(first) == {"file", "line", "column", "scenario_id", "code", "found", "expected", "nearest", "message"}
    assert (second["scenario_id"], second["found"], second["nearest"]) == ("RDOD2-028", "'no_dirft'", "no_drift")
    assert all(label in second["expected"] for label in ("no_drift", "latent_drift", "recovered_drift", "visible_failure"))


def test_json_of_a_valid_file_says_so(command, files):
    assert command(VALIDATE, "blind", "blind.csv", "--format", "json") == (0, '{\n  "valid": true,\n  "findings": []\n}\n', "")


def test_findings_of_several_files_come_at_once(command, files):
    (files / "one.csv").write_bytes(edited(GOLD, 25, severity="grave"))
    (files / "two.csv").write_bytes(replaced(edited(GOLD, 22, trajectory_length="7"), ("0.3333", "0.4")))
    (files / "three.csv").write_bytes(b"")
    run = command(VALIDATE, "labelled", "one.csv", "gold.csv", "two.csv", "three.csv")
    assert run.status == 1
    codes = [(line.split(": ")[0], line.rpartition("[")[2]) for line in run.out.splitlines() if "split-overlap" not in line]
    assert codes == [("one.csv:6", "invalid-label]"), ("two.csv:3", "trajectory-length]"), ("two.csv:4", "relative-onset]"), ("three.csv:1", "empty-file]")]


def test_the_same_cases_in_two_files_overlap(command, files):
    shutil.copy(files / "gold.csv", files / "again.csv")
    found = findings(command, "labelled", "gold.csv", "again.csv")
    assert {finding["code"] for finding in found} == {"split-overlap"}
    assert [finding["line"] for finding in found] == list(range(2, 10))


@pytest.mark.parametrize("letter", ["\n", "\r\n", "\x1b", "\x07", "\u2028", "\x85"], ids=ascii)
def test_no_cell_breaks_the_line_of_a_finding_or_reaches_the_terminal_raw(command, files, letter):
    content = edited(PREDICTIONS, 25, scenario_id=f"RDOD2{letter}-025", predicted_outcome_mode=f"a{letter}b", confidence=f"{letter}2")
    (files / "file.csv").write_bytes(column_added(content, f"no{letter}tes"))
    (files / "gold.csv").write_bytes(edited(GOLD, 25, scenario_id=f"RDOD2{letter}-02{letter}5"))
    run = command(VALIDATE, "predictions", "file.csv", "--gold", "gold.csv")
    found = findings(command, "predictions", "file.csv", "--gold", "gold.csv")
    assert len(run.out.split("\n")) - 1 == len(found) == 5
    assert not set(letter) - {"\n"} & set(run.out)


@pytest.mark.parametrize("env", [ASCII, {"PYTHONIOENCODING": "cp1252:strict"}], ids=["ascii", "cp1252"])
def test_a_terminal_that_lacks_the_letters_breaks_nothing(command, files, env):
    (files / "file.csv").write_bytes(edited(PREDICTIONS, 25, predicted_outcome_mode="Pr\u00fcfung \u7b49"))
    run = command(VALIDATE, "predictions", "file.csv", "--gold", "gold.csv", env=env)
    assert run.status == 1
    assert run.out.startswith("file.csv:6: predicted_outcome_mode: ")
    assert run.out.endswith("[invalid-label]\n")


@pytest.mark.parametrize("env", [C_LOCALE, ASCII], ids=["C", "ascii"])
def test_files_are_utf_8_whatever_the_locale(command, files, env):
    (files / "gold.csv").write_bytes(with_letters(GOLD))
    assert command(VALIDATE, "labelled", "gold.csv", env=env).status == 0


def test_every_file_is_opened_with_its_encoding_named(command, files):
    run = command(
        VALIDATE, "predictions", "predictions.csv", "--gold", "gold.csv", env={"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error::EncodingWarning"}
    )
    assert run.status == 0


# ---------------------------------------------------------------- what can't be done
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("labelled",),
        ("labelled", "nowhere.csv"),
        ("labelled", "gold.csv", "nowhere.csv"),
        ("labelled", "gold.csv/within"),
        ("labelled", "x" * 300),
        ("labelled", ""),
        ("blind", "."),
        ("predictions", "predictions.csv"),
        ("predictions", "nowhere.csv", "--gold", "gold.csv"),
        ("predictions", "predictions.csv", "--gold", "nowhere.csv"),
        ("predictions", "predictions.csv", "--gold", "."),
        ("labelled", "gold.csv", "--format", "yaml"),
        ("everything", "gold.csv"),
        ("repository", "--root", "nowhere"),
        ("repository", "--root", "gold.csv"),
    ],
    ids=lambda arguments: " ".join(arguments)[:60] or "nothing",
)
def test_what_cannot_be_done_ends_with_status_2_and_a_sentence(command, files, arguments):
    run = command(VALIDATE, *arguments)
    assert run.status == 2
    assert run.out == ""
    assert "error: " in run.err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full and closed descriptors")
@pytest.mark.parametrize(("redirection", "status"), [(">&-", 0), ("2>&-", 0), (">/dev/full", 2), ("| true", None)])
def test_nobody_reads_the_output_and_still_no_traceback(files, redirection, status):
    ended = subprocess.run(
        f'"{sys.executable}" "{ROOT / VALIDATE}" labelled gold.csv {redirection}', shell=True, cwd=files, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert status in (None, ended.returncode)


def test_validating_changes_no_file(command, files):
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files.iterdir()}
    command(VALIDATE, "labelled", "gold.csv")
    command(VALIDATE, "predictions", "predictions.csv", "--gold", "gold.csv")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files.iterdir()} == before


# ---------------------------------------------------------------- the repository
def repository(command, checkout):
    """Return the findings on a copy of the project as file, line, column and code."""
    run = command(VALIDATE, "repository", "--root", checkout, "--format", "json")
    report = json.loads(run.out)
    assert run.status == (0 if report["valid"] else 1)
    return report["findings"]


def beside_checksums(found):
    """Return findings as file, line, column and code, without the stale checksums that every change of a file brings."""
    return [(one["file"], one["line"], one["column"], one["code"]) for one in found if (one["file"], one["code"]) != ("manifest.json", "stale-file")]


def change(path, edit):
    """Change the rows of a CSV file in place; the first one is the header."""
    rows = read_rows(path.read_bytes())
    path.write_bytes(csv_bytes(edit(rows) or rows))


def line_of(path, scenario_id):
    """Return the physical line on which a scenario's row begins."""
    with path.open(encoding="utf-8", newline="") as text:
        reader, start = csv.reader(text), 1
        for row in reader:
            if row[0] == scenario_id:
                return start
            start = reader.line_num + 1
    raise LookupError(scenario_id)


def test_the_project_is_valid_and_finds_itself(command, checkout):
    assert command(VALIDATE, "repository") == (0, "valid: the repository\n", "")
    assert command(checkout / VALIDATE, "repository") == (0, "valid: the repository\n", "")


def test_a_checkout_with_crlf_is_valid(command, checkout):
    for name in REQUIRED_FILES:
        content = (checkout / name).read_bytes()
        (checkout / name).write_bytes(content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert repository(command, checkout) == []


def test_every_missing_file_is_found(checkout):
    for name in REQUIRED_FILES:
        (checkout / name).rename(checkout / "elsewhere")
        missing = [problem for problem in validate_repository(checkout) if problem.code == "missing-file"]
        assert [(problem.file, problem.line) for problem in missing] == [(name, None)]
        (checkout / "elsewhere").rename(checkout / name)


def test_a_missing_file_hides_no_other_finding(command, checkout):
    (checkout / "LICENSE").unlink()
    change(checkout / "data/dev.csv", lambda rows: rows[1].__setitem__(rows[0].index("severity"), "grave"))
    found = beside_checksums(repository(command, checkout))
    assert found == [("LICENSE", None, "file", "missing-file"), ("data/dev.csv", 2, "severity", "invalid-label")]


def test_a_scenario_in_two_splits_under_another_id_is_told_once_with_both_ids(command, checkout):
    test = read_rows((checkout / "data/test.csv").read_bytes())
    train = read_rows((checkout / "data/train.csv").read_bytes())
    change(checkout / "data/train.csv", lambda rows: rows.__setitem__(1, [rows[1][0], *test[1][1:]]))
    found = [one for one in repository(command, checkout) if one["code"] == "split-overlap"]
    assert len(found) == 1
    assert train[1][0] in found[0]["message"]
    assert test[1][0] in found[0]["message"]


def copied_cell(column, fold=lambda text: text):
    """Return a change that gives train's first row a cell of test's first row."""

    def edit(checkout):
        test = read_rows((checkout / "data/test.csv").read_bytes())
        change(checkout / "data/train.csv", lambda rows: rows[1].__setitem__(rows[0].index(column), fold(test[1][test[0].index(column)])))

    return edit


def same_trajectory_in_one_split(checkout):
    change(checkout / "data/test.csv", lambda rows: rows[2].__setitem__(4, rows[1][4]))


OVERLAPS = {
    "an id": (copied_cell("scenario_id"), "data/test.csv", "scenario_id"),
    "a task": (copied_cell("task"), "data/test.csv", "task"),
    "a task in other letters": (copied_cell("task", lambda text: text.upper().replace(" ", "  ")), "data/test.csv", "task"),
    "a trajectory": (copied_cell("trajectory_json"), "data/test.csv", "trajectory_json"),
    "a trajectory on many lines": (copied_cell("trajectory_json", on_many_lines), "data/test.csv", "trajectory_json"),
    "a trajectory twice in a split": (same_trajectory_in_one_split, "data/test.csv", "trajectory_json"),
}


@pytest.mark.parametrize(("edit", "file", "column"), OVERLAPS.values(), ids=OVERLAPS)
def test_what_stands_twice_is_found(command, checkout, edit, file, column):
    edit(checkout)
    found = [(one["file"], one["column"]) for one in repository(command, checkout) if one["code"] == "split-overlap"]
    assert found == [(file, column)]


def in_file(name, edit):
    """Return a change of one CSV file of the checkout."""
    return lambda checkout: change(checkout / name, edit)


def text_in(name, edit):
    """Return a change of one text file of the checkout."""
    return lambda checkout: (checkout / name).write_text(edit((checkout / name).read_text(encoding="utf-8")), encoding="utf-8")


def json_in(name, edit):
    """Return a change of one JSON file of the checkout."""
    return text_in(name, lambda text: json.dumps(edit(json.loads(text))))


def without(rows, number):
    """Return rows without one of them."""
    return rows[:number] + rows[number + 1 :]


TEST, BLIND_FILE, RATIONALES, EXAMPLE = "data/test.csv", "data/test_blind.csv", "annotations/rationales.csv", "baseline/example_predictions.csv"
SPOILT = {
    "a label in the blind file": (
        in_file(BLIND_FILE, lambda rows: [[*row, "severity" if not number else "low"] for number, row in enumerate(rows)]),
        [(BLIND_FILE, 1, "severity", "unknown-column")],
    ),
    "another task in the blind file": (
        in_file(BLIND_FILE, lambda rows: rows[1].__setitem__(2, rows[1][2] + " Say why.")),
        [(BLIND_FILE, 2, "task", "blind-mismatch")],
    ),
    "a blind cell that only looks alike": (
        in_file(BLIND_FILE, lambda rows: rows[1].__setitem__(3, rows[1][3].replace('", "', '","'))),
        [(BLIND_FILE, 2, "constraints_json", "blind-mismatch")],
    ),
    "a blind row less": (in_file(BLIND_FILE, lambda rows: rows[:-1]), [(BLIND_FILE, None, "rows", "blind-mismatch")]),
    "columns in another order": (
        in_file("data/dev.csv", lambda rows: [[row[0], row[2], row[1], *row[3:]] for row in rows]),
        [("data/dev.csv", 1, "header", "column-order")],
    ),
    "a wrong label": (
        in_file("data/dev.csv", lambda rows: rows[1].__setitem__(rows[0].index("severity"), "grave")),
        [("data/dev.csv", 2, "severity", "invalid-label")],
    ),
    "a rationale less": (in_file(RATIONALES, lambda rows: without(rows, 1)), [(RATIONALES, None, "scenario_id", "missing-rationale")]),
    "a blank rationale": (in_file(RATIONALES, lambda rows: rows[1].__setitem__(1, " ")), [(RATIONALES, 2, "rationale", "missing-value")]),
    "a rationale of nothing": (
        in_file(RATIONALES, lambda rows: rows.insert(1, ["RDOD2-999", "There is no such row."])),
        [(RATIONALES, 2, "scenario_id", "unknown-scenario")],
    ),
    "a rationale twice": (in_file(RATIONALES, lambda rows: rows.insert(2, rows[1])), [(RATIONALES, 3, "scenario_id", "duplicate-scenario")]),
    "an example prediction less": (in_file(EXAMPLE, lambda rows: without(rows, 1)), [(EXAMPLE, None, "scenario_id", "missing-prediction")]),
    "a wrong example prediction": (in_file(EXAMPLE, lambda rows: rows[1].__setitem__(1, "drift")), [(EXAMPLE, 2, "predicted_outcome_mode", "invalid-label")]),
    "an id twice": (
        in_file("data/train.csv", lambda rows: rows[2].__setitem__(0, rows[1][0])),
        None,  # beside the id, the rationale of the lost id is one too many
    ),
    "a stale schema": (json_in("schema.json", lambda schema: {**schema, "title": "Another title"}), [("schema.json", None, "file", "stale-file")]),
    "a schema that is no JSON": (text_in("schema.json", lambda text: text[:-20]), None),
    "a schema of nothing": (text_in("schema.json", lambda text: ""), [("schema.json", 1, "file", "invalid-json")]),
    "a schema of many brackets": (text_in("schema.json", lambda text: "[" * 200_000), [("schema.json", None, "file", "invalid-json")]),
    "a manifest of many brackets": (text_in("manifest.json", lambda text: "[" * 200_000), [("manifest.json", None, "file", "invalid-json")]),
    "a manifest that is no JSON": (text_in("manifest.json", lambda text: "{" + text), [("manifest.json", 1, "file", "invalid-json")]),
}


@pytest.mark.parametrize(("edit", "expected"), SPOILT.values(), ids=SPOILT)
def test_what_is_wrong_with_a_repository_is_found_in_its_place(command, checkout, edit, expected):
    edit(checkout)
    found = beside_checksums(repository(command, checkout))
    assert found
    if expected is not None:
        assert found == expected


def test_an_id_twice_brings_no_finding_without_a_scenario(command, checkout):
    SPOILT["an id twice"][0](checkout)
    lost = read_rows((ROOT / "data/train.csv").read_bytes())[2][0]
    found = {(one["file"], one["code"], one["scenario_id"]) for one in repository(command, checkout) if one["file"] != "manifest.json"}
    known = read_rows((ROOT / "data/train.csv").read_bytes())[1][0]
    assert found == {("data/train.csv", "duplicate-scenario", known), (RATIONALES, "unknown-scenario", lost)}


EXPANDED = "data/expanded"
EXPANDED_SPOILT = {
    "another task in the blind file": (
        in_file(f"{EXPANDED}/test_blind.csv", lambda rows: rows[1].__setitem__(2, rows[1][2] + " Say why.")),
        [(f"{EXPANDED}/test_blind.csv", 2, "task", "blind-mismatch")],
    ),
    "a blind row less": (in_file(f"{EXPANDED}/test_blind.csv", lambda rows: rows[:-1]), [(f"{EXPANDED}/test_blind.csv", None, "rows", "blind-mismatch")]),
    "a derived column in the file": (
        in_file(f"{EXPANDED}/dev.csv", lambda rows: [[*row, row[0][:-1] if number else "contrast_family"] for number, row in enumerate(rows)]),
        [(f"{EXPANDED}/dev.csv", 1, "contrast_family", "unknown-column")],
    ),
    "a rationale less": (
        in_file("annotations/expanded_rationales.csv", lambda rows: without(rows, 1)),
        [("annotations/expanded_rationales.csv", None, "scenario_id", "missing-rationale")],
    ),
    "a rationale of the other release": (
        in_file("annotations/expanded_rationales.csv", lambda rows: rows.insert(1, ["RDOD2-001", "It stands in the other file."])),
        [("annotations/expanded_rationales.csv", 2, "scenario_id", "unknown-scenario")],
    ),
    "a wrong label brings no finding on its family": (
        in_file(f"{EXPANDED}/dev.csv", lambda rows: rows[1].__setitem__(5, "drift")),
        [(f"{EXPANDED}/dev.csv", 2, "outcome_mode", "invalid-label")],
    ),
}


@pytest.mark.parametrize(("edit", "expected"), EXPANDED_SPOILT.values(), ids=EXPANDED_SPOILT)
def test_the_expanded_release_is_held_to_the_same_rules(command, checkout, edit, expected):
    edit(checkout)
    assert beside_checksums(repository(command, checkout)) == expected


def test_a_row_of_the_expanded_release_without_a_family_is_found(command, checkout):
    header_and_rows = read_rows((checkout / f"{EXPANDED}/dev.csv").read_bytes())
    in_file(f"{EXPANDED}/dev.csv", lambda rows: rows[1].__setitem__(0, "RDOD3-extra"))(checkout)
    found = [(one["line"], one["column"], one["scenario_id"]) for one in repository(command, checkout) if one["code"] == "contrast-family"]
    assert (2, "scenario_id", "RDOD3-extra") in found
    family = header_and_rows[1][0][:-1]
    assert any(identifier.startswith(family) for _, _, identifier in found)  # which has five members now


def expanded_twin(column, file):
    """Return a change that gives the first row of a file a cell of the expanded test's first row."""

    def edit(checkout):
        test = read_rows((checkout / f"{EXPANDED}/test.csv").read_bytes())
        change(checkout / file, lambda rows: rows[1].__setitem__(rows[0].index(column), test[1][test[0].index(column)]))

    return edit


@pytest.mark.parametrize("file", ["data/train.csv", f"{EXPANDED}/dev.csv"])
@pytest.mark.parametrize("column", ["task", "trajectory_json"])
def test_a_text_of_the_expanded_test_stands_in_no_other_file_of_either_release(command, checkout, file, column):
    expanded_twin(column, file)(checkout)
    found = {(one["file"], one["column"]) for one in repository(command, checkout) if one["code"] == "split-overlap"}
    assert found == {(f"{EXPANDED}/test.csv", column)}


def test_labelled_files_of_families_are_valid(command):
    names = [ROOT / EXPANDED / f"{split}.csv" for split in ("train", "dev", "test")]
    assert command(VALIDATE, "labelled", *names).status == 0


STALE = {
    "another hash": lambda manifest: {**manifest, "files": {**manifest["files"], TEST: {**manifest["files"][TEST], "sha256": "0" * 64}}},
    "another number of rows": lambda manifest: {**manifest, "files": {**manifest["files"], TEST: {**manifest["files"][TEST], "rows": 11}}},
    "another size": lambda manifest: {**manifest, "files": {**manifest["files"], TEST: {**manifest["files"][TEST], "bytes": 1}}},
    "a file less": lambda manifest: {**manifest, "files": {name: entry for name, entry in manifest["files"].items() if name != TEST}},
    "an entry of another shape": lambda manifest: {**manifest, "files": {**manifest["files"], TEST: "0" * 64}},
}


@pytest.mark.parametrize("edit", STALE.values(), ids=STALE)
def test_a_stale_manifest_is_found(command, checkout, edit):
    json_in("manifest.json", edit)(checkout)
    assert [(one["file"], one["column"], one["code"]) for one in repository(command, checkout)] == [("manifest.json", TEST, "stale-file")]


@pytest.mark.parametrize("content", [[], {}, {"files": []}, None, 3], ids=json.dumps)
def test_a_manifest_of_another_shape_is_found(command, checkout, content):
    (checkout / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    assert [(one["file"], one["code"]) for one in repository(command, checkout)] == [("manifest.json", "stale-file")]


def test_a_changed_label_makes_the_manifest_stale(command, checkout):
    in_file("data/train.csv", lambda rows: rows[1].__setitem__(rows[0].index("annotation_confidence"), "0.123"))(checkout)
    assert ("manifest.json", "data/train.csv", "stale-file") in [(one["file"], one["column"], one["code"]) for one in repository(command, checkout)]


def test_findings_of_all_files_of_a_repository_come_at_once(command, checkout):
    for name in ("another task in the blind file", "a wrong label", "a rationale less", "a wrong example prediction", "a stale schema"):
        SPOILT[name][0](checkout)
    files = {file for file, *_ in beside_checksums(repository(command, checkout))}
    assert files == {BLIND_FILE, "data/dev.csv", RATIONALES, EXAMPLE, "schema.json"}


def test_the_line_of_a_finding_in_the_data_is_the_physical_one(command, checkout):
    change(checkout / "data/train.csv", lambda rows: [rows[0], *([*row[:4], on_many_lines(row[4]), *row[5:]] for row in rows[1:])])
    last = read_rows((checkout / "data/train.csv").read_bytes())[-1][0]
    change(checkout / "data/train.csv", lambda rows: rows[-1].__setitem__(rows[0].index("severity"), "grave"))
    found = beside_checksums(repository(command, checkout))
    assert found == [("data/train.csv", line_of(checkout / "data/train.csv", last), "severity", "invalid-label")]
    assert found[0][1] > 60

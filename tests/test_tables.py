"""Reading CSV files as people's tools write them: what is accepted, and what every refusal points at."""

import csv
import gzip
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import BLIND, BOM, GOLD, PREDICTIONS, all_cells, column_added, columns, csv_bytes, edited, lines, on_many_lines, read_rows, replaced

from rdod_metric import tables
from rdod_metric.rules import State

HEADER = PREDICTIONS.splitlines()[0].decode()
LATIN = "caf\u00e9".encode("latin-1")


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """Return the sample gold by scenario id."""
    path = tmp_path_factory.mktemp("gold") / "gold.csv"
    path.write_bytes(GOLD)
    cases, problems = tables.read_cases(path)
    assert not problems
    return {case.gold.scenario_id: case.gold for case in cases}


@pytest.fixture(scope="module")
def read(gold, tmp_path_factory):
    """Return a function that reads a file of predictions from its bytes."""
    path = tmp_path_factory.mktemp("read") / "file.csv"

    def predictions(content, **options):
        path.write_bytes(content)
        return tables.read_predictions(path, gold, **options)

    return predictions


def places(problems):
    """Return problems as line, column and code."""
    return [(problem.line, problem.column, problem.code) for problem in problems]


def workbook():
    """Return a zip archive, as a spreadsheet's workbook is one."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return content.getvalue()


# ---------------------------------------------------------------- accepted
def test_predictions_are_read_by_scenario(read):
    submission = read(PREDICTIONS)
    assert not submission.problems
    assert list(submission.predictions) == [f"RDOD2-{number:03d}" for number in range(21, 29)]
    assert submission.predictions["RDOD2-021"] == ("RDOD2-021", State("no_drift", None, "none", "not_applicable", None), 0.95)
    assert submission.predictions["RDOD2-026"] == ("RDOD2-026", State("visible_failure", 2, "proxy_substitution", "unrepaired", 3), 0.55)


def quoted(content):
    return csv_bytes(read_rows(content), quoting=csv.QUOTE_ALL)


def spaced(content):
    return csv_bytes([[f"  {cell}\t" for cell in row] for row in read_rows(content)])


ROW_OF_COMMAS = b",,,,,,\n"
ALIKE = {
    "byte-order mark": BOM + PREDICTIONS,
    "byte-order mark and quotes": BOM + quoted(PREDICTIONS),
    "CRLF": PREDICTIONS.replace(b"\n", b"\r\n"),
    "CR": PREDICTIONS.replace(b"\n", b"\r"),
    "doubled line ends": PREDICTIONS.replace(b"\n", b"\r\r\n"),
    "mixed line ends": replaced(PREDICTIONS, (b"0.55\n", b"0.55\r\n"), (b"0.65\n", b"0.65\r")),
    "blank lines at the end": PREDICTIONS + b"\n\r\n\n",
    "blank lines first": b"\n\n" + PREDICTIONS,
    "blank lines between": PREDICTIONS.replace(b"\n", b"\n\n"),
    "a row of commas": PREDICTIONS + ROW_OF_COMMAS,
    "a row of blanks": PREDICTIONS + b"  , ,\t\n   \n",
    "no last line end": PREDICTIONS.rstrip(b"\n"),
    "every cell quoted": quoted(PREDICTIONS),
    "blanks around cells": spaced(PREDICTIONS),
    "decimals": all_cells(
        all_cells(PREDICTIONS, "predicted_first_drift_step", lambda cell: cell and cell + ".0"),
        "predicted_residual_constraint_id",
        lambda cell: cell.replace("2", "2.0"),
    ),
    "blank residuals": all_cells(PREDICTIONS, "predicted_residual_constraint_id", lambda cell: cell.replace("none", "")),
    "columns in another order": columns(PREDICTIONS, *reversed(HEADER.split(","))),
    "rows in another order": csv_bytes([HEADER.split(","), *reversed(read_rows(PREDICTIONS)[1:])]),
}


@pytest.mark.parametrize("content", ALIKE.values(), ids=ALIKE)
def test_predictions_written_by_other_tools_are_read_alike(read, content):
    submission = read(content)
    assert not submission.problems
    assert submission.predictions == read(PREDICTIONS).predictions


@pytest.mark.parametrize(
    "content", [columns(PREDICTIONS, *HEADER.split(",")[:-1]), all_cells(PREDICTIONS, "confidence", lambda cell: " ")], ids=["no column", "blank cells"]
)
def test_predictions_without_confidences_are_read(read, content):
    submission = read(content)
    assert not submission.problems
    assert {answer.confidence for answer in submission.predictions.values()} == {None}


def test_gold_with_line_breaks_in_its_cells_is_read_alike(tmp_path, gold):
    (tmp_path / "gold.csv").write_bytes(all_cells(all_cells(GOLD, "trajectory_json", on_many_lines), "constraints_json", on_many_lines))
    cases, problems = tables.read_cases(tmp_path / "gold.csv")
    assert not problems
    assert {case.gold.scenario_id: case.gold for case in cases} == gold
    assert [case.row.line for case in cases][:3] == [2, 2 + 30, 2 + 2 * 30]


def test_every_kind_of_line_separator_inside_a_text_is_kept(tmp_path):
    text = "One.\\nTwo.\u2028Three.\u2029Four.\u0085Five.\x0bSix.\x0cSeven.\\rEight."
    trajectory = read_rows(BLIND)[1][4].replace(
        "For mail relay 21, the supplier offers a swap on day 126.", text.replace("\x0b", "\\u000b").replace("\x0c", "\\f")
    )
    (tmp_path / "blind.csv").write_bytes(edited(BLIND, 21, trajectory_json=trajectory))
    rows, problems = tables.read_blind(tmp_path / "blind.csv")
    assert not problems
    assert rows[0][1].trajectory[4] == "One.\nTwo.\u2028Three.\u2029Four.\u0085Five.\x0bSix.\x0cSeven.\rEight."
    assert rows[1][0].line == 3


# ---------------------------------------------------------------- no CSV, or another one
NO_TABLE = {
    "nothing": (b"", "empty-file"),
    "a byte-order mark alone": (BOM, "empty-file"),
    "blank lines alone": (b"\n \n\r\n,,\n", "empty-file"),
    "a workbook": (workbook(), "not-csv"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504), "not-csv"),
    "a gzip archive": (gzip.compress(PREDICTIONS), "not-csv"),
    "Parquet": (b"PAR1\x15\x04\x15" + bytes(100), "not-csv"),
    "a PDF": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "not-csv"),
    "an image": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "encoding"),
    "zeros": (bytes(4096), "not-csv"),
    "UTF-16": (PREDICTIONS.decode().encode("utf-16"), "not-csv"),
    "UTF-16, other end first": (b"\xfe\xff" + PREDICTIONS.decode().encode("utf-16-be"), "not-csv"),
    "UTF-16 without a mark": (PREDICTIONS.decode().encode("utf-16-le"), "not-csv"),
    "UTF-32": (PREDICTIONS.decode().encode("utf-32"), "not-csv"),
    "semicolons": (PREDICTIONS.replace(b",", b";"), "wrong-delimiter"),
    "tabs": (PREDICTIONS.replace(b",", b"\t"), "wrong-delimiter"),
    "bars": (PREDICTIONS.replace(b",", b"|"), "wrong-delimiter"),
    "no header": (lines(PREDICTIONS, *range(2, 10)), "no-header"),
    "a web page": (b"<!DOCTYPE html>\n<html><body>Log in, please.</body></html>\n", "no-header"),
    "a note for a spreadsheet": (b"sep=,\n" + PREDICTIONS, "no-header"),
    "a letter of another encoding in the header": (replaced(PREDICTIONS, (b",confidence", b",confidence " + LATIN)), "encoding"),
    "a quote in the header that never closes": (b'"' + PREDICTIONS, "broken-csv"),
}


@pytest.mark.parametrize(("content", "code"), NO_TABLE.values(), ids=NO_TABLE)
def test_what_is_no_table_is_refused_with_one_finding(read, content, code):
    submission = read(content)
    assert [problem.code for problem in submission.problems] == [code]
    assert submission.problems[0].line == 1


def test_lines_of_json_are_refused_for_their_columns(read):
    content = b'{"scenario_id": "RDOD2-021", "predicted_outcome_mode": "no_drift", "confidence": 0.5}\n' * 3
    assert {problem.code for problem in read(content).problems} <= {"no-header", "unknown-column", "missing-column"}


def test_a_header_without_rows_is_refused(read):
    assert {problem.code for problem in read(lines(PREDICTIONS, 1)).problems} == {"no-rows", "missing-prediction"}


def test_a_file_in_another_place_raises_what_opening_it_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        tables.read_cases(tmp_path / "nowhere.csv")


# ---------------------------------------------------------------- columns
COLUMNS = {
    "a row number without a name": (column_added(PREDICTIONS, "", "7", 0), [("(no name)", "unknown-column")]),
    "a row number of a data frame": (column_added(PREDICTIONS, "Unnamed: 0", "7", 0), [("Unnamed: 0", "unknown-column")]),
    "notes": (column_added(PREDICTIONS, "notes", "so so"), [("notes", "unknown-column")]),
    "a comma at the end of every line": (PREDICTIONS.replace(b"\n", b",\n"), [("(no name)", "unknown-column")]),
    "a capital": (replaced(PREDICTIONS, ("predicted_repair", "Predicted_Repair")), [("Predicted_Repair_outcome", "unknown-column")]),
    "a gold column's name": (replaced(PREDICTIONS, ("predicted_outcome_mode", "outcome_mode")), [("outcome_mode", "unknown-column")]),
    "a misspelt confidence": (replaced(PREDICTIONS, (",confidence", ",confidance")), [("confidance", "unknown-column")]),
    "a second byte-order mark": (BOM + BOM + PREDICTIONS, [("\ufeffscenario_id", "unknown-column")]),
    "a column twice": (column_added(PREDICTIONS, "predicted_outcome_mode", "no_drift"), [("predicted_outcome_mode", "duplicate-column")]),
    "confidence twice": (column_added(PREDICTIONS, "confidence", "0.5"), [("confidence", "duplicate-column")]),
    "a missing column": (
        columns(PREDICTIONS, *(name for name in HEADER.split(",") if name != "predicted_repair_outcome")),
        [("predicted_repair_outcome", "missing-column")],
    ),
    "missing ids": (columns(PREDICTIONS, *HEADER.split(",")[1:]), [("scenario_id", "missing-column")]),
    "three faults": (
        column_added(column_added(replaced(PREDICTIONS, ("predicted_repair_outcome", "notes")), "confidence"), "x"),
        [("notes", "unknown-column"), ("confidence", "duplicate-column"), ("x", "unknown-column"), ("predicted_repair_outcome", "missing-column")],
    ),
}


@pytest.mark.parametrize(("content", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_faults_of_the_header_are_told_by_column_and_alone(read, content, expected):
    assert sorted(places(read(content).problems)) == sorted((1, *place) for place in expected)


def test_the_column_that_was_meant_is_named(read):
    for name, meant in {
        "Predicted_Repair_Outcome": "predicted_repair_outcome",
        "predicted repair outcome": "predicted_repair_outcome",
        "repair_outcome": "predicted_repair_outcome",
    }.items():
        (problem,) = read(replaced(PREDICTIONS, ("predicted_repair_outcome", name))).problems
        assert problem.nearest == meant


def test_the_rows_of_a_file_with_a_faulty_header_are_judged_all_the_same(read):
    content = edited(column_added(PREDICTIONS, "notes"), 25, predicted_first_drift_step="9")
    assert places(read(content).problems) == [(1, "notes", "unknown-column"), (6, "predicted_first_drift_step", "onset-out-of-bounds")]


# ---------------------------------------------------------------- rows
MULTILINE = replaced(PREDICTIONS, ("RDOD2-022,recovered_drift", 'RDOD2-022,"\n\nrecovered_drift\r\n"'))  # rows from 023 on stand three lines further down
ROWS = {
    "too narrow": (replaced(PREDICTIONS, (",0.65\n", "\n")), [(5, "row", "row-width")]),
    "too wide": (replaced(PREDICTIONS, (",0.65\n", ",0.65,\n")), [(5, "row", "row-width")]),
    "a decimal comma": (replaced(PREDICTIONS, (",0.65\n", ",0,65\n")), [(5, "row", "row-width")]),
    "one cell": (PREDICTIONS + b"8 rows\n", [(10, "row", "row-width")]),
    "too wide, after cells of several lines": (replaced(MULTILINE, (",0.65\n", ",0.65,\n")), [(8, "row", "row-width")]),
    "a label, after cells of several lines": (replaced(MULTILINE, ("024,recovered", "024,recoverd")), [(8, "predicted_outcome_mode", "invalid-label")]),
    "a quote that never closes, in the last row": (replaced(PREDICTIONS, ("028,no_drift", '028,"no_drift')), [(9, "row", "broken-csv")]),
    "a quote that never closes, behind cells of several lines": (
        replaced(PREDICTIONS, ("028,no_drift,,none", '028,"no_\n\ndrift",,"none')),
        [(11, "row", "broken-csv")],
    ),
    "a quote that closes too early": (replaced(PREDICTIONS, ("024,recovered_drift", '024,"recovered"_drift')), [(5, "row", "broken-csv")]),
    "a quote escaped with a backslash": (replaced(PREDICTIONS, ("024,recovered_drift", '024,"recovered\\"_drift"')), [(5, "row", "broken-csv")]),
    "bytes of another encoding": (replaced(PREDICTIONS, (b"024,recovered_drift", b"024," + LATIN)), [(5, "predicted_outcome_mode", "encoding")]),
    "surrogates written as UTF-8": (replaced(PREDICTIONS, (b"024,recovered_drift", b"024,\xed\xa0\xbd")), [(5, "predicted_outcome_mode", "encoding")]),
    "half of a letter": (replaced(PREDICTIONS, (b"024,recovered_drift", b"024,recovered_drift\xe7\xad")), [(5, "predicted_outcome_mode", "encoding")]),
    "a NUL byte": (replaced(PREDICTIONS, (b"024,recovered_drift", b"024,recovered_\0drift")), [(5, "predicted_outcome_mode", "nul-byte")]),
    "a NUL byte in a quoted cell": (replaced(PREDICTIONS, (b"024,recovered_drift", b'024,"recovered\0\n_drift"')), [(5, "predicted_outcome_mode", "nul-byte")]),
    "a NUL byte in a confidence": (replaced(PREDICTIONS, (b",0.65", b",0.65\0")), [(5, "confidence", "nul-byte")]),
    "two problems in a row": (
        edited(PREDICTIONS, 25, predicted_outcome_mode="drifted", confidence="85%"),
        [(6, "predicted_outcome_mode", "invalid-label"), (6, "confidence", "invalid-confidence")],
    ),
    "a contradiction": (
        edited(PREDICTIONS, 25, predicted_residual_constraint_id="none", predicted_repair_outcome="full_repair"),
        [(6, "predicted_repair_outcome", "inconsistent-state"), (6, "predicted_residual_constraint_id", "inconsistent-state")],
    ),
    "an onset past the end": (edited(PREDICTIONS, 25, predicted_first_drift_step="7"), [(6, "predicted_first_drift_step", "onset-out-of-bounds")]),
    "a constraint past the last": (
        edited(PREDICTIONS, 25, predicted_residual_constraint_id="4"),
        [(6, "predicted_residual_constraint_id", "constraint-out-of-bounds")],
    ),
    "a recovery from the last step": (edited(PREDICTIONS, 24, predicted_first_drift_step="6"), [(5, "predicted_first_drift_step", "inconsistent-state")]),
    "a missing scenario": (lines(PREDICTIONS, 1, 2, 3, 4, 5, 7, 8, 9), [(None, "scenario_id", "missing-prediction")]),
    "three missing scenarios": (lines(PREDICTIONS, 1, 2, 4, 6, 8, 9), [(None, "scenario_id", "missing-prediction")] * 3),
    "a row twice": (PREDICTIONS + lines(PREDICTIONS, 6), [(10, "scenario_id", "duplicate-scenario")]),
    "an id twice, with blanks": (PREDICTIONS + b" " + lines(PREDICTIONS, 6), [(10, "scenario_id", "duplicate-scenario")]),
    "a scenario of another file": (PREDICTIONS + replaced(lines(PREDICTIONS, 2), ("021", "001")), [(10, "scenario_id", "unknown-scenario")]),
    "no id": (replaced(PREDICTIONS, ("RDOD2-025", "")), [(6, "scenario_id", "missing-value")]),
    "a no-break space for an id": (replaced(PREDICTIONS, ("RDOD2-025", "\u00a0")), [(6, "scenario_id", "missing-value")]),
    "a formula for an id": (
        replaced(PREDICTIONS, ("RDOD2-025", '"=HYPERLINK(""http://example.org"")"')),
        [(6, "scenario_id", "unknown-scenario"), (None, "scenario_id", "missing-prediction")],
    ),
}


@pytest.mark.parametrize(("content", "expected"), ROWS.values(), ids=ROWS)
def test_faults_of_rows_are_told_by_physical_line_and_column(read, content, expected):
    assert places(read(content).problems) == expected


def test_a_header_in_the_middle_of_the_rows_is_read_as_a_row(read):
    found = places(read(PREDICTIONS + lines(PREDICTIONS, 1)).problems)
    assert (10, "scenario_id", "unknown-scenario") in found
    assert {line for line, *_ in found} == {10}


@pytest.mark.parametrize("name", ["too narrow", "no id", "a quote that closes too early"])
def test_a_row_that_cannot_be_paired_is_not_called_missing_too(read, name):
    assert "missing-prediction" not in {problem.code for problem in read(ROWS[name][0]).problems}


def test_rows_behind_a_broken_one_are_judged(read):
    content = edited(PREDICTIONS, 27, predicted_first_drift_step="0")
    content = replaced(content, ("024,recovered_drift", '024,"recovered"_drift'))
    assert places(read(content).problems) == [(5, "row", "broken-csv"), (8, "predicted_first_drift_step", "onset-out-of-bounds")]


def test_findings_name_the_scenario_and_the_file(read):
    (problem,) = read(edited(PREDICTIONS, 25, confidence="2"), name="mine.csv").problems
    assert (problem.scenario_id, problem.file) == ("RDOD2-025", "mine.csv")


# ---------------------------------------------------------------- labelled, blind and rationale files
def read_file(tmp_path, reader, content, *arguments):
    """Return the places of the problems that a reader finds in a file."""
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    result = reader(path, *arguments)
    return places(result if isinstance(result, list) else result[-1])


LABELLED = {
    "columns in another order": (columns(GOLD, *sorted(read_rows(GOLD)[0])), [(1, "header", "column-order")]),
    "a column more": (column_added(GOLD, "notes"), [(1, "notes", "unknown-column")]),
    "a column fewer": (columns(GOLD, *read_rows(GOLD)[0][:-1]), [(1, "annotation_confidence", "missing-column")]),
    "a column that the loader derives": (column_added(GOLD, "residual_constraint_id"), [(1, "residual_constraint_id", "unknown-column")]),
    "an id twice": (replaced(GOLD, ("RDOD2-026", "RDOD2-025")), [(7, "scenario_id", "duplicate-scenario")]),
    "no id": (replaced(GOLD, ("RDOD2-026", "")), [(7, "scenario_id", "missing-value")]),
    "a no-break space for an id": (replaced(GOLD, ("RDOD2-026", "\u00a0")), [(7, "scenario_id", "missing-value")]),
    "another row's constraint": (
        edited(GOLD, 25, residual_constraint_failure="Ask the owner before the boiler plan 28 is changed."),
        [(6, "residual_constraint_failure", "unknown-constraint")],
    ),
    "behind pretty-printed cells": (
        edited(all_cells(GOLD, "trajectory_json", on_many_lines), 23, severity="grave"),
        [(2 + 2 * 26, "severity", "invalid-label")],
    ),
    "in two rows": (
        edited(edited(GOLD, 23, severity="none"), 28, visible_failure_step="6"),
        [(4, "severity", "inconsistent-state"), (9, "visible_failure_step", "inconsistent-state")],
    ),
}


@pytest.mark.parametrize(("content", "expected"), LABELLED.values(), ids=LABELLED)
def test_faults_of_labelled_files_are_told_by_line_and_column(tmp_path, content, expected):
    assert read_file(tmp_path, tables.read_cases, content) == expected


BLINDS = {
    "a label": (column_added(BLIND, "outcome_mode", "no_drift"), [(1, "outcome_mode", "unknown-column")]),
    "a derived column": (column_added(BLIND, "trajectory_length", "6"), [(1, "trajectory_length", "unknown-column")]),
    "columns in another order": (columns(BLIND, "scenario_id", "task", "domain", "constraints_json", "trajectory_json"), [(1, "header", "column-order")]),
    "Python's quotes": (edited(BLIND, 25, constraints_json="['First.']"), [(6, "constraints_json", "invalid-json")]),
    "nothing in a cell": (edited(BLIND, 25, task=" "), [(6, "task", "missing-value")]),
}


@pytest.mark.parametrize(("content", "expected"), BLINDS.values(), ids=BLINDS)
def test_faults_of_blind_files_are_told_by_line_and_column(tmp_path, content, expected):
    assert read_file(tmp_path, tables.read_blind, content) == expected


def test_every_label_column_is_refused_in_a_blind_file(tmp_path):
    found = read_file(tmp_path, tables.read_blind, GOLD)
    assert found == [(1, column, "unknown-column") for column in read_rows(GOLD)[0][5:]]


RATIONALES = b'scenario_id,rationale\nA-1,Step 2 drops the site.\nA-2,"Sound,\n\nto the end."\nA-3,Step 1 ranks first.\n'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (RATIONALES, []),
        (RATIONALES.replace(b"\n", b"\r\n"), []),
        (replaced(RATIONALES, ("A-3,Step 1 ranks first.\n", "")), [(None, "scenario_id", "missing-rationale")]),
        (replaced(RATIONALES, ("Step 1 ranks first.", " ")), [(6, "rationale", "missing-value")]),
        (replaced(RATIONALES, ("A-3", "A-4")), [(6, "scenario_id", "unknown-scenario"), (None, "scenario_id", "missing-rationale")]),
        (replaced(RATIONALES, ("A-3", "A-1")), [(6, "scenario_id", "duplicate-scenario"), (None, "scenario_id", "missing-rationale")]),
        (replaced(RATIONALES, ("scenario_id,rationale", "rationale,scenario_id")), None),
        (replaced(RATIONALES, (",rationale", ",reason")), [(1, "reason", "unknown-column"), (1, "rationale", "missing-column")]),
    ],
)
def test_rationales_cover_exactly_the_labelled_rows(tmp_path, content, expected):
    found = read_file(tmp_path, tables.read_rationales, content, ["A-1", "A-2", "A-3"])
    if expected is None:
        assert (1, "header", "column-order") in found
    else:
        assert found == expected


# ---------------------------------------------------------------- answers that count as wrong
ANSWER_FAULTS = ["a contradiction", "two problems in a row", "an onset past the end", "a constraint past the last", "a missing scenario"]


@pytest.mark.parametrize("name", ANSWER_FAULTS)
def test_an_invalid_answer_may_count_as_wrong(read, name):
    refused, counted = read(ROWS[name][0]), read(ROWS[name][0], invalid="incorrect")
    assert counted.problems == []
    assert counted.invalid == refused.problems
    assert refused.invalid == []
    assert counted.predictions["RDOD2-025"].state is None
    assert counted.predictions["RDOD2-025"].confidence is None
    assert sorted(counted.predictions) == [f"RDOD2-{number:03d}" for number in range(21, 29)]


@pytest.mark.parametrize(
    "name", ["too narrow", "a quote that closes too early", "a NUL byte", "a row twice", "no id", "a scenario of another file", "bytes of another encoding"]
)
def test_a_file_that_cannot_be_paired_is_refused_even_then(read, name):
    assert places(read(ROWS[name][0], invalid="incorrect").problems) == ROWS[name][1]


def test_a_file_with_faulty_columns_is_refused_even_then(read):
    for content, expected in COLUMNS.values():
        assert len(read(content, invalid="incorrect").problems) == len(expected)


# ---------------------------------------------------------------- whatever comes
@given(st.binary(max_size=200), st.integers(0, len(PREDICTIONS)), st.integers(0, 30))
def test_whatever_the_bytes_a_file_is_read_to_its_end(read, piece, start, length):
    for content in (piece, PREDICTIONS[:start] + piece + PREDICTIONS[start + length :]):
        for problem in read(content).problems:
            assert problem.code
            assert problem.message


@given(st.sampled_from([b'"', b"\n", b"\r", b",", b"\0", b"\xff", b"\\", b"''", "\u2028".encode(), b'",\n"']), st.integers(0, len(GOLD)))
def test_whatever_one_byte_becomes_a_labelled_file_is_read_to_its_end(tmp_path_factory, piece, start):
    path = tmp_path_factory.getbasetemp() / "mutated.csv"
    path.write_bytes(GOLD[:start] + piece + GOLD[start + 1 :])
    _, problems = tables.read_cases(path)
    lines_of_file = len((GOLD[:start] + piece + GOLD[start + 1 :]).splitlines()) + 1
    assert all(problem.line is None or 1 <= problem.line <= lines_of_file for problem in problems)

"""The scorer as people run it: the report, what it refuses, and what it leaves behind when it fails."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from conftest import ROOT
from samples import BOM, FOLDER, GOLD, PREDICTIONS, all_cells, columns, csv_bytes, edited, lines, on_many_lines, on_odd_lines, read_rows, replaced
from test_validate import ASCII, C_LOCALE, HEADER, REFUSED, TWO_FAULTS, VALIDATE, formulas, with_letters

from rdod_metric.rules import text_sha256
from scorer.command import Unable, write_whole

SCORE = "scorer/score.py"
A, B, DIAGNOSTICS = "leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics"
posix = pytest.mark.skipif(os.name != "posix", reason="needs the files and signals of POSIX")


def strict_json(text):
    """Return what JSON says that holds no NaN and no Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def score(command, files):
    """Return a function that scores bytes of gold and predictions and returns the report."""

    def run(gold=GOLD, predictions=PREDICTIONS, *arguments, env=None):
        (files / "gold.csv").write_bytes(gold)
        (files / "predictions.csv").write_bytes(predictions)
        ended = command(SCORE, "gold.csv", "predictions.csv", "--output", "report.json", *arguments, env=env)
        assert (ended.status, ended.err) == (0, "")
        return strict_json((files / "report.json").read_text(encoding="utf-8"))

    return run


@pytest.fixture(scope="module")
def plain_report():
    """Return the report on the sample files as they are."""
    ended = subprocess.run([sys.executable, ROOT / SCORE, FOLDER / "gold.csv", FOLDER / "answers.csv", "--json"], capture_output=True, check=True)
    return strict_json(ended.stdout)


def comparable(report):
    """Return what two reports on the same answers have in common: all but the gold file and its hash, and the order of the table."""
    benchmark = {name: value for name, value in report["benchmark"].items() if name not in ("gold_file", "gold_sha256")}
    return {**report, "benchmark": benchmark, "prediction_table": sorted(report["prediction_table"], key=lambda row: row["scenario_id"])}


def values(report):
    """Return all scores of a report by name."""
    return {name: value for section in (A, B, DIAGNOSTICS) for name, value in report[section].items()}


# ---------------------------------------------------------------- numbers
ANSWERED = {
    # right on 021, 022 and 025; each number worked out by hand from the eight rows
    "n": 8,
    "outcome_mode_macro_f1": (1 / 2 + 4 / 7 + 4 / 5) / 3,
    "exact_onset_accuracy": 4 / 8,
    "mechanism_family_macro_f1": (1 / 2 + 2 / 3 + 2 / 3 + 2 / 3) / 4,
    "repair_outcome_macro_f1": (1 / 2 + 4 / 7 + 4 / 5) / 3,
    "complete_primary_accuracy": 3 / 8,
    "within_one_onset_accuracy": 5 / 8,
    "mean_absolute_onset_error": (0 + 1 + 0 + 0 + 3) / 5,
    "residual_constraint_exact_accuracy": 7 / 8,
    "expected_calibration_error": (2 * 0.05 + 2 * 0.35 + 0.65 + 0.55 + 0.75 + 0.45) / 8,
    "confidence_coverage": 1,
}
UNSURE = {**ANSWERED, "expected_calibration_error": None, "confidence_coverage": 0}
ALL_NO_DRIFT = csv_bytes([HEADER, *([f"RDOD2-{number:03d}", "no_drift", "", "none", "not_applicable", "none", "0.85"] for number in range(21, 29))])
FIVE = (1, 2, 5, 6, 7, 8)  # header, two sound cases and three open failures: no recovered_drift
RIGHT = csv_bytes(
    [
        HEADER,
        *(
            [row[0], row[5], row[6], row[7], row[8], "none" if row[9] == "none" else str(json.loads(row[3]).index(row[9]) + 1), "0.85"]
            for row in read_rows(GOLD)[1:]
        ),
    ]
)
NUMBERS = {
    "the sample": (GOLD, PREDICTIONS, ANSWERED),
    "no column of confidences": (GOLD, columns(PREDICTIONS, *HEADER[:-1]), UNSURE),
    "blank confidences": (GOLD, all_cells(PREDICTIONS, "confidence", lambda cell: ""), UNSURE),
    "all right, one class absent": (
        lines(GOLD, *FIVE),
        lines(RIGHT, *FIVE),
        {**dict.fromkeys(ANSWERED, 1), "n": 5, "mean_absolute_onset_error": 0, "expected_calibration_error": 0.15},
    ),
    "all predicted no_drift": (
        GOLD,
        ALL_NO_DRIFT,
        {
            "outcome_mode_macro_f1": (2 / 5) / 3,
            "mechanism_family_macro_f1": (2 / 5) / 4,
            "repair_outcome_macro_f1": (2 / 5) / 3,
            "exact_onset_accuracy": 2 / 8,
            "component_mean": ((2 / 5) / 3 + (2 / 5) / 4 + (2 / 5) / 3 + 2 / 8) / 4,
            "within_one_onset_accuracy": 2 / 8,
            "mean_absolute_onset_error": None,
            "residual_constraint_exact_accuracy": 5 / 8,
            "complete_primary_accuracy": 2 / 8,
            "expected_calibration_error": 0.6,
            "confidence_coverage": 1,
        },
    ),
    "one onset blank on one side": (
        GOLD,
        edited(
            RIGHT,
            25,
            predicted_outcome_mode="no_drift",
            predicted_first_drift_step="",
            predicted_mechanism_family="none",
            predicted_repair_outcome="not_applicable",
            predicted_residual_constraint_id="none",
        ),
        {
            "mean_absolute_onset_error": 0,
            "exact_onset_accuracy": 7 / 8,
            "within_one_onset_accuracy": 7 / 8,
            "residual_constraint_exact_accuracy": 7 / 8,
            "complete_primary_accuracy": 7 / 8,
            "outcome_mode_macro_f1": (4 / 5 + 1 + 4 / 5) / 3,
            "mechanism_family_macro_f1": (4 / 5 + 2 / 3 + 1 + 1) / 4,
            "repair_outcome_macro_f1": (4 / 5 + 1 + 4 / 5) / 3,
            "expected_calibration_error": 7 / 8 - 0.85,
        },
    ),
}


@pytest.mark.parametrize(("gold", "predictions", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_scores_by_hand(score, gold, predictions, expected):
    report = score(gold, predictions)
    found = {**values(report), "n": report["benchmark"]["n"]}
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name
    assert found["component_mean"] == pytest.approx(sum(found[name] for name in list(ANSWERED)[1:5]) / 4, abs=1e-12)


def test_precision_and_recall_are_not_taken_for_each_other(score):
    table = score()["per_class_metrics"]
    expected = {
        ("outcome_mode", "no_drift"): (1 / 2, 1 / 2, 1 / 2, 2),
        ("outcome_mode", "latent_drift"): (0, 0, 0, 0),
        ("outcome_mode", "recovered_drift"): (2 / 4, 2 / 3, 4 / 7, 3),
        ("outcome_mode", "visible_failure"): (2 / 2, 2 / 3, 4 / 5, 3),
        ("mechanism_family", "proxy_substitution"): (2 / 4, 2 / 2, 2 / 3, 2),
        ("mechanism_family", "scope_collapse"): (1 / 1, 1 / 2, 2 / 3, 2),
        ("repair_outcome", "full_repair"): (2 / 4, 2 / 3, 4 / 7, 3),
        ("repair_outcome", "unrepaired"): (2 / 2, 2 / 3, 4 / 5, 3),
    }
    for (field, label), numbers in expected.items():
        row = table[field][label]
        assert [row[name] for name in ("precision", "recall", "f1", "support")] == pytest.approx(numbers, abs=1e-12)


def test_the_ladder_counts_down_to_complete_cases(score):
    assert list(score()[B]["ladder"].values()) == [5, 3, 3, 3, 3]


# ---------------------------------------------------------------- the same answers, written otherwise
def decimals(content, *names):
    """Return a file in which the whole numbers of these columns are written as decimals."""
    for name in names:
        content = all_cells(content, name, lambda cell: f"{cell}.0" if cell.isdigit() else cell)
    return content


SAME = {
    "decimals": (GOLD, decimals(PREDICTIONS, "predicted_first_drift_step", "predicted_residual_constraint_id")),
    "decimals in gold": (decimals(GOLD, "first_drift_step", "visible_failure_step", "trajectory_length"), PREDICTIONS),
    "a byte-order mark": (GOLD, BOM + PREDICTIONS),
    "a byte-order mark in gold": (BOM + GOLD, PREDICTIONS),
    "CRLF": (GOLD, PREDICTIONS.replace(b"\n", b"\r\n")),
    "CRLF in gold": (GOLD.replace(b"\n", b"\r\n"), PREDICTIONS),
    "doubled line ends": (GOLD, PREDICTIONS.replace(b"\n", b"\r\r\n")),
    "blank lines at the end": (GOLD, PREDICTIONS + b"\n\n\n"),
    "a row of commas": (GOLD, PREDICTIONS + b",,,,,,\n"),
    "a row of blanks": (GOLD, PREDICTIONS + b"   \n"),
    "no last line end": (GOLD, PREDICTIONS[:-1]),
    "blanks in the header": (GOLD, replaced(PREDICTIONS, ("scenario_id,predicted_o", "scenario_id , predicted_o"))),
    "blanks around ids": (GOLD, all_cells(PREDICTIONS, "scenario_id", lambda cell: f" {cell} ")),
    "columns in another order": (GOLD, columns(PREDICTIONS, *reversed(HEADER))),
    "rows in another order": (GOLD, lines(PREDICTIONS, 1, 9, 3, 5, 2, 4, 8, 7, 6)),
    "line breaks in cells of gold": (all_cells(GOLD, "trajectory_json", on_many_lines), PREDICTIONS),
    "other separators of lines in cells of gold": (all_cells(GOLD, "trajectory_json", on_odd_lines), PREDICTIONS),
    "texts of gold like formulas": (formulas(GOLD), PREDICTIONS),
}


@pytest.mark.parametrize(("gold", "predictions"), SAME.values(), ids=SAME)
def test_the_same_answers_score_the_same(score, plain_report, gold, predictions):
    assert comparable(score(gold, predictions)) == comparable(plain_report)


@pytest.mark.parametrize("env", [C_LOCALE, ASCII], ids=["C", "ascii"])
def test_the_same_answers_score_the_same_in_every_locale(score, plain_report, env):
    assert comparable(score(with_letters(GOLD), PREDICTIONS, env=env)) == comparable(plain_report)


def test_the_table_stands_in_gold_order(score):
    backwards = lines(GOLD, 1, *range(9, 1, -1))
    table = score(backwards, PREDICTIONS)["prediction_table"]
    assert [row["scenario_id"] for row in table] == [f"RDOD2-{number:03d}" for number in range(28, 20, -1)]


def test_the_hash_of_gold_survives_other_line_ends(score):
    hashes = {score(content)["benchmark"]["gold_sha256"] for content in (GOLD, GOLD.replace(b"\n", b"\r\n"), BOM + GOLD)}
    assert hashes == {text_sha256(GOLD)}
    assert (
        score(replaced(GOLD, ("0.8333,gradual_constraint_loss,0.9\nRDOD2-027", "0.8333,gradual_constraint_loss,0.8\nRDOD2-027")))["benchmark"]["gold_sha256"]
        not in hashes
    )


# ---------------------------------------------------------------- what is printed
def test_the_printed_report_shows_both_leaderboards_with_everything_beside_them(command, files):
    run = command(SCORE, "gold.csv", "predictions.csv")
    assert (run.status, run.err) == (0, "")
    report = strict_json(command(SCORE, "gold.csv", "predictions.csv", "--json").out)
    printed = [line.split() for line in run.out.splitlines()]
    for section in (A, B, DIAGNOSTICS):
        for name, value in report[section].items():
            if isinstance(value, float):
                assert any(words[:2] == [name, f"{value:.4f}"] for words in printed), name
    for field, table in report["per_class_metrics"].items():
        assert any(words[:1] == [field] for words in printed)
        for label, row in table.items():
            assert [label, str(row["support"]), str(row["predicted"]), *(f"{row[name]:.4f}" for name in ("precision", "recall", "f1"))] in printed
    assert "n = 8" in run.out
    assert [words[-3:] for words in printed if words[-2:] == ["of", "8"]][:5] == [[str(count), "of", "8"] for count in (5, 3, 3, 3, 3)]
    wrong = {words[0]: " ".join(words[1:]) for words in printed if words and words[0].startswith("RDOD2-0")}
    assert list(wrong) == ["RDOD2-023", "RDOD2-024", "RDOD2-026", "RDOD2-027", "RDOD2-028"]
    assert wrong["RDOD2-023"] == "first_drift_step: 3 for 2"
    assert wrong["RDOD2-026"] == "first_drift_step: 2 for 5; mechanism_family: proxy_substitution for scope_collapse"


def test_undefined_scores_are_printed_in_words(command, files):
    (files / "predictions.csv").write_bytes(columns(ALL_NO_DRIFT, *HEADER[:-1]))
    out = command(SCORE, "gold.csv", "predictions.csv").out
    printed = [line.split()[:2] for line in out.splitlines()]
    assert ["mean_absolute_onset_error", "undefined"] in printed
    assert ["expected_calibration_error", "undefined"] in printed
    assert "nan" not in out.lower()


def test_the_printed_json_is_the_written_one(command, files):
    run = command(SCORE, "gold.csv", "predictions.csv", "--json", "--output", "report.json")
    assert run.out.encode() == (files / "report.json").read_bytes()
    assert strict_json(run.out)["prediction_table"]


def test_the_report_is_the_same_from_any_folder(command, files):
    (files / "elsewhere").mkdir()
    here = command(SCORE, "gold.csv", "predictions.csv", "--json")
    there = command(SCORE, "../gold.csv", files / "predictions.csv", "--json", cwd=files / "elsewhere")
    assert here == there


# ---------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("content", "expected"),
    [row[1:3] for row in REFUSED.values() if row[0] == "predictions"],
    ids=[name for name, row in REFUSED.items() if row[0] == "predictions"],
)
def test_what_the_validator_refuses_the_scorer_refuses_alike_and_writes_nothing(command, files, content, expected):
    (files / "predictions.csv").write_bytes(content)
    before = sorted(os.listdir(files))
    run = command(SCORE, "gold.csv", "predictions.csv", "--output", "new/report.json")
    assert run.status == 1
    for printed, (line, column, code) in zip(run.out.splitlines(), expected, strict=True):
        assert printed.startswith(f"predictions.csv:{line}: {column}: " if line else f"predictions.csv: {column}: ")
        assert printed.endswith(f" [{code}]")
    assert sorted(os.listdir(files)) == before


def test_the_findings_of_the_scorer_are_word_for_word_those_of_the_validator(command, files):
    (files / "predictions.csv").write_bytes(TWO_FAULTS)
    refused, found = command(SCORE, "gold.csv", "predictions.csv"), command(VALIDATE, "predictions", "predictions.csv", "--gold", "gold.csv")
    assert refused == found
    assert found.status == 1


def test_gold_with_findings_is_refused(command, files):
    (files / "gold.csv").write_bytes(edited(edited(GOLD, 25, severity="grave"), 28, trajectory_length="5"))
    run = command(SCORE, "gold.csv", "predictions.csv", "--output", "report.json")
    assert run.status == 1
    assert run.out == command(VALIDATE, "labelled", "gold.csv").out
    assert not (files / "report.json").exists()


def test_files_in_the_wrong_order_are_refused(command, files):
    run = command(SCORE, "predictions.csv", "gold.csv", "--output", "report.json")
    assert run.status == 1
    assert "column" in run.out
    assert not (files / "report.json").exists()


def test_a_refused_run_leaves_an_earlier_report_as_it_was(command, files):
    (files / "predictions.csv").write_bytes(TWO_FAULTS)
    (files / "report.json").write_bytes(b'{"of": "another run"}\n')
    assert command(SCORE, "gold.csv", "predictions.csv", "--output", "report.json").status == 1
    assert (files / "report.json").read_bytes() == b'{"of": "another run"}\n'
    assert sorted(os.listdir(files)) == ["blind.csv", "gold.csv", "predictions.csv", "report.json"]


# ---------------------------------------------------------------- answers that count as wrong
def test_invalid_answers_are_counted_wrong_only_when_asked_and_said_so(command, files):
    (files / "predictions.csv").write_bytes(lines(TWO_FAULTS, 1, 2, 3, 4, 5, 6, 7, 9))  # 027 is missing; 025 and 028 are invalid
    run = command(SCORE, "gold.csv", "predictions.csv", "--invalid", "incorrect", "--output", "report.json")
    assert run.status == 0
    said = run.err.splitlines()
    assert [line.split(": ")[:2] for line in said] == [
        ["counted wrong", "predictions.csv:6"],
        ["counted wrong", "predictions.csv:8"],
        ["counted wrong", "predictions.csv"],
    ]
    assert [line.rpartition("[")[2] for line in said] == ["onset-out-of-bounds]", "invalid-label]", "missing-prediction]"]
    assert "invalid predictions, counted wrong on every target: 3" in run.out
    report = strict_json((files / "report.json").read_text(encoding="utf-8"))
    assert (report["benchmark"]["n"], report["benchmark"]["invalid_predictions"]) == (8, 3)
    found = values(report)
    assert found["complete_primary_accuracy"] == 2 / 8
    assert found["confidence_coverage"] == 5 / 8
    assert found["outcome_mode_macro_f1"] == pytest.approx((2 * 1 / 3 + 2 * 2 / 6 + 2 * 1 / 4) / 3, abs=1e-12)


def test_valid_answers_score_the_same_under_either_policy(command, files):
    plain = command(SCORE, "gold.csv", "predictions.csv", "--json")
    assert command(SCORE, "gold.csv", "predictions.csv", "--json", "--invalid", "incorrect") == plain


@pytest.mark.parametrize(
    "content", [PREDICTIONS + lines(PREDICTIONS, 9), replaced(PREDICTIONS, ("RDOD2-028", "RDOD2-029")), b"", PREDICTIONS.replace(b",", b";")]
)
def test_a_file_that_cannot_be_paired_is_refused_under_either_policy(command, files, content):
    (files / "predictions.csv").write_bytes(content)
    run = command(SCORE, "gold.csv", "predictions.csv", "--invalid", "incorrect", "--output", "report.json")
    assert run.status == 1
    assert run.out
    assert not (files / "report.json").exists()


# ---------------------------------------------------------------- the output file
def test_the_folder_of_the_output_is_made_and_nothing_else_is_left(command, files):
    assert command(SCORE, "gold.csv", "predictions.csv", "--output", "new/folder/report.json").status == 0
    assert os.listdir(files / "new/folder") == ["report.json"]
    assert strict_json((files / "new/folder/report.json").read_text(encoding="utf-8"))
    assert (files / "new/folder/report.json").read_bytes().endswith(b"}\n")


def test_scoring_changes_no_input(command, files):
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files.iterdir()}
    command(SCORE, "gold.csv", "predictions.csv", "--output", "results/report.json")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("name", ["gold.csv", "predictions.csv", "../files/gold.csv", "linked.csv"])
def test_an_input_is_never_overwritten_with_the_report(command, files, name):
    if name == "linked.csv":
        (files / name).symlink_to("gold.csv")
    run = command(SCORE, "gold.csv", "predictions.csv", "--output", name.replace("files", files.name))
    assert run.status == 2
    assert "error: " in run.err
    assert (files / "gold.csv").read_bytes() == GOLD
    assert (files / "predictions.csv").read_bytes() == PREDICTIONS


@posix
def test_an_output_that_is_no_file_is_left_what_it_is(command, files):
    os.mkfifo(files / "pipe")
    reader = os.open(files / "pipe", os.O_RDONLY | os.O_NONBLOCK)  # so that nobody who opens it has to wait
    command(SCORE, "gold.csv", "predictions.csv", "--output", "pipe")
    os.close(reader)
    assert stat.S_ISFIFO((files / "pipe").stat().st_mode)
    assert sorted(os.listdir(files)) == ["blind.csv", "gold.csv", "pipe", "predictions.csv"]


@posix
def test_an_output_behind_a_link_is_written_where_the_link_points(command, files):
    (files / "kept").mkdir()
    (files / "report.json").symlink_to("kept/report.json")
    assert command(SCORE, "gold.csv", "predictions.csv", "--output", "report.json").status == 0
    assert (files / "report.json").is_symlink()
    assert strict_json((files / "kept/report.json").read_text(encoding="utf-8"))


@posix
def test_a_new_output_has_the_usual_permissions_and_an_old_one_keeps_its_own(command, files):
    (files / "plain").write_text("")
    command(SCORE, "gold.csv", "predictions.csv", "--output", "report.json")
    assert stat.S_IMODE((files / "report.json").stat().st_mode) == stat.S_IMODE((files / "plain").stat().st_mode)
    (files / "report.json").chmod(0o640)
    command(SCORE, "gold.csv", "predictions.csv", "--output", "report.json")
    assert stat.S_IMODE((files / "report.json").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("gold.csv",),
        ("gold.csv", "nowhere.csv"),
        ("nowhere.csv", "predictions.csv"),
        ("gold.csv", "."),
        ("gold.csv", "predictions.csv", "--output", "gold.csv/report.json"),
        ("gold.csv", "predictions.csv", "--output", "."),
        ("gold.csv", "predictions.csv", "--output", ""),
        ("gold.csv", "predictions.csv", "--output", "x" * 300),
        ("gold.csv", "predictions.csv", "--invalid", "ignore"),
        ("gold.csv", "predictions.csv", "--ouptut", "report.json"),
    ],
    ids=lambda arguments: " ".join(arguments)[:60] or "nothing",
)
def test_what_cannot_be_done_ends_with_status_2_and_a_sentence(command, files, arguments):
    before = sorted(os.listdir(files))
    run = command(SCORE, *arguments)
    assert run.status == 2
    assert run.out == ""
    assert "error: " in run.err
    assert sorted(os.listdir(files)) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc, which nobody can write to")
def test_a_folder_that_cannot_be_written_ends_with_status_2(command, files):
    run = command(SCORE, "gold.csv", "predictions.csv", "--output", "/proc/rdod/report.json")
    assert run.status == 2
    assert run.err.startswith("error: can't write /proc/rdod/report.json: ")


def test_a_text_that_cannot_be_encoded_leaves_the_earlier_file_whole(tmp_path):
    (tmp_path / "report.json").write_text("earlier", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "report.json", "x" * 100_000 + "\ud800")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == "earlier"
    assert os.listdir(tmp_path) == ["report.json"]


def test_an_interruption_before_the_last_moment_leaves_the_earlier_file_whole(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    (tmp_path / "report.json").write_text("earlier", encoding="utf-8")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report.json", "later")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == "earlier"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_file_in_the_place_of_a_folder_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Unable, match="can't write .*report.json: "):
        write_whole(tmp_path / "file/report.json", "text")


# ---------------------------------------------------------------- interruptions
def started(files, *arguments, **options):
    """Return the running scorer."""
    return subprocess.Popen([sys.executable, ROOT / SCORE, *arguments], cwd=files, stderr=subprocess.PIPE, text=True, **options)


def writing_end(pipe, process):
    """Return the writing end of a named pipe, as soon as a process reads from it."""
    while process.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody has opened it yet
            time.sleep(0.01)
    raise AssertionError(process.communicate())


@posix
def test_an_interrupted_run_leaves_nothing_behind_and_says_so(files):
    os.mkfifo(files / "slow.csv")
    (files / "report.json").write_bytes(b"earlier")
    process = started(files, "gold.csv", "slow.csv", "--output", "report.json", stdout=subprocess.PIPE)
    slow = writing_end(files / "slow.csv", process)
    os.write(slow, PREDICTIONS[:200])
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(slow)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert (files / "report.json").read_bytes() == b"earlier"
    assert sorted(os.listdir(files)) == ["blind.csv", "gold.csv", "predictions.csv", "report.json", "slow.csv"]


@posix
def test_a_reader_who_goes_away_gets_no_traceback_and_the_file_is_whole(files):
    process = started(files, "gold.csv", "predictions.csv", "--output", "report.json", stdout=subprocess.PIPE)
    process.stdout.close()  # long before the report is printed
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert strict_json((files / "report.json").read_text(encoding="utf-8"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_full_disk_behind_the_output_ends_with_status_2(files):
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = started(files, "gold.csv", "predictions.csv", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.startswith("error: ")
    assert "Traceback" not in err


@posix
def test_closed_outputs_get_no_traceback(files):
    def close():
        with contextlib.suppress(OSError):
            os.close(1)

    process = started(files, "gold.csv", "predictions.csv", "--output", "report.json", preexec_fn=close)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert strict_json((files / "report.json").read_text(encoding="utf-8"))

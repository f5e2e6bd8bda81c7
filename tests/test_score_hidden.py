"""`score.py --hidden`: what it prints and writes holds no label, whatever is wrong."""

import json
from pathlib import Path

import pytest
from conftest import Command
from samples import GOLD, PREDICTIONS
from test_hidden import BAD, FREE_TEXT, broken_golds, marked, relabelled


@pytest.fixture
def hidden(files: Path, command: Command):
    """Return a function that scores a prediction file on the private gold and returns all that came of it."""
    (files / "gold.csv").write_bytes(marked(GOLD))

    def score(predictions: bytes = PREDICTIONS, *options: str):
        (files / "p.csv").write_bytes(predictions)
        run = command("scorer/score.py", "gold.csv", "p.csv", "--hidden", "--output", "report.json", *options)
        written = (files / "report.json").read_text() if (files / "report.json").exists() else ""
        return run, written

    return score


def holds_a_label(text: str) -> bool:
    return "secret-" in text or any(word in text for word in (*FREE_TEXT, "gold_outcome_mode", "gold_first_drift_step", "first_drift_step_correct"))


@pytest.mark.parametrize("options", [(), ("--json",), ("--ci", "--resamples", "100"), ("--json", "--ci", "--resamples", "100")])
def test_scores_and_supports_are_told_and_nothing_else(hidden, options: tuple[str, ...]) -> None:
    run, written = hidden(PREDICTIONS, *options)
    assert (run.status, run.err) == (0, "")
    assert not holds_a_label(run.out + written) and "RDOD2-0" not in run.out + written
    report = json.loads(written)
    assert report["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"] == 3 / 8
    assert report["prediction_table"] == [] and report["per_class_metrics"] == {}
    if "--json" not in options:
        assert "gold hidden (sha256 " in run.out and "Class support" in run.out and "Cases not completely right" not in run.out


@pytest.mark.parametrize("content", BAD)
@pytest.mark.parametrize("policy", ["error", "incorrect"])
def test_findings_are_the_same_whatever_the_labels_are(hidden, files: Path, content: bytes, policy: str) -> None:
    run, written = hidden(content, "--invalid", policy)
    said = run.out + run.err
    assert not holds_a_label(said + written)
    (files / "gold.csv").write_bytes(relabelled(GOLD))
    other, _ = hidden(content, "--invalid", policy)
    if run.status == 1:
        assert (other.status, other.out, other.err) == (run.status, run.out, run.err)
    else:
        assert other.err == run.err and "counted wrong: p.csv:" in run.err


@pytest.mark.parametrize("content", list(broken_golds()))
def test_broken_gold_is_not_quoted(hidden, files: Path, content: bytes) -> None:
    (files / "gold.csv").write_bytes(content)
    run, written = hidden()
    assert run.status == 2 and run.err.startswith("error: the hidden gold file") and not run.out and not written
    assert not holds_a_label(run.err)


@pytest.mark.parametrize("option", [("--html", "r.html"), ("--by", "domain"), ("--table",)])
def test_what_tells_of_single_cases_is_refused(hidden, option: tuple[str, ...]) -> None:
    run, written = hidden(PREDICTIONS, *option)
    assert run.status == 2 and "leave out --html, --by and --table" in run.err and not written

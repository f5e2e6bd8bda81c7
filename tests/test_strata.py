"""Accuracies by stratum: the strata by hand, their scores against reports of their cases alone."""

import json

import pytest
from samples import GOLD, PREDICTIONS, csv_bytes, edited, read_rows
from statsmodels.stats.proportion import proportion_confint
from test_scoring import NO_DRIFT, OPEN, SILENT, pair

from rdod_metric import scoring
from scorer import strata


@pytest.mark.parametrize(("steps", "name"), [(1, "short"), (3, "short"), (4, "short"), (5, "medium"), (7, "medium"), (8, "long"), (12, "long"), (99, "long")])
def test_lengths(steps, name):
    assert strata.length_class(steps) == name


@pytest.mark.parametrize(
    ("steps", "thirds"),
    [
        (3, ["early", "middle", "late"]),
        (4, ["early", "middle", "late", "late"]),
        (5, ["early", "middle", "middle", "late", "late"]),
        (6, ["early", "early", "middle", "middle", "late", "late"]),
        (7, ["early", "early", "middle", "middle", "late", "late", "late"]),
    ],
)
def test_thirds(steps, thirds):
    assert [strata.onset_third(onset, steps) for onset in range(1, steps + 1)] == thirds
    assert strata.onset_third(None, steps) == "no onset"


def test_scores_are_those_of_the_cases_alone():
    gold, predicted = [NO_DRIFT, OPEN, OPEN, SILENT, SILENT], [NO_DRIFT, OPEN, SILENT, SILENT._replace(first_drift_step=1), OPEN]
    cases, answers = pair(gold, predicted)
    labels = ["b", "a", "b", "a", "a"]
    scores = strata.stratum_scores("domain", scoring.encode(cases, answers), labels, 0.9)
    assert list(scores) == ["a", "b"]
    for stratum, row in scores.items():
        part = [case for case, label in zip(cases, labels, strict=True) if label == stratum]
        report = scoring.score(part, answers)
        n = row["n"]
        assert n == len(part) and row["too_small"]
        expected = {
            "complete_primary_accuracy": report["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"],
            "exact_onset_accuracy": report["leaderboard_a_component_capability"]["exact_onset_accuracy"],
            "outcome_accuracy": sum(case.state.outcome_mode == answers[case.scenario_id].state.outcome_mode for case in part) / n,
        }
        for name, share in expected.items():
            low, high = proportion_confint(round(share * n), n, alpha=0.1, method="wilson")
            assert row[name] == pytest.approx({"value": share, "low": low, "high": high}, abs=1e-9)


def test_a_stratum_is_small_where_its_interval_can_span_half_of_the_scale():
    cases, answers = pair([OPEN] * 23, [OPEN] * 23)
    scores = strata.stratum_scores("domain", scoring.encode(cases, answers), ["a"] * 11 + ["b"] * 12)
    assert (scores["a"]["too_small"], scores["b"]["too_small"]) == (True, False)
    low, high = scoring.wilson_interval(0.5, 11)
    assert high - low > 0.5
    low, high = scoring.wilson_interval(0.5, 12)
    assert high - low < 0.5


STRATA_OF_THE_SAMPLE = {
    "length": {"medium": 8},
    "onset": {"early": 1, "middle": 3, "late": 2, "no onset": 2},
    "domain": dict.fromkeys(sorted(row[1] for row in read_rows(GOLD)[1:]), 1),
    "structure": {"gradual_constraint_loss": 6, "stable_multi_source_integration": 2},
    "correction_source": {"external_intervention": 1, "mixed": 1, "not_applicable": 5, "self_correction": 1},
    "severity": {"none": 2, "medium": 6},
}


@pytest.mark.parametrize("by", STRATA_OF_THE_SAMPLE)
def test_every_way_to_group_covers_every_case(files, command, by):
    report = json.loads(command("scorer/score.py", "gold.csv", "predictions.csv", "--by", by, "--json").out)
    assert {name: row["n"] for name, row in report["strata"][by].items()} == STRATA_OF_THE_SAMPLE[by]
    assert list(report["strata"][by]) == list(STRATA_OF_THE_SAMPLE[by])
    right = sum(row["n"] * row["complete_primary_accuracy"]["value"] for row in report["strata"][by].values())
    assert right == pytest.approx(3)
    plain = json.loads(command("scorer/score.py", "gold.csv", "predictions.csv", "--json").out)
    assert {**report, "strata": None} == {**plain, "strata": None}


def test_several_groupings_and_how_they_are_printed(files, command):
    run = command("scorer/score.py", "gold.csv", "predictions.csv", "--by", "severity", "--by", "onset", "--ci", "--resamples", 50, "--level", 0.5)
    assert run.status == 0
    assert run.out.index("Accuracies by severity") < run.out.index("Accuracies by onset")
    [line] = [line for line in run.out.splitlines() if line.startswith("  late")]
    low, high = proportion_confint(1, 2, alpha=0.5, method="wilson")
    assert line.split()[:5] == ["late", "2", "0.0000", "[0.000,", f"{proportion_confint(0, 2, alpha=0.5, method='wilson')[1]:.3f}]"]
    assert line.endswith(f"0.5000 [{low:.3f}, {high:.3f}]  too small to read")
    assert "below 12 cases a stratum is too small to read" in run.out


def test_a_stratum_that_is_large_enough_is_not_called_small(files, command):
    header, *rows = read_rows(GOLD)
    first, *answers = read_rows(PREDICTIONS)
    (files / "gold.csv").write_bytes(csv_bytes([header, *([f"{row[0]}-{copy}", *row[1:]] for copy in range(2) for row in rows)]))
    (files / "predictions.csv").write_bytes(csv_bytes([first, *([f"{row[0]}-{copy}", *row[1:]] for copy in range(2) for row in answers)]))
    run = command("scorer/score.py", "gold.csv", "predictions.csv", "--by", "length")
    assert run.status == 0 and "too small" not in run.out


def test_an_unknown_grouping_and_a_bad_gold_file(files, command):
    assert command("scorer/score.py", "gold.csv", "predictions.csv", "--by", "weather").status == 2
    (files / "gold.csv").write_bytes(edited(GOLD, 23, severity="grave"))
    run = command("scorer/score.py", "gold.csv", "predictions.csv", "--by", "severity")
    assert run.status == 1 and "gold.csv:4: severity:" in run.out

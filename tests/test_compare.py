"""Comparison of systems, against statsmodels, SciPy and cases worked out by hand."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GOLD, PREDICTIONS, columns, edited
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from test_scoring import NO_DRIFT, OPEN, REPAIRED, SILENT, pair

from rdod_metric import scoring
from rdod_metric.rules import Gold, Prediction
from rdod_metric.scoring import Resampling
from scorer import compare
from scorer.command import Unable

STATES = [NO_DRIFT, OPEN, SILENT, REPAIRED]


def systems_of(gold, **answers):
    """Return gold records and systems that answer them with these states."""
    cases, _ = pair(gold, gold)
    return cases, [compare.new_system(name, cases, pair(gold, predicted)[1]) for name, predicted in answers.items()]


def noisy(gold, accuracy, seed):
    chance = random.Random(seed)
    return [state if chance.random() < accuracy else chance.choice(STATES) for state in gold]


# ---------------------------------------------------------------- tests
@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_that_of_statsmodels(first, second):
    expected = mcnemar([[3, first], [second, 5]], exact=True).pvalue if first + second else 1.0
    assert compare.mcnemar_p(first, second) == pytest.approx(expected, rel=1e-9)
    assert compare.mcnemar_p(first, second) == compare.mcnemar_p(second, first) <= 1


def test_mcnemar_of_a_million_cases():
    assert compare.mcnemar_p(500_000, 500_000) == 1
    assert compare.mcnemar_p(499_000, 501_000) == pytest.approx(2 * stats.norm.sf(1999 / 1000), rel=1e-3)  # with continuity correction


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p_values):
    assert compare.holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]), abs=1e-12)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([1.0] * 99, 0.02),
        ([-1.0] * 99, 0.02),
        ([0.0] * 99, 1),
        ([1.0] * 90 + [-1.0] * 9, 0.2),
        ([1.0] * 90 + [0.0] * 9, 0.2),
        ([1.0] * 90 + [-1.0] * 9 + [np.nan] * 500, 0.2),
    ],
)
def test_a_bootstrap_p_value_counts_the_smaller_tail_twice(differences, expected):
    assert compare.bootstrap_p(np.array(differences)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "apart", "groups"),
    [
        ([0.5], [], [[0]]),
        ([0.2, 0.9], [], [[1, 0]]),
        ([0.2, 0.9], [(0, 1)], [[1], [0]]),
        ([0.9, 0.5, 0.1], [(0, 1), (0, 2), (1, 2)], [[0], [1], [2]]),
        ([0.9, 0.5, 0.1], [(0, 2), (1, 2)], [[0, 1], [2]]),
        ([0.9, 0.5, 0.1], [(0, 2)], [[0, 1, 2]]),  # neither neighbour is apart: a chain of ties is one group
        ([0.9, 0.5, 0.1], [(0, 1), (0, 2)], [[0], [1, 2]]),
        ([None, 0.5, 0.1], [(0, 1), (0, 2)], [[1, 2], [0]]),
        ([None, 0.5, 0.1], [(0, 1), (0, 2), (1, 2)], [[1], [2], [0]]),
        ([0.5, 0.5, 0.5], [], [[0, 1, 2]]),
    ],
)
def test_tie_groups(scores, apart, groups):
    assert compare.tie_groups(scores, lambda a, b: (min(a, b), max(a, b)) in apart) == groups


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_systems_of_different_groups_always_differ(scores, chance):
    pairs = {pair: chance.random() < 0.8 for pair in itertools.combinations(range(len(scores)), 2)}
    groups = compare.tie_groups(scores, lambda a, b: pairs[min(a, b), max(a, b)])
    assert sorted(place for group in groups for place in group) == list(range(len(scores)))
    for better, worse in itertools.combinations(groups, 2):
        assert all(pairs[min(a, b), max(a, b)] and scores[a] >= scores[b] for a in better for b in worse)


# ---------------------------------------------------------------- pairs
GOLD_STATES = [random.Random(0).choice(STATES) for _ in range(60)]


def test_a_system_does_not_differ_from_itself():
    cases, systems = systems_of(GOLD_STATES, one=noisy(GOLD_STATES, 0.5, 1), two=noisy(GOLD_STATES, 0.5, 1))
    [comparison] = compare.compare(systems, cases, Resampling(resamples=200))
    report = compare.comparison_report(systems, cases, [comparison], Resampling(resamples=200))
    [found] = report["pairs"]
    assert all(row["difference"] in (0, None) and row["low"] in (0, None) and row["high"] in (0, None) for row in found["differences"].values())
    assert all(row["p_value"] == 1 and not row["first_only"] and not row["second_only"] for row in found["mcnemar"].values())
    assert report["tie_groups"] == {"component_mean": [["one", "two"]], "complete_primary_accuracy": [["one", "two"]]}


def test_a_clear_difference_is_one():
    cases, systems = systems_of(GOLD_STATES, weak=noisy(GOLD_STATES, 0.1, 1), strong=GOLD_STATES)
    comparisons = compare.compare(systems, cases, Resampling(resamples=500))
    report = compare.comparison_report(systems, cases, comparisons, Resampling(resamples=500))
    differences = report["pairs"][0]["differences"]
    assert differences["component_mean"]["high"] < 0 and differences["complete_primary_accuracy"]["high"] < 0
    assert report["tie_groups"] == {"component_mean": [["strong"], ["weak"]], "complete_primary_accuracy": [["strong"], ["weak"]]}


def test_differences_are_paired():
    cases, systems = systems_of(GOLD_STATES, one=noisy(GOLD_STATES, 0.6, 1), two=noisy(GOLD_STATES, 0.7, 2))
    resampling = Resampling(resamples=20_000)
    [comparison] = compare.compare(systems, cases, resampling)
    counts = [scoring.case_counts(system.answers) for system in systems]
    for name in ("component_mean", "complete_primary_accuracy", "repair_outcome_macro_f1"):

        def statistic(draw, axis=-1, name=name):
            one, two = (scoring.aggregate(values[draw].sum(axis=axis - 1 if axis < 0 else axis))[name] for values in counts)
            return one - two

        reference = stats.bootstrap((np.arange(60),), statistic, n_resamples=20_000, method="percentile", rng=3, batch=1000).confidence_interval
        got = scoring.percentile_interval(comparison.differences[name], 0.95)
        assert tuple(got) == pytest.approx((reference.low, reference.high), abs=0.015)  # two draws of 20,000
        alone = [scoring.percentile_interval(values[name], 0.95) for values in scoring.resample(counts, resampling)]
        assert got.high - got.low < sum(interval.high - interval.low for interval in alone)


def test_discordant_cases_are_named():
    gold = [OPEN, OPEN, SILENT, NO_DRIFT]
    cases, systems = systems_of(gold, one=[OPEN, NO_DRIFT, SILENT, OPEN], two=[OPEN._replace(first_drift_step=1), OPEN, NO_DRIFT, NO_DRIFT])
    resampling = Resampling(resamples=20)
    report = compare.comparison_report(systems, cases, compare.compare(systems, cases, resampling), resampling)
    tests = report["pairs"][0]["mcnemar"]
    assert list(tests) == ["complete_primary", "outcome_mode", "first_drift_step", "mechanism_family", "repair_outcome", "residual_constraint_id"]
    named = {test: (row["first_only"], row["second_only"]) for test, row in tests.items()}
    assert named["complete_primary"] == (["case-0", "case-2"], ["case-1", "case-3"])
    assert named["outcome_mode"] == (["case-2"], ["case-1", "case-3"])
    assert named["first_drift_step"] == (["case-0", "case-2"], ["case-1", "case-3"])
    assert tests["outcome_mode"]["p_value"] == mcnemar([[1, 1], [2, 0]], exact=True).pvalue
    json.dumps(report, allow_nan=False)


def test_p_values_of_many_pairs_are_corrected():
    cases, systems = systems_of(GOLD_STATES, **{f"s{k}": noisy(GOLD_STATES, accuracy, k) for k, accuracy in enumerate((0.9, 0.6, 0.55, 0.2))})
    resampling = Resampling(resamples=300)
    report = compare.comparison_report(systems, cases, compare.compare(systems, cases, resampling), resampling)
    for test in ("complete_primary", "repair_outcome"):
        rows = [found["mcnemar"][test] for found in report["pairs"]]
        expected = multipletests([row["p_value"] for row in rows], method="holm")[1]
        assert [row["holm_p_value"] for row in rows] == pytest.approx(list(expected))
        assert any(row["holm_p_value"] > row["p_value"] for row in rows)
    assert [(found["first"], found["second"]) for found in report["pairs"]] == list(itertools.combinations(("s0", "s1", "s2", "s3"), 2))
    assert [name for group in report["tie_groups"]["complete_primary_accuracy"] for name in group][0] == "s0"


def test_whole_families_are_resampled_in_pairs():
    cases = [Gold(f"RDOD3-{k:03d}{letter}", OPEN) for k in range(5) for letter in "ab"]
    answers = [{case.scenario_id: Prediction(case.scenario_id, OPEN if k % 3 else NO_DRIFT) for k, case in enumerate(cases, shift)} for shift in (0, 1)]
    systems = [compare.new_system(str(k), cases, predictions) for k, predictions in enumerate(answers)]
    report = compare.comparison_report(systems, cases, compare.compare(systems, cases, Resampling(50)), Resampling(50))
    assert (report["resampling"]["unit"], report["resampling"]["units"]) == ("contrast family", 5)
    assert any("McNemar's test takes the cases of a family as independent" in note for note in compare.blocks(report)[0].notes)


# ---------------------------------------------------------------- names
def test_names_are_as_short_as_they_can_be(tmp_path):
    paths = [tmp_path / "a/x.csv", tmp_path / "b/x.csv", tmp_path / "b/y.csv", tmp_path / "c/b/x.csv"]
    assert compare.distinct_names(paths)[2] == "y"
    assert compare.distinct_names(paths) == ["a/x", f"{tmp_path.name}/b/x", "y", "c/b/x"]
    assert compare.distinct_names([Path("a\nb\x1b[31m.csv")]) == ["a\\nb\\x1b[31m"]
    with pytest.raises(Unable, match="more than once"):
        compare.distinct_names([tmp_path / "a.csv", tmp_path / "../" / tmp_path.name / "a.csv"])


# ---------------------------------------------------------------- the command
@pytest.fixture
def three(files):
    """Return the sample folder with the prediction files better.csv and blank.csv besides."""
    (files / "better.csv").write_bytes(edited(PREDICTIONS, 23, predicted_first_drift_step="2"))
    (files / "blank.csv").write_bytes(columns(PREDICTIONS, *PREDICTIONS.decode().splitlines()[0].split(",")[:-1]))
    return files


def test_the_command_in_three_formats(three, command):
    arguments = ("scorer/compare.py", "gold.csv", "predictions.csv", "better.csv", "blank.csv", "--resamples", 200)
    report = json.loads(command(*arguments, "--format", "json").out)
    assert report["signature"].endswith("n=8 resamples=200 seed=0 level=0.95")
    assert report["benchmark"]["gold_file"] == "gold.csv"
    [first, second, third] = report["pairs"]
    assert first["mcnemar"]["complete_primary"]["second_only"] == ["RDOD2-023"]
    assert first["differences"]["complete_primary_accuracy"]["difference"] == -0.125
    assert second["differences"]["confidence_coverage"] == {"difference": 1.0, "low": 1.0, "high": 1.0, "undefined_resamples": 0}
    assert second["differences"]["expected_calibration_error"] == {"difference": None, "low": None, "high": None, "undefined_resamples": 200}
    text, markdown = (command(*arguments, *form) for form in ((), ("--format", "markdown")))
    assert text.status == markdown.status == 0
    for run in (text, markdown):
        assert "complete_primary, better alone: RDOD2-023" in run.out
        assert "better = predictions = blank" in run.out
        assert "after Holm's correction" in run.out
    header = "| system | component_mean | outcome_mode_macro_f1 | exact_onset_accuracy | mechanism_family_macro_f1 | repair_outcome_macro_f1 "
    assert header in markdown.out


def test_two_systems_need_no_correction(three, command):
    run = command("scorer/compare.py", "gold.csv", "predictions.csv", "better.csv", "--resamples", 50)
    assert run.status == 0 and "Holm" not in run.out


def test_names_can_not_break_a_table(three, command):
    (three / "a|b <i>*x*.csv").write_bytes(PREDICTIONS)
    run = command("scorer/compare.py", "gold.csv", "a|b <i>*x*.csv", "better.csv", "--format", "markdown", "--resamples", 20)
    assert r"| a\|b &lt;i&gt;\*x\* | " in run.out


def test_the_findings_of_all_files_come_at_once(three, command):
    (three / "bad.csv").write_bytes(edited(PREDICTIONS, 21, predicted_outcome_mode="fine"))
    (three / "worse.csv").write_bytes(edited(PREDICTIONS, 28, predicted_first_drift_step="9"))
    run = command("scorer/compare.py", "gold.csv", "bad.csv", "better.csv", "worse.csv")
    assert run.status == 1
    assert "bad.csv:2: predicted_outcome_mode:" in run.out and "worse.csv:9: predicted_first_drift_step:" in run.out
    run = command("scorer/compare.py", "gold.csv", "bad.csv", "better.csv", "--invalid", "incorrect", "--resamples", 20)
    assert run.status == 0 and run.err.startswith("counted wrong: bad.csv:2: predicted_outcome_mode:")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gold.csv", "predictions.csv"], "two prediction files or more"),
        (["gold.csv", "predictions.csv", "predictions.csv"], "more than once"),
        (["gold.csv", "predictions.csv", "nowhere.csv"], "no such file: nowhere.csv"),
        (["gold.csv", "predictions.csv", "better.csv", "--resamples", "0"], "--resamples"),
        (["gold.csv", "predictions.csv", "better.csv", "--seed", "-4"], "--seed"),
    ],
)
def test_what_the_command_can_not_do(three, command, arguments, words):
    run = command("scorer/compare.py", *arguments)
    assert run.status == 2 and words in run.err and not run.out


def test_bad_gold_is_refused_once(three, command):
    (three / "gold.csv").write_bytes(edited(GOLD, 24, severity="grave"))
    run = command("scorer/compare.py", "gold.csv", "predictions.csv", "better.csv")
    assert run.status == 1 and run.out.count("severity") == 1

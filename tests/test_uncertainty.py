"""Intervals, the resolution floor and the off-by-one detector, against statsmodels, SciPy and plain repetition."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from samples import all_cells, csv_bytes, read_rows
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint
from test_scoring import NO_DRIFT, OPEN, REPAIRED, SILENT, pair, random_answers

from rdod_metric import scoring
from rdod_metric.rules import Gold, Prediction, contrast_family
from rdod_metric.scoring import AGGREGATES, Resampling


def resampled(gold, answers, resampling):
    """Return the resampled aggregates of one system."""
    units, number = scoring.resampling_units(gold)
    [values] = scoring.resample([scoring.unit_counts(scoring.encode(gold, answers), units, number)], resampling)
    return values


def aggregates(gold, answers):
    """Return all aggregates of a report by name."""
    report = scoring.score(gold, answers, table=False)
    sections = ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics")
    return {name: report[section][name] for section in sections for name in AGGREGATES if name in report[section]}


def drawn_again(gold, answers, unit_of, draw):
    """Return gold and answers of the units in a draw, each under a new id."""
    names = sorted({unit_of(case.scenario_id) for case in gold})
    cases, again = [], {}
    for place, unit in enumerate(draw):
        for case in gold:
            if unit_of(case.scenario_id) == names[unit]:
                name = f"{place}/{case.scenario_id}"
                cases.append(case._replace(scenario_id=name))
                again[name] = answers[case.scenario_id]._replace(scenario_id=name)
    return cases, again


# ---------------------------------------------------------------- the bootstrap
@pytest.mark.parametrize("seed", range(12))
def test_every_resample_is_scored_as_a_report_of_its_cases(seed):
    gold, answers = pair(*random_answers(seed))
    values = resampled(gold, answers, Resampling(resamples=7, seed=seed))
    draws = np.random.default_rng(seed).integers(len(gold), size=(7, len(gold)))
    for place, draw in enumerate(draws):
        for name, expected in aggregates(*drawn_again(gold, answers, str, draw)).items():
            got = values[name][place]
            assert np.isnan(got) if expected is None else got == pytest.approx(expected, abs=1e-12), name


def test_whole_contrast_families_are_resampled():
    states = [NO_DRIFT, OPEN, SILENT, REPAIRED, OPEN, NO_DRIFT, SILENT]
    names = ["RDOD3-001a", "RDOD3-002a", "RDOD3-001b", "RDOD3-003a", "RDOD3-002b", "RDOD3-002c", "RDOD2-009"]
    gold = [Gold(name, state) for name, state in zip(names, states, strict=True)]
    answers = {name: Prediction(name, OPEN if place % 2 else state) for place, (name, state) in enumerate(zip(names, states, strict=True))}
    report = scoring.score(gold, answers, resampling=Resampling(resamples=50))
    assert report["resampling"] == {
        "method": "percentile bootstrap of whole contrast families",
        "unit": "contrast family",
        "units": 4,
        "resamples": 50,
        "seed": 0,
        "level": 0.95,
    }
    values = resampled(gold, answers, Resampling(resamples=50))
    for place, draw in enumerate(np.random.default_rng(0).integers(4, size=(50, 4))):
        expected = aggregates(*drawn_again(gold, answers, lambda name: contrast_family(name) or name, draw))
        for name in ("component_mean", "complete_primary_accuracy", "within_one_onset_accuracy"):
            assert values[name][place] == pytest.approx(expected[name], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("RDOD3-017b", "RDOD3-017"),
        ("RDOD3-060f", "RDOD3-060"),
        ("RDOD2-017", None),
        ("RDOD3-017", None),
        ("RDOD3-017B", None),
        ("RDOD3-017ab", None),
        ("case-017b", None),
        ("", None),
    ],
)
def test_a_family_is_named_by_the_id(name, family):
    assert contrast_family(name) == family


def test_the_same_seed_draws_the_same_intervals_and_0_is_a_seed():
    gold, answers = pair(*random_answers(7))
    default, zero, one = (scoring.score(gold, answers, resampling=Resampling(resamples=400, **seed))["intervals"] for seed in ({}, {"seed": 0}, {"seed": 1}))
    assert default == zero != one


def test_the_work_packages_do_not_show(monkeypatch):
    gold, answers = pair(*random_answers(11))
    whole = resampled(gold, answers, Resampling(resamples=300))
    monkeypatch.setattr(scoring, "_RESAMPLES", 7)
    pieces = resampled(gold, answers, Resampling(resamples=300))
    for name in AGGREGATES:
        np.testing.assert_allclose(whole[name], pieces[name], rtol=0, atol=1e-12)


def test_the_order_of_the_cases_does_not_show():
    gold, answers = pair(*random_answers(11))
    shuffled = random.Random(0).sample(gold, len(gold))
    resampling = Resampling(resamples=300)
    forward, back = (scoring.score(cases, answers, resampling=resampling)["intervals"] for cases in (gold, shuffled))
    for name in AGGREGATES:
        assert forward[name] == pytest.approx(back[name], abs=1e-12)


def test_intervals_are_the_percentile_intervals_of_scipy():
    chance = random.Random(1)
    states = [NO_DRIFT, OPEN, SILENT, REPAIRED]
    gold, answers = pair(truth := [chance.choice(states) for _ in range(40)], [state if chance.random() < 0.6 else chance.choice(states) for state in truth])
    counts = scoring.case_counts(scoring.encode(gold, answers))
    intervals = scoring.score(gold, answers, resampling=Resampling(resamples=20_000, level=0.9))["intervals"]
    for name in ("component_mean", "mechanism_family_macro_f1", "complete_primary_accuracy", "no_drift_case_accuracy"):

        def statistic(cases, axis=-1, name=name):
            return scoring.aggregate(counts[cases].sum(axis=axis - 1 if axis < 0 else axis))[name]

        reference = stats.bootstrap((np.arange(40),), statistic, n_resamples=20_000, confidence_level=0.9, method="percentile", rng=5, batch=1000)
        # two draws of 20,000 resamples: a bound varies by some 0.003
        assert (intervals[name]["low"], intervals[name]["high"]) == pytest.approx(tuple(reference.confidence_interval), abs=0.015), name


def test_a_resample_without_a_score_is_counted_and_left_out():
    gold, answers = pair([NO_DRIFT, OPEN], [NO_DRIFT, OPEN])
    report = scoring.score(gold, answers, resampling=Resampling(resamples=4000))
    error, calibration = report["intervals"]["mean_absolute_onset_error"], report["intervals"]["expected_calibration_error"]
    assert 850 < error.pop("undefined_resamples") < 1150  # both draws fall on the case without an onset: one in four
    assert error == {"low": 0.0, "high": 0.0}
    assert calibration == {"low": None, "high": None, "undefined_resamples": 4000}
    json.dumps(report, allow_nan=False)


def test_a_certain_score_has_an_interval_of_no_width():
    report = scoring.score(*pair([OPEN] * 9, [OPEN] * 9, [1.0] * 9), resampling=Resampling(resamples=200))
    assert report["intervals"]["component_mean"] == {"low": 1.0, "high": 1.0, "undefined_resamples": 0}
    assert report["intervals"]["expected_calibration_error"]["high"] == 0


def test_every_aggregate_has_an_interval_and_without_request_there_is_none():
    gold, answers = pair(*random_answers(3))
    assert tuple(scoring.score(gold, answers, resampling=Resampling(resamples=20))["intervals"]) == AGGREGATES
    plain = scoring.score(gold, answers)
    assert "intervals" not in plain and "resampling" not in plain


def test_ten_thousand_cases_take_bounded_memory():
    script = """
import random, resource, sys
sys.path.insert(0, "tests")
from test_scoring import random_state
from rdod_metric.rules import Gold, Prediction
from rdod_metric.scoring import Resampling, score
chance = random.Random(0)
gold = [Gold(f"{k}", random_state(chance, 9)) for k in range(10_000)]
answers = {case.scenario_id: Prediction(case.scenario_id, case.state if chance.random() < 0.5 else random_state(chance, 9), chance.random()) for case in gold}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
score(gold, answers, table=False, resampling=Resampling(resamples=500))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // (1024 if sys.platform != "darwin" else 1 << 20))
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 150  # megabytes beside the imports and the cases


# ---------------------------------------------------------------- Wilson and the floor
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, 0.999999])
def test_wilson_intervals_are_those_of_statsmodels(level):
    for n in (1, 2, 8, 12, 60, 1000, 10**6):
        for right in {0, 1, n // 3, n // 2, n - 1, n}:
            expected = proportion_confint(right, n, alpha=1 - level, method="wilson")
            assert tuple(scoring.wilson_interval(right / n, n, level)) == pytest.approx(expected, abs=1e-9)


def test_a_wilson_interval_stays_on_the_scale():
    assert scoring.wilson_interval(0, 3).low == 0
    assert scoring.wilson_interval(1, 3).high == 1


@pytest.mark.parametrize("n", range(1, 41))
def test_the_floor_is_the_smallest_difference_that_any_pair_of_systems_can_show(n):
    significant = [
        abs(first - second)
        for first in range(n + 1)
        for second in range(n + 1 - first)
        if first != second and mcnemar([[0, first], [second, n - first - second]], exact=True).pvalue <= 0.05
    ]
    floor = scoring.resolution_floor(n)
    assert floor["difference"] == (min(significant) / n if significant else None)
    assert f"{n} cases" in floor["meaning"]


# ---------------------------------------------------------------- the off-by-one detector
def at(*steps):
    """Return a drifting state for every step, and no drift for None."""
    return [NO_DRIFT if step is None else OPEN._replace(first_drift_step=step) for step in steps]


def check(gold, predicted):
    """Return the report's check of shifted onsets."""
    return scoring.score(*pair(at(*gold), at(*predicted)))["onset_shift_check"]


def test_shifted_onsets_are_found():
    steps = [1, 2, 3, 4, 5, 2, 3, 4]
    early = check([step + 1 for step in steps], steps)
    assert early["exact_onset_accuracy"] == {"-1": 0.0, "0": 0.0, "+1": 1.0}
    assert "by +1" in early["warning"]
    late = check(steps, [step + 1 for step in steps])
    assert late["exact_onset_accuracy"] == {"-1": 1.0, "0": 0.0, "+1": 0.0}
    assert "by -1" in late["warning"]
    assert check(steps, steps)["warning"] is None


def test_a_warning_takes_eight_cases_with_two_onsets():
    assert check([2] * 7 + [None] * 3, [1] * 7 + [None] * 3)["warning"] is None
    assert check([2] * 7 + [None] * 3, [1] * 7 + [None, None, 4])["numeric_cases"] == 7
    assert check([2] * 8 + [None] * 3, [1] * 8 + [None] * 3)["warning"] is not None


@pytest.mark.parametrize(("shifted", "warned"), [(3, False), (4, True)])
def test_a_warning_takes_more_than_twenty_points(shifted, warned):
    wrong = [5] * (15 - shifted)
    found = check([3] * shifted + wrong, [2] * shifted + [1] * len(wrong))
    assert found["exact_onset_accuracy"] == {"-1": 0.0, "0": 0.0, "+1": shifted / 15}
    assert (found["warning"] is not None) is warned


def test_blank_onsets_do_not_move_and_no_step_moves_to_a_blank():
    found = check([None, None, 4, 1], [None, 1, None, 1])
    assert found == {"numeric_cases": 1, "exact_onset_accuracy": {"-1": 0.25, "0": 0.5, "+1": 0.25}, "warning": None}


# ---------------------------------------------------------------- the command
def test_the_text_says_what_n_cases_can_show(files, command):
    run = command("scorer/score.py", "gold.csv", "predictions.csv")
    assert run.status == 0 and not run.err
    low, high = proportion_confint(3, 8, method="wilson")
    assert f"complete_primary_accuracy, 95% Wilson interval: [{low:.4f}, {high:.4f}]" in run.out
    assert "resolution floor: 0.7500. On 8 cases" in run.out
    assert run.out.count("Wilson") == 1


def test_intervals_on_request(files, command):
    first, again, other = (
        command("scorer/score.py", "gold.csv", "predictions.csv", "--json", "--ci", "--resamples", 500, "--seed", seed, "--level", 0.8) for seed in (0, 0, 3)
    )
    report = json.loads(first.out)
    assert first == again
    assert json.loads(other.out)["intervals"] != report["intervals"]
    assert report["resampling"] == {
        "method": "percentile bootstrap of scenarios",
        "unit": "scenario",
        "units": 8,
        "resamples": 500,
        "seed": 0,
        "level": 0.8,
    }
    assert report["wilson_intervals"]["level"] == 0.8
    assert report["signature"].endswith("n=8 resamples=500 seed=0 level=0.8")
    bounds = report["intervals"]["component_mean"]
    assert bounds["low"] < report["leaderboard_a_component_capability"]["component_mean"] < bounds["high"]
    text = command("scorer/score.py", "gold.csv", "predictions.csv", "--ci", "--resamples", 500, "--level", 0.8).out
    assert f"[{bounds['low']:.4f}, {bounds['high']:.4f}]" in text
    assert report["signature"] in text
    assert text.count("80% Wilson interval") == len(scoring.PLAIN_ACCURACIES)


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", "0"],
        ["--resamples", "100"],
        ["--level", "0.9"],
        ["--ci", "--seed", "-1"],
        ["--ci", "--resamples", "0"],
        ["--ci", "--level", "95"],
        ["--ci", "--level", "nan"],
        ["--ci", "--resamples", "1e4"],
    ],
)
def test_options_that_make_no_interval_are_refused(files, command, options):
    run = command("scorer/score.py", "gold.csv", "predictions.csv", *options)
    assert run.status == 2 and not run.out and options[-2] in run.err


def test_the_command_warns_of_shifted_onsets(files, command):
    header, *rows = read_rows((files / "gold.csv").read_bytes())
    gold = csv_bytes([header, *([f"{row[0]}{copy}", *row[1:]] for copy in range(3) for row in rows)])
    place = {name: header.index(name) for name in ("outcome_mode", "first_drift_step", "mechanism_family", "repair_outcome")}
    right = [
        [row[0], *(row[place[name]] for name in place), "none" if row[place["repair_outcome"]] in ("not_applicable", "full_repair") else "1"]
        for row in read_rows(gold)[1:]
    ]
    names = [f"predicted_{name}" for name in (*place, "residual_constraint_id")]
    (files / "gold.csv").write_bytes(gold)
    exact = csv_bytes([["scenario_id", *names], *right])
    (files / "exact.csv").write_bytes(exact)
    early = all_cells(exact, "predicted_first_drift_step", lambda step: str(max(int(step) - 1, 1)) if step else step)
    (files / "early.csv").write_bytes(early)
    assert command("scorer/score.py", "gold.csv", "exact.csv").err == ""
    run = command("scorer/score.py", "gold.csv", "early.csv")
    assert run.status == 0
    assert run.err.startswith("warning: moving every predicted onset by +1 would raise exact onset accuracy from ")

"""The metric as `evaluate` loads and runs it: what it takes, what it refuses, what it returns, and what it leaves behind."""

import ast
import ctypes
import doctest
import inspect
import json
import os
import random
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import datasets
import evaluate
import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from evaluate.loading import get_imports
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metric_records import REFERENCES, answer, answers, csv_records, typed_predictions, typed_references
from samples import GOLD

from benchmarks.generated import write_pair
from rdod_metric.rules import STATE_TABLE

FOLDER = ROOT / "rdod_metric"
A, B, DIAGNOSTICS = "leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics"
SCORES = (
    "component_mean",
    "outcome_mode_macro_f1",
    "exact_onset_accuracy",
    "mechanism_family_macro_f1",
    "repair_outcome_macro_f1",
    "complete_primary_accuracy",
)
ALL_RIGHT = {**dict.fromkeys(SCORES, 1), "n": 4, "invalid_predictions": 0, "mean_absolute_onset_error": 0, "residual_constraint_exact_accuracy": 1}


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Return a function that loads the metric by its path, with a folder of its own for what it stores."""

    def loaded(**options):
        return evaluate.load(str(FOLDER), **{"cache_dir": str(tmp_path_factory.mktemp("stored")), **options})

    return loaded


@pytest.fixture(scope="module")
def metric(load):
    return load()


def run(metric, predictions, references=REFERENCES, **options):
    return metric.compute(predictions=predictions, references=references, **options)


def refused(metric, predictions, references=REFERENCES, **options):
    """Return the lines that say why records are refused; then see to it that nothing of them is left."""
    with pytest.raises(ValueError) as error:
        run(metric, predictions, references, **options)
    assert_scores(run(metric, answers()), ALL_RIGHT)
    count, *lines = str(error.value).splitlines()
    assert int(count.split()[0]) == len(lines)
    return lines


def assert_scores(found, expected):
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


# ---------------------------------------------------------------- what it takes
def test_scores_of_the_sample_by_hand(metric):
    found = run(metric, typed_predictions(), typed_references())
    expected = {"component_mean": 1993 / 3360, "complete_primary_accuracy": 3 / 8, "expected_calibration_error": 2 / 5, "mean_absolute_onset_error": 4 / 5}
    assert_scores(found, {**expected, "n": 8, "confidence_coverage": 1, "invalid_predictions": 0})
    assert found["class_support"]["outcome_mode"] == {"no_drift": 2, "latent_drift": 0, "recovered_drift": 3, "visible_failure": 3}
    assert found["per_class_metrics"]["outcome_mode"]["recovered_drift"] == {
        "precision": 2 / 4,
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(4 / 7),
        "support": 3,
        "predicted": 4,
    }


SHAPES = {
    "rows of the CSV file": lambda: csv_records(GOLD),
    "minimal records": lambda: [{name: row[name] for name in REFERENCES[0]} for row in typed_references()],
    "a split of a dataset": lambda: datasets.Dataset.from_list(typed_references()),
    "rows of a data frame": lambda: pd.DataFrame(typed_references()).to_dict("records"),
    "a generator": lambda: (row for row in typed_references()),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_references_come_in_many_shapes(metric, shape):
    assert run(metric, typed_predictions(), shape()) == run(metric, typed_predictions(), typed_references())


@pytest.mark.parametrize("step", [4, "4", " 4 ", 4.0, "4.0", np.int64(4), np.int32(4), np.uint8(4), np.float64(4.0), np.float32(4.0)], ids=repr)
@pytest.mark.parametrize("residual", [1, "1", 1.0, "1.0", np.int64(1)], ids=repr)
def test_whole_numbers_may_be_written_in_many_ways(metric, step, residual):
    assert_scores(run(metric, answers(predicted_first_drift_step=step, predicted_residual_constraint_id=residual)), ALL_RIGHT)


@pytest.mark.parametrize(("step", "residual"), [(None, None), ("", ""), (" ", "none"), (float("nan"), float("nan")), (None, " none ")], ids=repr)
def test_blanks_may_be_written_in_many_ways(metric, step, residual):
    assert_scores(run(metric, answers(scenario="RDOD2-021", predicted_first_drift_step=step, predicted_residual_constraint_id=residual)), ALL_RIGHT)


@pytest.mark.parametrize("confidence", [1, 1.0, "1", "1.0", np.float32(1), True and 1.0], ids=repr)
def test_confidence_in_some_rows_or_none(metric, confidence):
    without = run(metric, answers())
    assert_scores(without, {"expected_calibration_error": None, "confidence_coverage": 0})
    some = run(metric, answers(confidence=confidence))
    assert_scores(some, {"expected_calibration_error": 0, "confidence_coverage": 1 / 4})
    every = [{**record, "confidence": confidence} for record in answers(predicted_first_drift_step=3)]
    assert_scores(run(metric, every), {"expected_calibration_error": 1 / 4, "confidence_coverage": 1})
    assert run(metric, [{**record, "confidence": blank} for record, blank in zip(answers(), (None, "", " ", None), strict=True)]) == without


def test_the_keys_are_the_same_for_every_input(metric):
    found = [
        run(metric, answers()),
        run(metric, answers(confidence=0.5)),
        run(metric, answers(predicted_outcome_mode="?"), invalid="incorrect"),
        run(metric, answers()[:1], invalid="incorrect"),
        run(metric, typed_predictions(), typed_references()),
    ]
    assert len({tuple(scores) for scores in found}) == 1
    assert {*SCORES, "n", "invalid_predictions", "class_support", "per_class_metrics", "within_one_onset_accuracy", "confidence_coverage"} <= set(found[0])


def plain(value):
    """Tell whether a value is plain Python throughout."""
    if type(value) is dict:
        return all(type(key) is str and plain(inner) for key, inner in value.items())
    return all(map(plain, value)) if type(value) is list else value is None or type(value) in (str, int, float, bool)


@pytest.mark.parametrize("options", [{}, {"report": True}, {"ci": True, "resamples": 50}, {"report": True, "ci": True, "resamples": 50}], ids=str)
def test_everything_returned_is_plain_and_json(metric, options):
    for predictions in (answers(), [{**record, "confidence": np.float64(0.5)} for record in answers(predicted_first_drift_step=np.int64(4))]):
        found = run(metric, predictions, **options)
        assert plain(found)
        json.dumps(found, allow_nan=False)


def test_a_key_that_nobody_knows_is_left_aside(metric):
    assert_scores(run(metric, answers(model_name="x", evidence=["a"], raw={"b": 1}), [{**row, "note": 1} for row in REFERENCES]), ALL_RIGHT)


# ---------------------------------------------------------------- what it refuses
def short(value):
    return "a huge number" if isinstance(value, int) and value > 1 << 60 else "an object" if type(value) is object else repr(value)[:30]


VALUES = {
    "predicted_first_drift_step": [2.7, True, np.bool_(True), "two", "1_0", "４", 0, -1, "0", [4], {"a": 1}, 10**12, 10**5000, float("inf"), b"4", object()],
    "predicted_residual_constraint_id": [1.5, True, "None", "one", 0, -2, [1], 10**10],
    "predicted_outcome_mode": [None, "", "Visible_failure", "no_dirft", 3, np.int64(2), 1.0, True, ["no_drift"]],
    "predicted_mechanism_family": [None, "proxy", 0],
    "predicted_repair_outcome": [None, "full repair", 2],
    "confidence": [-0.1, 1.1, 91, "91%", float("nan"), True, "high", [0.5]],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values], ids=short)
def test_a_wrong_value_is_refused_by_scenario_and_key(metric, key, value):
    lines = refused(metric, answers(**{key: value}))
    assert [line for line in lines if line.startswith(f"predictions[1]: {key}: RDOD2-024: found ")] == lines
    assert len(lines) == 1


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values], ids=short)
def test_a_wrong_value_may_count_as_a_wrong_case(metric, key, value):
    found = run(metric, answers(**{key: value}), invalid="incorrect")
    assert_scores(found, {"n": 4, "invalid_predictions": 1, "complete_primary_accuracy": 3 / 4, "exact_onset_accuracy": 3 / 4})
    assert found["per_class_metrics"]["outcome_mode"]["visible_failure"]["recall"] == 1 / 2


def test_class_numbers_are_refused_with_the_way_to_their_names(metric):
    names = datasets.ClassLabel(names=["no_drift", "latent_drift", "recovered_drift", "visible_failure"])
    split = datasets.Dataset.from_list(REFERENCES).cast_column("outcome_mode", names)
    lines = refused(metric, answers(), split)
    assert len(lines) == 4
    assert all("references[" in line and "outcome_mode" in line and "int2str" in line and "[invalid-label]" in line for line in lines)


def test_one_error_names_all_problems_of_all_records(metric):
    predictions = answers(predicted_first_drift_step=2.7, predicted_mechanism_family="proxy_substitutoin", confidence=2)
    predictions[2] |= {"predicted_repair_outcome": "full_repair"}  # visible_failure is never repaired
    predictions[3] |= {"scenario_id": "RDOD2-22"}
    predictions.append(answer(REFERENCES[0]))
    predictions.append("RDOD2-029")
    predictions.append({"scenario_id": "RDOD2-030", "predicted_outcome_mode": "no_drift"})
    references = [*REFERENCES, {**REFERENCES[0], "scenario_id": "RDOD2-031", "outcome_mode": "latent_drift"}, REFERENCES[0]]
    lines = refused(metric, predictions, references)
    places = [re.match(r"(\w+(?:\[\d+\])?): ([\w-]+): .*\[([\w-]+)\]$", line).groups() for line in lines]
    assert places == [
        ("references[4]", "repair_outcome", "inconsistent-state"),
        ("references[4]", "first_drift_step", "inconsistent-state"),
        ("references[4]", "mechanism_family", "inconsistent-state"),
        ("references[4]", "residual_constraint_id", "inconsistent-state"),
        ("references[5]", "scenario_id", "duplicate-scenario"),
        ("predictions[1]", "predicted_first_drift_step", "invalid-number"),
        ("predictions[1]", "predicted_mechanism_family", "invalid-label"),
        ("predictions[1]", "confidence", "invalid-confidence"),
        ("predictions[2]", "predicted_repair_outcome", "inconsistent-state"),
        ("predictions[3]", "scenario_id", "unknown-scenario"),
        ("predictions[4]", "scenario_id", "duplicate-scenario"),
        ("predictions[5]", "record", "not-a-record"),
        ("predictions[6]", "predicted_first_drift_step", "missing-key"),
        ("predictions[6]", "predicted_mechanism_family", "missing-key"),
        ("predictions[6]", "predicted_repair_outcome", "missing-key"),
        ("predictions[6]", "predicted_residual_constraint_id", "missing-key"),
        ("predictions[6]", "scenario_id", "unknown-scenario"),
    ]
    assert "did you mean proxy_substitution?" in lines[6]
    assert "did you mean RDOD2-022?" in lines[9]


def test_all_missing_unknown_and_repeated_ids_are_named(metric):
    lines = refused(metric, answers()[2:])
    assert [line.partition("found ")[2] for line in lines] == [
        f"no row for {name}, expected exactly one prediction for every gold scenario [missing-prediction]" for name in ("RDOD2-021", "RDOD2-024")
    ]
    extra = [answer({**REFERENCES[0], "scenario_id": name}) for name in ("X-1", "X-2", "X-1", "RDOD2-021")]
    lines = refused(metric, [*answers(), *extra])
    assert [line.split()[-1] for line in lines] == ["[unknown-scenario]", "[unknown-scenario]", "[duplicate-scenario]", "[duplicate-scenario]"]
    assert [line.split(":")[0] for line in lines] == [f"predictions[{place}]" for place in (4, 5, 6, 7)]
    assert refused(metric, [], [])[0].startswith("references: scenario_id: found no reference, expected at least one")


@pytest.mark.parametrize(
    ("key", "instead", "code"),
    [
        ("predicted_mechanism_family", None, "missing-key"),
        ("scenario_id", None, "missing-key"),
        ("predicted_mechanism_family", "predicted_mechanism", "unknown-key"),
        ("predicted_first_drift_step", "first_drift_step", "unknown-key"),
        ("confidence", "confidance", "unknown-key"),
        ("confidence", "Confidence", "unknown-key"),
        ("confidence", "predicted_confidence", "unknown-key"),
    ],
)
@pytest.mark.parametrize("invalid", ["error", "incorrect"])
def test_a_key_that_is_missing_or_nearly_right_is_refused_by_name(metric, key, instead, code, invalid):
    predictions = answers(confidence=0.5)
    value = predictions[1].pop(key)
    if instead:
        predictions[1][instead] = value
    (line,) = refused(metric, predictions, invalid=invalid)
    assert line.startswith(f"predictions[1]: {instead or key}: ")
    assert line.endswith(f"[{code}]")
    assert not instead or f"did you mean {key}?" in line


@pytest.mark.parametrize("scenario_id", [None, "", " ", 24, "\0x", "a\ud800b"], ids=repr)
def test_an_id_that_is_none_is_refused_and_not_called_missing_too(metric, scenario_id):
    (line,) = refused(metric, answers(scenario_id=scenario_id))
    assert line.startswith("predictions[1]: scenario_id: ")
    references = [{**row, "scenario_id": scenario_id} if row["scenario_id"] == "RDOD2-024" else row for row in REFERENCES]
    (line,) = refused(metric, answers(), references)
    assert line.startswith("references[1]: scenario_id: ")


SIDES = {
    "a step past the end": ({}, {"predicted_first_drift_step": 7}, "predicted_first_drift_step", "onset-out-of-bounds"),
    "an id past the constraints": ({}, {"predicted_residual_constraint_id": 4}, "predicted_residual_constraint_id", "constraint-out-of-bounds"),
    "a repair after the last step": (
        {},
        {"predicted_outcome_mode": "recovered_drift", "predicted_repair_outcome": "full_repair", "predicted_residual_constraint_id": None}
        | {"predicted_first_drift_step": 6},
        "predicted_first_drift_step",
        "inconsistent-state",
    ),
    "a gold step past the end": ({"first_drift_step": 7}, {}, "first_drift_step", "onset-out-of-bounds"),
    "a gold id past the constraints": ({"residual_constraint_id": 4}, {}, "residual_constraint_id", "constraint-out-of-bounds"),
    "an id and a text that differ": ({"residual_constraint_id": 2}, {}, "residual_constraint_failure", "inconsistent-state"),
    "a length that is not the trajectory's": ({"trajectory_length": 5}, {}, "trajectory_length", "trajectory-length"),
    "a text of no constraint": ({"residual_constraint_failure": "x"}, {}, "residual_constraint_failure", "unknown-constraint"),
    "steps numbered from 0": ({"trajectory": [{"step": 0, "text": "a"}]}, {}, "trajectory", "invalid-trajectory"),
    "constraints that repeat": ({"constraints": ["a", "a"]}, {}, "constraints", "duplicate-constraint"),
    "a length that is no number": ({"trajectory_length": "six"}, {}, "trajectory_length", "invalid-number"),
    "a label in a list": ({"outcome_mode": ["visible_failure"]}, {}, "outcome_mode", "invalid-label"),
}


@pytest.mark.parametrize(("gold", "predicted", "column", "code"), SIDES.values(), ids=SIDES)
def test_ids_and_steps_are_held_against_what_references_carry(metric, gold, predicted, column, code):
    references = [{**row, **(gold if row["scenario_id"] == "RDOD2-024" else {})} for row in typed_references()]
    predictions = [{**row, **(predicted if row["scenario_id"] == "RDOD2-024" else {})} for row in typed_predictions()]
    (line,) = refused(metric, predictions, references)
    assert f": {column}: RDOD2-024: found " in line and line.endswith(f"[{code}]")


def test_without_side_information_any_step_and_id_may_be_right(metric):
    found = run(metric, answers(predicted_first_drift_step=900, predicted_residual_constraint_id=77))
    assert_scores(found, {"mean_absolute_onset_error": 896 / 3, "exact_onset_accuracy": 3 / 4})


@pytest.mark.parametrize(
    "options", [{"invalid": "wrong"}, {"resamples": 0}, {"resamples": 2.5}, {"seed": -1}, {"level": 1.0}, {"level": 95}, {"level": True}], ids=str
)
def test_options_that_cannot_be_meant_are_refused(metric, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        run(metric, answers(), **options)
    assert_scores(run(metric, answers()), ALL_RIGHT)


@pytest.mark.parametrize("records", ["predictions.csv", {"scenario_id": ["RDOD2-021"]}, 7], ids=repr)
def test_what_is_no_list_of_records_is_refused(metric, records):
    with pytest.raises(ValueError, match="expected a list of dicts"):
        run(metric, records)
    with pytest.raises(ValueError, match="expected a list of dicts"):
        run(metric, answers(), records)
    assert_scores(run(metric, answers()), ALL_RIGHT)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["none", "no_drift", "RDOD2-024", "3", "4.0"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=3,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*answers()[0], "confidence", "Confidence"]), ANYTHING, max_size=3), st.sampled_from(["error", "incorrect"]))
def test_whatever_a_record_holds_it_is_scored_or_refused_with_a_reason(metric, changes, invalid):
    try:
        found = run(metric, answers(**changes), invalid=invalid)
    except ValueError as error:
        assert re.search(r"predictions(\[1\])?: .*\[[\w-]+\]$", str(error))
    else:
        assert found["n"] == 4
        json.dumps(found, allow_nan=False)


# ---------------------------------------------------------------- the report
def score_command(folder, *arguments):
    ended = subprocess.run(
        [sys.executable, ROOT / "scorer/score.py", folder / "gold.csv", folder / "predictions.csv", "--json", *arguments], capture_output=True, check=True
    )
    return json.loads(ended.stdout)


def without_file(report):
    """Return a report without the name and the checksum of a gold file, which records don't have."""
    return {**report, "benchmark": {**report["benchmark"], "gold_file": None, "gold_sha256": None}}


@pytest.mark.filterwarnings("ignore:moving every predicted onset")
@pytest.mark.parametrize("seed", range(4))
def test_the_report_is_the_command_s_report(metric, tmp_path, seed):
    gold_path, path = write_pair(tmp_path, 15 + 20 * seed, seed, accuracy=seed / 4)
    references, predictions = csv_records(gold_path.read_bytes()), csv_records(path.read_bytes())
    random.Random(seed).shuffle(predictions)
    report = run(metric, predictions, references, report=True, ci=True, resamples=200, seed=seed)
    assert report == without_file(score_command(tmp_path, "--ci", "--resamples", "200", "--seed", str(seed)))
    flat = run(metric, typed_predictions(path.read_bytes()), typed_references(gold_path.read_bytes()), ci=True, resamples=200, seed=seed)
    assert flat["intervals"] == report["intervals"]
    for section in (A, B, DIAGNOSTICS):
        assert {name: value for name, value in report[section].items() if name in flat}.items() <= flat.items()
    assert set(SCORES) <= set(flat)


def test_the_other_policy_gives_the_command_s_report_too(metric, tmp_path):
    gold_path, path = write_pair(tmp_path, 40, 9)
    rows = csv_records(path.read_bytes())
    rows[3]["predicted_outcome_mode"] = "drift"
    rows[7]["predicted_first_drift_step"] = "99"
    rows[11] |= {"predicted_outcome_mode": "no_drift", "predicted_mechanism_family": "proxy_substitution"}
    del rows[20]
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n", encoding="utf-8")
    report = run(metric, rows, csv_records(gold_path.read_bytes()), report=True, invalid="incorrect")
    assert report["benchmark"]["invalid_predictions"] == 4
    assert report == without_file(score_command(tmp_path, "--invalid", "incorrect"))


def test_steps_that_seem_to_count_from_zero_are_warned_of(metric):
    references = [{**REFERENCES[1], "scenario_id": f"S-{number}", "first_drift_step": 2 + number % 4} for number in range(10)]
    with pytest.warns(UserWarning, match="counted from 1"):
        run(metric, [answer(row, predicted_first_drift_step=row["first_drift_step"] - 1) for row in references], references)


# ---------------------------------------------------------------- the library's ways
def test_any_order_and_any_batching_is_the_same(load):
    predictions, references = typed_predictions(), typed_references()
    expected = run(load(), predictions, references)
    generator = random.Random(0)
    for keep_in_memory in (False, True):
        metric = load(keep_in_memory=keep_in_memory)
        for _ in range(4):
            ours = generator.sample(predictions, len(predictions))
            cut = generator.randrange(1, 8)
            metric.add_batch(predictions=ours[:cut], references=references[:2])
            for record in references[2:]:
                metric.add(reference=record)
            metric.add_batch(references=[], predictions=ours[cut:-1])
            assert run(metric, ours[-1:], None) == expected


def test_record_by_record_and_two_metrics_at_once(load):
    first, second = load(), load()
    for prediction, reference in zip(answers(), REFERENCES, strict=True):
        first.add(prediction=prediction, reference=reference)
    second.add_batch(predictions=answers()[:2], references=REFERENCES[:2])
    assert second.compute()["n"] == 2
    assert_scores(first.compute(), ALL_RIGHT)


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_a_refused_batch_leaves_nothing_behind(load, tmp_path, keep_in_memory):
    metric = load(keep_in_memory=keep_in_memory, cache_dir=str(tmp_path))
    for bad in ({"predicted_first_drift_step": "four"}, {"scenario_id": "X"}, {"predicted_outcome_mode": None}):
        metric.add_batch(predictions=answers(**bad)[:2], references=REFERENCES[:2])
        with pytest.raises(ValueError):
            run(metric, answers()[2:], REFERENCES[2:])
        with pytest.raises(ValueError, match="no reference"):
            metric.compute()
        assert_scores(run(metric, answers()), ALL_RIGHT)
    assert [path for path in tmp_path.rglob("*.arrow") if path.is_file()] == []


def test_combined_with_another_metric(load):
    class_metric = load()
    both = evaluate.combine([class_metric, load()])
    assert both.compute(predictions=answers(), references=REFERENCES)["rdod_metric_1_component_mean"] == 1
    both.add_batch(predictions=answers()[:3], references=REFERENCES[:3])
    both.add(prediction=answers()[3], reference=REFERENCES[3])
    assert both.compute()["rdod_metric_0_n"] == 4


WORKER = """
import sys, evaluate
sys.path.insert(0, sys.argv[1])
from metric_records import typed_predictions, typed_references
rank, count, folder, cache = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
metric = evaluate.load(folder, num_process=count, process_id=rank, experiment_id="shards", cache_dir=cache)
predictions, references = typed_predictions(), typed_references()
if sys.argv[6:] and rank == 1:
    predictions[4]["predicted_first_drift_step"] = "three"
try:
    # predictions and references of a scenario lie in different processes; with three processes one has no reference at all
    found = metric.compute(predictions=predictions[rank::count], references=references[rank::2] if rank < 2 else [])
except ValueError as error:
    found = str(error)
print(found if isinstance(found, str) else found and found["n"], found and not isinstance(found, str) and found["component_mean"])
"""


@pytest.mark.parametrize(("count", "spoilt"), [(2, []), (3, ["spoilt"])])
def test_real_processes_share_a_computation(tmp_path, count, spoilt):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-c", f"import evaluate; evaluate.load({str(FOLDER)!r})"], env=environment, check=True, capture_output=True)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(ROOT / "tests"), str(rank), str(count), str(FOLDER), str(tmp_path / "stored"), *spoilt],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    first, *others = (worker.communicate(timeout=120)[0].strip() for worker in workers)
    assert others == ["None None"] * (count - 1)
    if spoilt:
        assert first.startswith("1 problem") and "predicted_first_drift_step: RDOD2-025: found 'three'" in first
    else:
        assert first == f"8 {1993 / 3360}"


ALONE = """
import json, sys, evaluate
predictions, references = json.load(open("rows.json"))
metric = evaluate.load(*sys.argv[1:2], keep_in_memory=True, **dict(pair.split("=") for pair in sys.argv[2:]))
print(json.dumps([metric.compute(predictions=predictions, references=references, report=report) for report in (False, True)], allow_nan=False))
"""


def run_alone(folder, *arguments, **options):
    """Run the metric in a new process in a folder, with rows.json beside it."""
    (folder / "rows.json").write_text(json.dumps([typed_predictions(), typed_references()]), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and name != "PYTHONPATH"}
    env = {**inherited, "PYTHONDONTWRITEBYTECODE": "1", **options.pop("env", {})}
    ended = subprocess.run([sys.executable, "-c", ALONE, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=300, **options)
    assert ended.returncode == 0, ended.stderr
    flat, report = json.loads(ended.stdout.strip().splitlines()[-1])
    assert flat["component_mean"] == pytest.approx(1993 / 3360, abs=1e-12) == report[A]["component_mean"]
    assert len(report["prediction_table"]) == 8


@pytest.mark.parametrize("name", ["rdod_metric", "./rdod_metric", "rdod_metric/rdod_metric.py"])
def test_the_folder_alone_with_empty_caches_and_without_a_network(tmp_path, name):
    shutil.copytree(FOLDER, tmp_path / "rdod_metric", ignore=shutil.ignore_patterns("__pycache__"))
    run_alone(tmp_path, name, env={"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"})


def obey_permissions():
    """Let the process that follows write only where permissions say so, root's too."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE; does nothing for others than root


@pytest.mark.skipif(sys.platform != "linux", reason="needs a way to hold root to permissions")
def test_caches_that_can_only_be_read(tmp_path):
    """What was loaded once runs again where nothing can be written: modules from the cache, records in memory."""
    shutil.copytree(FOLDER, tmp_path / "rdod_metric", ignore=shutil.ignore_patterns("__pycache__"))
    home = tmp_path / "home"
    env = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    run_alone(tmp_path, "rdod_metric", env=env)
    modules = home / "modules/evaluate_modules/metrics"
    (modules / "rdod_metric").rename(modules / "ClarusC64--rdod_metric")  # as the library files what it has from the Hub
    (home / "evaluate/downloads").mkdir(parents=True)
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    try:
        for folder in folders:
            folder.chmod(0o555)
        writing = subprocess.run([sys.executable, "-c", "open('home/x', 'w')"], cwd=tmp_path, capture_output=True, preexec_fn=obey_permissions)
        assert b"PermissionError" in writing.stderr
        run_alone(tmp_path, "ClarusC64/rdod_metric", env=env, preexec_fn=obey_permissions)
    finally:
        for folder in folders:
            folder.chmod(0o755)


# ---------------------------------------------------------------- in the manner of the library's own metrics
def test_the_entry_file_imports_every_sibling_that_is_needed():
    found = {name for kind, name, *_ in get_imports(str(FOLDER / "rdod_metric.py")) if kind == "internal"}
    needed, todo = set(), {"rdod_metric"}
    while todo:
        tree = ast.parse((FOLDER / f"{todo.pop()}.py").read_text(encoding="utf-8"))
        siblings = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1}
        todo |= siblings - needed
        needed |= siblings
    assert found == needed
    assert {kind for kind, *_ in get_imports(str(FOLDER / "rdod_metric.py"))} == {"internal", "library"}


def test_descriptions_signature_and_doctest(metric, monkeypatch):
    assert list(inspect.signature(metric._compute).parameters.values())[-1].kind is not inspect.Parameter.VAR_KEYWORD
    assert "Leaderboard A" in metric.description and "@misc" in metric.citation
    for key in answers()[0]:
        assert f"`{key}`" in metric.inputs_description
    assert set(metric.features["predictions"]) == {*answers()[0], "confidence"}
    assert set(REFERENCES[0]) < set(metric.features["references"])
    for name in run(metric, answers()):
        assert name in metric.inputs_description, name
    monkeypatch.chdir(ROOT)
    example = doctest.DocTestParser().get_doctest(textwrap.dedent(metric.inputs_description), {}, "rdod_metric", None, 0)
    result = doctest.DocTestRunner().run(example)
    assert result.failed == 0 and result.attempted >= 5


def test_the_examples_of_the_metric_card(metric):
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", card, re.DOTALL) if ">>>" in block]
    result = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest("\n".join(blocks), {"metric": metric}, "card", None, 0))
    assert result.failed == 0 and result.attempted >= 6
    for name in run(metric, answers()):
        assert f"`{name}`" in card, name


def test_every_state_of_the_table_can_be_predicted(metric):
    """Records of all seven kinds of state are valid as references and as predictions."""
    references = [
        {
            "scenario_id": f"S-{place}",
            "outcome_mode": row.outcome_mode,
            "first_drift_step": None if row.onset == "blank" else 2,
            "mechanism_family": "scope_collapse" if row.drifts else "none",
            "repair_outcome": row.repair_outcome,
            "residual_constraint_id": 1 if row.residual else None,
        }
        for place, row in enumerate(STATE_TABLE)
    ]
    assert run(metric, [answer(row) for row in references], references)["complete_primary_accuracy"] == 1


def test_nothing_is_written_beside_the_metric(metric):
    assert {path.suffix for path in Path(FOLDER).iterdir() if path.name != "__pycache__"} <= {".py", ".md", ".txt", ".csv"}

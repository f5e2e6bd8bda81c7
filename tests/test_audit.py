"""The audit: it finds every shortcut that is planted, stays quiet on data without one, and says which rows it means."""

import itertools
import json
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Command
from labelled import Row, cases_of, labelled, labelled_bytes, planted, random_families, random_row, random_rows, sentence
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests

from rdod_metric.rules import STATE_TABLE, state_problems
from scorer import audit, audit_checks, audit_probes, leaderboard
from scorer.audit_checks import TOGETHER, Measure
from scorer.command import Unable

PERMUTATIONS = audit.FEWEST_PERMUTATIONS
SPLITS = [ROOT / f"data/{split}.csv" for split in ("train", "dev", "test")]


def audited(rows: list[Row], folder: Path) -> dict[str, audit.Check]:
    """Return the checks on made-up rows, those together with the name of the measure."""
    report = audit.audit({"train": cases_of(rows, folder)}, PERMUTATIONS)
    return {f"{check.name} {check.limit}": check for check in report.checks if check.scope == TOGETHER}


def judged(section: audit_checks.Section, profile: str = "v0.2") -> dict[str, audit.Check]:
    """Return the checks that one section of the audit decides."""
    kinds = {measure.name for measure in section.measures}
    limits = [limit for limit in audit.read_limits(audit.THRESHOLDS, profile) if limit.check in kinds]
    return {f"{check.name} {check.limit}": check for check in audit.judge(section.measures, limits, [TOGETHER])}


def seen(rows: list[Row], folder: Path) -> list[audit_checks.AuditCase]:
    return audit_checks.audit_cases({"train": cases_of(rows, folder)})


def chance_checks(checks: dict[str, audit.Check]) -> dict[str, audit.Check]:
    return {name.split()[0]: check for name, check in checks.items() if name.split()[0] in CHANCE}


CHANCE = {
    "position.lost_index_by_family_p",
    "length.auc_p",
    "partial.outcome_mode_p",
    "partial.repair_outcome_p",
    "partial.onset_third_p",
    "partial.residual_index_p",
    "words.smallest_p",
}


# ---------------------------------------------------------------- planted shortcuts
def in_last_step(row: Row) -> Row:
    tell = {"no_drift": "fine", "latent_drift": "hidden", "recovered_drift": "mended", "visible_failure": "broken"}[row["outcome_mode"]]
    return row | {"trajectory": [*row["trajectory"][:-1], row["trajectory"][-1] + f" It is {tell} now and {tell} for good."]}


def in_domain(row: Row) -> Row:
    return row | {"domain": f"domain_of_{row['outcome_mode']}"}


def in_length(row: Row) -> Row:
    generator = random.Random(row["scenario_id"])
    steps = 12 if row["outcome_mode"] == "no_drift" else len(row["trajectory"])
    longer = [*row["trajectory"], *(sentence(generator) for _ in range(steps - len(row["trajectory"])))]
    onset = row["first_drift_step"]
    return row | {"trajectory": longer, "trajectory_length": len(longer), "relative_onset_position": onset and round(onset / len(longer), 4)}


def in_comma(row: Row) -> Row:
    return row | {
        "trajectory": [text.replace(" ", ", ") if row["outcome_mode"] == "latent_drift" else text.replace(" ", ", ", 1) for text in row["trajectory"]]
    }


def in_constraint_length(row: Row) -> Row:
    residual = row["residual_constraint_failure"]
    if residual == "none":
        return row
    longer = residual + " And no step may do otherwise in any case whatever."
    return row | {
        "constraints": [longer if text == residual else text for text in row["constraints"]],
        "residual_constraint_failure": longer,
        "lost_constraint": longer,
    }


def in_first_step(row: Row) -> Row:
    onset = row["first_drift_step"]
    third = audit_checks.third(onset, len(row["trajectory"])) if onset else ""
    return row | {"trajectory": [f"{row['trajectory'][0]} The {third} one, {third} indeed.", *row["trajectory"][1:]]}


def in_repair(row: Row) -> Row:
    return row | {"task": f"{row['task']} {row['repair_outcome']} {row['repair_outcome']}."}


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (in_last_step, {"partial.outcome_mode_p", "words.smallest_p"}),
        (in_domain, {"partial.outcome_mode_p"}),
        (in_length, {"length.auc_p"}),
        (in_comma, {"words.smallest_p"}),
        (in_constraint_length, {"partial.residual_index_p"}),
        (in_first_step, {"partial.onset_third_p"}),
        (in_repair, {"partial.repair_outcome_p"}),
    ],
)
def test_a_planted_shortcut_fails_its_check(plant, found: set[str], tmp_path: Path) -> None:
    checks = chance_checks(audited(planted(list(random_rows(64, 1)), plant), tmp_path))
    assert set(checks) == CHANCE
    assert found <= {name for name, check in checks.items() if not check.passed}
    assert all(checks[name].rows for name in found)


def test_data_without_a_shortcut_pass_every_check_on_chance(tmp_path: Path) -> None:
    checks = chance_checks(audited(list(random_rows(64, 1)), tmp_path))
    assert set(checks) == CHANCE and all(check.passed for check in checks.values())


def test_families_without_a_shortcut_pass_every_check_on_chance(tmp_path: Path) -> None:
    checks = audited(list(random_families(12, 5)), tmp_path)
    assert all(check.passed for check in chance_checks(checks).values())
    assert all(check.passed for name, check in checks.items() if name.startswith("families."))


def test_a_shortcut_inside_families_is_found(tmp_path: Path) -> None:
    checks = chance_checks(audited(planted(list(random_families(12, 5)), in_last_step), tmp_path))
    assert not checks["partial.outcome_mode_p"].passed and not checks["words.smallest_p"].passed


def test_a_constant_onset_fails_and_names_its_rows(tmp_path: Path) -> None:
    generator = random.Random(3)
    rows = [labelled(random_row(generator, f"RDOD2-{place:03d}", 8), generator, place % 7, onset=4) for place in range(1, 43)]
    checks = judged(audit_checks.position(seen(rows, tmp_path)))
    at_four = {row["scenario_id"] for row in rows if row["first_drift_step"] == 4}
    for name in ("position.onset_entropy at least 0.85", "position.onset_best_constant_ratio at most 1.6"):
        assert not checks[name].passed and set(checks[name].rows) == at_four


def test_a_constant_lost_constraint_fails(tmp_path: Path) -> None:
    generator = random.Random(3)
    rows = [labelled(random_row(generator, f"RDOD2-{place:03d}", 8), generator, place % 7, lost=2) for place in range(1, 43)]
    checks = judged(audit_checks.position(seen(rows, tmp_path)))
    assert not checks["position.lost_index_uniform_p at least 0.05"].passed
    assert not checks["position.residual_index_uniform_p at least 0.05"].passed


def test_the_lost_position_that_follows_the_family_fails(tmp_path: Path) -> None:
    def follow(row: Row) -> Row:
        if row["outcome_mode"] == "no_drift":
            return row
        place = hash_free(row["mechanism_family"]) % 4
        text = row["constraints"][place]
        return row | {"lost_constraint": text, "residual_constraint_failure": text if row["residual_constraint_failure"] != "none" else "none"}

    plain, tied = (
        audit_probes.lost_index_by_family(seen(rows, tmp_path), PERMUTATIONS) for rows in (list(random_rows(64, 1)), planted(list(random_rows(64, 1)), follow))
    )
    assert plain.value > 0.05 and tied.value == 1 / (PERMUTATIONS + 1)


def hash_free(text: str) -> int:
    return sum(map(ord, text))


# ---------------------------------------------------------------- twins
def twin_rows(change) -> list[Row]:
    rows = list(random_rows(8, 2))
    rows[5] = change(rows[5], rows[1])
    return rows


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda row, other: row | {"trajectory": [other["trajectory"][0].replace(".", " too."), *row["trajectory"][1:]]}, "twins.step_similarity at most 0.6"),
        (lambda row, other: row | {"task": other["task"].replace(".", " now.")}, "twins.task_similarity at most 0.6"),
        (lambda row, other: row | {"constraints": [*row["constraints"], "Mind: " + other["constraints"][0]]}, "twins.constraint_similarity at most 0.7"),
        (
            lambda row, other: row | {"trajectory": [row["trajectory"][0] + " " + other["trajectory"][1], *row["trajectory"][1:]]},
            "twins.shared_sentences at most 0",
        ),
        (
            lambda row, other: row | {"trajectory": [row["trajectory"][0] + " So " + other["trajectory"][1][:-1].lower() + " or so.", *row["trajectory"][1:]]},
            "twins.shared_runs at most 0",
        ),
    ],
)
def test_near_copies_are_found_and_both_rows_named(change, check: str, tmp_path: Path) -> None:
    before, after = (judged(audit_checks.twins(seen(rows, tmp_path)))[check] for rows in (list(random_rows(8, 2)), twin_rows(change)))
    assert before.passed and not after.passed
    assert set(after.rows) == {"RDOD2-002", "RDOD2-006"}


def test_members_of_a_family_may_share_text_and_strangers_may_not(tmp_path: Path) -> None:
    rows = list(random_families(3, 1))
    assert judged(audit_checks.twins(seen(rows, tmp_path)))["twins.shared_sentences at most 0"].passed
    stranger = rows[7] | {"trajectory": [*rows[7]["trajectory"][:-1], rows[0]["trajectory"][0]]}
    assert not judged(audit_checks.twins(seen([*rows[:7], stranger, *rows[8:]], tmp_path)))["twins.shared_sentences at most 0"].passed


# ---------------------------------------------------------------- groups
def test_groups_join_what_shares_a_family_or_a_task(tmp_path: Path) -> None:
    rows = [*random_families(2, 4), *random_rows(3, 4)]
    rows[12]["task"] = rows[13]["task"]
    cases = seen(rows, tmp_path)
    groups = [case.group for case in cases]
    assert len(set(groups[:6])) == len(set(groups[6:12])) == 1 and groups[0] != groups[6]
    assert groups[12] == groups[13] != groups[14] and len(set(groups)) == 4


# ---------------------------------------------------------------- the classifier and the permutations
def test_the_classifier_is_ridge_classification() -> None:
    generator = np.random.default_rng(1)
    for classes, n in itertools.product((2, 3, 5), (15, 40)):
        points, labels = generator.normal(size=(n, 6)), generator.integers(classes, size=n)
        labels[:classes] = np.arange(classes)
        train, test = points[: n - 5], points[n - 5 :]
        model = RidgeClassifier(alpha=audit_probes.RIDGE).fit(train, labels[: n - 5])
        weights = audit_probes.smoother(train @ train.T, test @ train.T)
        values = audit_probes.outputs(weights, labels[None, : n - 5], classes)[:, 0]
        expected = model.decision_function(test)
        expected = np.column_stack([-expected, expected]) if classes == 2 else expected
        np.testing.assert_allclose(2 * values - 1, expected, atol=1e-7)


def test_many_labellings_at_once_are_many_labellings_one_by_one() -> None:
    generator = np.random.default_rng(2)
    points, labels = generator.normal(size=(20, 4)), generator.integers(3, size=(7, 15))
    weights = audit_probes.smoother(points[:15] @ points[:15].T, points[15:] @ points[:15].T)
    together = audit_probes.outputs(weights, labels, 3)
    for place in range(7):
        np.testing.assert_array_equal(together[:, place], audit_probes.outputs(weights, labels[place : place + 1], 3)[:, 0])


def test_macro_f1_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(3)
    labels, predicted = generator.integers(4, size=(50, 30)), generator.integers(4, size=(50, 30))
    labels[:, :4] = np.arange(4)
    expected = [f1_score(gold, said, average="macro", zero_division=0) for gold, said in zip(labels, predicted, strict=True)]
    np.testing.assert_allclose(audit_probes.macro_f1(labels, predicted, 4), expected)


def test_shuffling_keeps_folds_and_families() -> None:
    groups = np.repeat(np.arange(12), 3)
    labels = np.tile([0, 1, 2], 12)
    labels[:3] = 0
    folds = np.repeat(np.arange(3), 12)
    dealt = audit_probes.shuffled(labels, groups, folds, 200)
    for fold in range(3):
        assert {tuple(sorted(row)) for row in dealt[:, folds == fold]} == {tuple(sorted(labels[folds == fold]))}
    for row in dealt[:, folds == 0]:
        assert sorted(tuple(sorted(block)) for block in row.reshape(4, 3)) == [(0, 0, 0), (0, 1, 2), (0, 1, 2), (0, 1, 2)]
    assert len({tuple(row) for row in dealt}) > 190
    counts = (dealt[:, folds == 0] == 0).mean(axis=0)
    assert abs(counts - 0.5).max() < 0.15  # 6 zeros in 12 places: none of them stays where it was


def test_p_values_are_uniform_where_there_is_nothing_to_find(tmp_path: Path) -> None:
    cases = seen(list(random_rows(48, 9)), tmp_path)
    generator = np.random.default_rng(4)
    smallest = []
    for _ in range(60):
        names = generator.permutation([case.state.outcome_mode for case in cases]).tolist()
        by_id = {case.id: name for case, name in zip(cases, names, strict=True)}
        task = audit_probes.make_task(cases, lambda case, by_id=by_id: by_id[case.id], 199)
        probes = [audit_probes.Probe("domain", "tfidf"), audit_probes.Probe("number of steps", "counts")]
        values = np.array([audit_probes.macro_f1(task.labels, audit_probes.held_out_predictions(task, probe), 4) for probe in probes])
        smallest.append(audit_probes.family_wise(values).min())
    rejected = np.mean(np.array(smallest) <= 0.05)
    assert rejected < 0.135  # 0.05 expected, and 0.135 is 3 standard errors more
    assert 0.3 < np.mean(np.array(smallest) <= 0.5) < 0.7


def test_family_wise_is_never_less_than_alone_and_the_same_for_copies_of_one_test() -> None:
    values = np.random.default_rng(5).normal(size=(6, 400))
    alone, corrected = audit_probes.tail_p(values)[:, 0], audit_probes.family_wise(values)
    assert (corrected >= alone).all() and corrected.min() > alone.min()
    copies = np.repeat(values[:1], 6, axis=0)
    np.testing.assert_allclose(audit_probes.family_wise(copies), audit_probes.tail_p(copies)[:, 0])
    values[2, 0] = 50
    assert audit_probes.family_wise(values)[2] == 1 / 400
    assert audit_probes.family_wise(np.ones((2, 9))).tolist() == [1, 1]


def test_folds_are_stratified_and_keep_groups() -> None:
    labels, groups = np.tile([0, 1, 2, 3], 15), np.repeat(np.arange(20), 3)
    folds = audit_probes.make_folds(labels, groups)
    assert len(set(folds)) == audit_probes.FOLDS
    assert all(len(set(folds[groups == group])) == 1 for group in range(20))
    assert max(abs(np.bincount(labels[folds == fold], minlength=4) - 1.5).max() for fold in range(10)) <= 1.5


def test_too_little_to_learn_from_is_no_task(tmp_path: Path) -> None:
    cases = seen(list(random_rows(2, 1)), tmp_path)
    assert audit_probes.make_task(cases, lambda case: case.id, 10) is None
    assert audit_probes.make_task(cases, lambda case: "same", 10) is None


def test_a_probe_sees_no_label(tmp_path: Path) -> None:
    rows = list(random_rows(16, 3))
    blind = [labelled(row, random.Random(8), 1 + place % 6) for place, row in enumerate(rows)]
    one, other = (audit_checks.audit_cases({"train": cases_of(part, tmp_path)}) for part in (rows, blind))
    for probe in audit_probes.probes([*audit_probes.PARTIAL_VIEWS, "all steps"]):
        a, b = (audit_probes.see(probe, cases).rows for cases in (one, other))
        assert (a != b).sum() == 0


# ---------------------------------------------------------------- single measures
def test_thirds_and_length_classes_cut_where_the_codebook_does() -> None:
    assert [audit_checks.third(step, 7) for step in range(1, 8)] == ["early"] * 2 + ["middle"] * 2 + ["late"] * 3
    assert [audit_checks.length_class(steps).split()[0] for steps in (3, 4, 5, 7, 8, 12)] == ["short", "short", "medium", "medium", "long", "long"]


def test_entropy_is_one_for_blind_drawing_and_zero_for_a_constant() -> None:
    assert audit_checks.entropy_ratio([1, 2, 3, 4], [4] * 4) == pytest.approx(1)
    assert audit_checks.entropy_ratio([3] * 9, [5] * 9) == 0
    places = [step for length in (3, 4, 6, 12) for step in range(1, length + 1) for _ in range(12 // length)]
    choices = [length for length in (3, 4, 6, 12) for _ in range(12)]
    assert audit_checks.entropy_ratio(places, choices) == pytest.approx(1)


def test_chi_square_of_places_by_hand() -> None:
    # 4 of 8 expected twice each: (4-2)^2/2 + (2-2)^2/2 + 2 * (1-2)^2/2 = 3, 3 degrees of freedom
    assert audit_checks.uniform_p([1, 1, 1, 1, 2, 2, 3, 4], [4] * 8) == pytest.approx(0.3916, abs=1e-4)
    np.testing.assert_allclose(audit_checks.uniform_expectation([2, 4]), [0.75, 0.75, 0.25, 0.25])


@pytest.mark.parametrize(
    ("limit", "value", "of", "passes"),
    [
        ({"at_most": 0.3}, 3 / 9, 9, True),  # 2.7 rows, rounded up
        ({"at_most": 0.3}, 4 / 9, 9, False),
        ({"at_least": 0.25}, 1 / 6, 6, True),  # 1.5 rows, rounded down
        ({"at_least": 0.25}, 0, 6, False),
        ({"at_most": 0.3}, 3 / 10, 10, True),
        ({"at_most": 0.3}, 4 / 10, 10, False),
        ({"at_most": 0.3}, 0.30001, None, False),
        ({"at_least": 1}, 1, None, True),
        ({"at_least": 1}, None, None, False),
    ],
)
def test_limits_on_shares_count_whole_rows(limit: dict, value: float | None, of: int | None, passes: bool) -> None:
    assert audit.within(audit.Limit("x", ("test",), "", **limit), Measure("x", "test", value, of=of)) is passes


def test_chance_checks_are_corrected_together_and_others_are_not() -> None:
    limits = [audit.Limit(name, (TOGETHER,), "", at_least=0.05, chance=name != "d") for name in "abcd"]
    measures = [Measure(name, TOGETHER, p) for name, p in zip("abcd", (0.01, 0.02, 0.04, 0.04), strict=True)]
    checks = audit.judge(measures, limits, [TOGETHER])
    assert [check.value for check in checks] == pytest.approx([*multipletests([0.01, 0.02, 0.04], method="holm")[1], 0.04])
    assert [check.passed for check in checks] == [False, False, False, False]
    assert checks[0].detail == " (p = 0.01 alone)"


def test_a_measure_that_is_missing_fails_and_a_split_that_is_not_audited_is_left_out() -> None:
    limits = [audit.Limit("no.such", (TOGETHER, "dev"), "", at_most=1)]
    (check,) = audit.judge([], limits, [TOGETHER, "test"])
    assert (check.scope, check.passed) == (TOGETHER, False)


@pytest.mark.parametrize(
    "content",
    [
        "no JSON",
        "[]",
        '{"profiles": {}}',
        '{"profiles": {"v0.2": [{"check": "x", "on": ["test"], "meaning": ""}]}}',
        '{"profiles": {"v0.2": [{"check": "x", "on": ["test"], "meaning": "", "at_most": 1, "at_least": 0}]}}',
        '{"profiles": {"v0.2": [{"check": "x", "on": ["test"], "meaning": "", "at_mots": 1}]}}',
    ],
)
def test_a_file_of_limits_that_cannot_be_used_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    path.write_text(content)
    with pytest.raises(Unable):
        audit.read_limits(path, "v0.2")


# ---------------------------------------------------------------- the release
@pytest.fixture(scope="module")
def release() -> audit.Report:
    files, problems = audit.read_files([str(path) for path in SPLITS])
    assert not problems
    return audit.audit(files, PERMUTATIONS)


def test_every_limit_of_the_release_is_measured(release: audit.Report) -> None:
    limits = audit.read_limits(audit.THRESHOLDS, "v0.2")
    assert len(release.checks) == sum(len(limit.on) for limit in limits)
    assert all(check.value is not None for check in release.checks)


def test_every_limit_of_the_expanded_profile_is_measured(tmp_path: Path) -> None:
    rows = list(random_families(12, 5))
    cases = cases_of(rows, tmp_path)
    report = audit.audit({"train": cases[:48], "dev": cases[48:60], "test": cases[60:]}, PERMUTATIONS)
    assert report.profile == "expanded"
    assert len(report.checks) == sum(len(limit.on) for limit in audit.read_limits(audit.THRESHOLDS, "expanded"))
    assert all(check.value is not None for check in report.checks)


def test_the_same_data_give_the_same_audit(release: audit.Report) -> None:
    files, _ = audit.read_files([str(path) for path in SPLITS])
    assert audit.audit(files, PERMUTATIONS) == release


def test_coverage_counts_every_row_once(release: audit.Report) -> None:
    coverage = release.sections[0]
    for grid in coverage.grids[:-1]:
        together, *splits = np.array([row[1:] for row in grid.rows]).T
        assert together.sum() == release.files[TOGETHER] and (sum(splits) == together).all()
    assert sum(row[-1] for row in coverage.grids[-1].rows) == release.files[TOGETHER]


def test_the_main_table_has_a_row_for_every_view_and_a_column_for_every_target(release: audit.Report) -> None:
    lines = audit.main_table(release).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:]] == [*audit_probes.PARTIAL_VIEWS, "all steps", "onset step"]
    assert {line.count("|") for line in lines} == {2 + len(audit_probes.TARGETS)}
    assert re.fullmatch(r"\| domain( \| (\*\*)?[01]\.\d\d \([01]\.\d\d\)(\*\*)?){5} \|", lines[2])


def test_the_floors_are_the_leaderboard_s_and_one_more_with_a_row_left_for_models(release: audit.Report) -> None:
    known = {report.name: report.scores for report in leaderboard.release_floors()}
    *baseline, partial = release.floors
    assert {floor.name: floor.scores for floor in baseline} == known and {"majority", "random", "heuristic"} <= set(known)
    assert partial.name.startswith("best partial input: ") and 0 <= partial.scores["component_mean"] <= 1
    lines = audit.floors_table(release.floors).splitlines()
    assert len(lines) == len(known) + 4 and lines[-1].startswith("| models: none reported yet |") and {line.count("|") for line in lines} == {8}


def test_a_probe_predicts_states_that_are_allowed(tmp_path: Path) -> None:
    cases = seen(list(random_rows(40, 6)), tmp_path)
    allowed = {(row.outcome_mode, row.repair_outcome) for row in STATE_TABLE}
    for probe in audit_probes.probes(audit_probes.PARTIAL_VIEWS):
        for state, case in zip(audit.probe_states(probe, cases[:24], cases[24:]), cases[24:], strict=True):
            assert (state.outcome_mode, state.repair_outcome) in allowed and not state_problems(state, steps=case.steps)


# ---------------------------------------------------------------- the command
def test_the_command_prints_tables_a_verdict_and_the_rows(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(labelled_bytes(planted(list(random_rows(32, 1)), in_last_step)))
    run = command("scorer/audit.py", "train.csv", "--permutations", PERMUTATIONS)
    assert run.status == 1 and not run.err
    assert "outcome: macro-F1 of held-out rows" in run.out and "at n = 32 the bands of shuffled labels are wide" in run.out
    failing = next(line for line in run.out.splitlines() if line.startswith("  FAIL  partial.outcome_mode_p"))
    assert "last step (tfidf)" in failing
    assert re.search(r"FAIL  partial.outcome_mode_p.*\n.*Rows: RDOD2-\d{3}, ", run.out)
    assert re.search(r"\d+ checks of the profile v0.2: \d+ fail\n$", run.out)


def test_the_command_passes_where_every_check_does(command: Command, checkout: Path) -> None:
    limits = {"profiles": {"v0.2": [{"check": "coverage.absent_labels", "on": ["together"], "at_most": 99, "meaning": "Anything goes."}]}}
    (checkout / "scorer/audit_thresholds.json").write_text(json.dumps(limits))
    run = command(checkout / "scorer/audit.py", *SPLITS, "--permutations", PERMUTATIONS)
    assert (run.status, run.out.splitlines()[-1]) == (0, "1 checks of the profile v0.2: all pass")


def test_json_is_json_and_says_what_the_text_says(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(labelled_bytes(list(random_rows(16, 1))))
    run = command("scorer/audit.py", "train.csv", "--format", "json", "--permutations", PERMUTATIONS)
    report = json.loads(run.out, parse_constant=lambda word: pytest.fail(word))
    assert report["rows"] == {"together": 16, "train": 16} and report["permutations"] == PERMUTATIONS
    assert run.status == int(not report["passed"])
    assert {"name", "scope", "value", "limit", "passed", "meaning", "detail", "rows"} == set(report["checks"][0])


def test_html_is_one_file_in_which_text_is_text(command: Command, tmp_path: Path) -> None:
    rows = list(random_rows(16, 1))
    for row in rows[:2]:  # the most similar tasks are shown
        row["task"] = f'<script>alert("x")</script> & so on, & so forth: {row["task"]}'
    (tmp_path / "train.csv").write_bytes(labelled_bytes(rows))
    run = command("scorer/audit.py", "train.csv", "--format", "html", "--output", "a/audit.html", "--permutations", PERMUTATIONS)
    page = (tmp_path / "a/audit.html").read_text()
    assert "&lt;script&gt;" in page and "<script" not in page and "http" not in page and "src=" not in page
    assert "color-scheme: light dark" in page and "checks of the profile v0.2" in run.out


def test_bad_files_are_findings_and_nothing_is_written(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(labelled_bytes(list(random_rows(8, 1))).replace(b"no_drift", b"no_dirft", 1))
    run = command("scorer/audit.py", "train.csv", "--output", "audit.txt")
    assert run.status == 1 and "train.csv:2: outcome_mode: " in run.out and not (tmp_path / "audit.txt").exists()


@pytest.mark.parametrize(
    "arguments", [["none.csv"], ["train.csv", "--permutations", "50"], ["train.csv", "--format", "pdf"], ["train.csv", "other/train.csv"], []]
)
def test_what_cannot_be_done_is_said_in_one_line(arguments: list[str], command: Command, tmp_path: Path) -> None:
    for name in ("train.csv", "other/train.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(labelled_bytes(list(random_rows(8, 1))))
    run = command("scorer/audit.py", *arguments)
    assert run.status == 2 and not run.out and "error: " in run.err


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_handful_of_rows_is_audited_too(number: int, tmp_path: Path) -> None:
    cases = cases_of(list(random_rows(number, 1)), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = audit.audit({"train": cases}, PERMUTATIONS)
    assert report.files[TOGETHER] == number and not report.passed
    json.dumps(audit.json_report(report), allow_nan=False)
    assert audit.text_report(report) and audit.html_report(report)

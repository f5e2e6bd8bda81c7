"""The rules of contrast families: what is accepted, and what is found where."""

import random

import pytest
from conftest import ROOT
from labelled import cases_of, labelled, labelled_bytes, random_row, sentence

from rdod_metric.rules import Problem
from rdod_metric.scoring import resolution_floor
from scorer.families import family_problems, members_by_family, stray_problems


def family(number=1):
    """Return the six rows of a family that keeps every rule; `a` and `b` are the near neighbours, `a` is sound."""
    generator = random.Random(number)
    shared = random_row(generator, "", 5)
    rows = []
    for letter, state in zip("abcdef", (0, 1, 2, 3, 5, 6), strict=True):
        own = [*shared["trajectory"][:2], *(sentence(generator) for _ in range(3 + len(rows) % 3))]
        row = labelled(shared | {"scenario_id": f"RDOD3-{number:03d}{letter}", "trajectory": own}, generator, state, lost=1 + len(rows) % 2)
        rows.append(row | {"mechanism_family": row["mechanism_family"] if state == 0 else ("scope_collapse", "proxy_substitution")[len(rows) % 2]})
    sound, drifting = rows[:2]
    drifting |= {"trajectory": [*sound["trajectory"][:2], sentence(generator), *sound["trajectory"][3:]], "trajectory_length": 5, "first_drift_step": 3}
    drifting |= {"relative_onset_position": 0.6, "visible_failure_step": drifting["visible_failure_step"] and 4}
    for row in (sound, drifting):
        row["trajectory_structure"] = "made_up_near_neighbour"
    return rows


@pytest.fixture
def check(tmp_path):
    """Return a function that gives the findings on rows, or on several files of rows, as file, line, column and scenario."""

    def findings(*files):
        read = {f"{number}.csv": cases_of(rows, tmp_path) for number, rows in enumerate(files)}
        found = family_problems(read)
        assert all(problem.code == "contrast-family" and problem.found and problem.expected for problem in found)
        return [(problem.file, problem.line, problem.column, problem.scenario_id) for problem in found]

    return findings


def changed(rows, letter, **cells):
    return [row | cells if row["scenario_id"].endswith(letter) else row for row in rows]


def test_a_family_that_keeps_the_rules_is_accepted(check):
    assert check([*family(1), *family(2)]) == []
    assert check(family(1), family(2)) == []


def test_rows_without_a_family_are_none_of_its_business(check):
    rows = [row | {"scenario_id": f"RDOD2-00{number}"} for number, row in enumerate(family())]
    assert check(rows[:3]) == []


def test_an_opening_of_its_own_is_found(check):
    rows = family()
    rows[2] = rows[2] | {"trajectory": ["It begins in another way here.", *rows[2]["trajectory"][1:]]}
    assert check(rows) == [("0.csv", 4, "trajectory_json", "RDOD3-001c")]


def test_a_member_less_is_found_at_the_first_one(check):
    assert check(family()[:5]) == [("0.csv", 2, "scenario_id", "RDOD3-001a")]


def test_a_member_more_is_found(check):
    rows = family()
    assert check([*rows, rows[5] | {"scenario_id": "RDOD3-001g"}]) == [("0.csv", 2, "scenario_id", "RDOD3-001a")]


def test_a_family_in_two_splits_is_found_once_in_the_later_one(check):
    rows = family()
    assert check(rows[:3], [*family(2), *rows[3:]]) == [("1.csv", 8, "scenario_id", "RDOD3-001d")]


@pytest.mark.parametrize(
    ("cells", "column"),
    [({"domain": "law of the sea"}, "domain"), ({"task": "Another task."}, "task"), ({"constraints": "added"}, "constraints_json")],
)
def test_inputs_that_a_member_does_not_share_are_found_at_that_member(check, cells, column):
    rows = family()
    cells = {"constraints": [*rows[0]["constraints"], "One more."]} if column == "constraints_json" else cells
    assert check(changed(rows, "c", **cells)) == [("0.csv", 4, column, "RDOD3-001c")]


def relabelled(rows, states):
    generator = random.Random(9)
    return [
        labelled(row, generator, state, row["first_drift_step"], lost=1 + place % 2) | structure(row)
        for place, (row, state) in enumerate(zip(rows, states, strict=True))
    ]


def structure(row):
    return {"trajectory_structure": row["trajectory_structure"]}


def test_an_outcome_that_is_lacking_is_named(tmp_path):
    rows = relabelled(family(), (0, 1, 1, 1, 1, 1))
    (problem,) = family_problems({"f": cases_of(rows, tmp_path)})
    present = {row["outcome_mode"] for row in rows}
    assert (problem.column, problem.line) == ("outcome_mode", 2) and len(present) == 2
    assert not any(mode in problem.found for mode in present)
    assert sum(mode in problem.found for mode in ("latent_drift", "recovered_drift", "visible_failure")) == 2


def test_one_lost_constraint_is_too_few(check):
    rows = family()
    text = rows[0]["constraints"][0]
    same = [row if row["lost_constraint"] == "none" else row | {"lost_constraint": text} for row in rows]
    same = [row if row["residual_constraint_failure"] == "none" else row | {"residual_constraint_failure": text} for row in same]
    assert check(same) == [("0.csv", 2, "lost_constraint", "RDOD3-001a")]


def test_one_mechanism_family_is_too_few(check):
    rows = [row if row["mechanism_family"] == "none" else row | {"mechanism_family": "scope_collapse"} for row in family()]
    assert check(rows) == [("0.csv", 2, "mechanism_family", "RDOD3-001a")]


# ---------------------------------------------------------------- near neighbours
@pytest.mark.parametrize(("marked", "line"), [("", 2), ("a", 2), ("b", 3), ("abc", 2)])
def test_a_pair_is_two(check, marked, line):
    rows = [row | {"trajectory_structure": "near_neighbour" if row["scenario_id"][-1] in marked else "made_up"} for row in family()]
    assert check(rows) == [("0.csv", line, "trajectory_structure", f"RDOD3-001{'ab'[line - 2]}")]


def test_one_of_a_pair_is_sound(check):
    rows = family()
    third = rows[2] | {"trajectory": [*rows[1]["trajectory"][:4], "Another end."], "trajectory_length": 5, "trajectory_structure": "near_neighbour"}
    third = labelled(third, random.Random(1), 2, 2, lost=1) | structure(third)
    rows = [rows[0] | {"trajectory_structure": "made_up"}, rows[1], third | {"mechanism_family": "proxy_substitution"}, *rows[3:]]
    assert check(rows) == [("0.csv", 3, "outcome_mode", "RDOD3-001b")]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda steps: [*steps, "One more step."], id="another length"),
        pytest.param(lambda steps: [*steps[:4], "Another end."], id="two steps"),
    ],
)
def test_a_pair_differs_in_exactly_one_step(check, change):
    rows = family()
    steps = change(rows[1]["trajectory"])
    rows = changed(rows, "b", trajectory=steps, trajectory_length=len(steps), relative_onset_position=round(3 / len(steps), 4))
    assert check(rows) == [("0.csv", 3, "trajectory_json", "RDOD3-001b")]


def test_a_pair_that_differs_in_nothing_is_found(check):
    rows = family()
    assert check(changed(rows, "b", trajectory=rows[0]["trajectory"])) == [("0.csv", 3, "trajectory_json", "RDOD3-001b")]


# ---------------------------------------------------------------- what is not a rule of families
def test_a_family_with_a_problem_of_its_own_waits_for_its_mending(tmp_path):
    cases = cases_of([*family(1)[:5], *family(2)[:5]], tmp_path)
    known = Problem("invalid-label", "severity", "'grave'", "a label", scenario_id="RDOD3-001c")
    assert [problem.scenario_id for problem in family_problems({"f": cases}, [known])] == ["RDOD3-002a"]


def test_members_are_gathered_over_files(tmp_path):
    rows = family()
    files = {name: cases_of(part, tmp_path) for name, part in {"one": rows[:2], "two": rows[2:]}.items()}
    assert [member.file for member in members_by_family(files)["RDOD3-001"]] == ["one", "one", "two", "two", "two", "two"]


def test_an_id_without_a_family_is_a_stray(tmp_path):
    rows = changed(family(), "d", scenario_id="RDOD3-001")
    (problem,) = stray_problems({"f": cases_of(rows, tmp_path)})
    assert (problem.file, problem.line, problem.column, problem.scenario_id) == ("f", 5, "scenario_id", "RDOD3-001")


# ---------------------------------------------------------------- the page about them
@pytest.mark.parametrize("n", [60, 10])
def test_the_page_names_the_floor_that_the_scores_name(n):
    floor = resolution_floor(n)
    page = (ROOT / "docs/expanded.md").read_text(encoding="utf-8")
    assert f"{100 * floor['difference']:.1f} points" in page and f"({floor['cases']} cases)" in page


# ---------------------------------------------------------------- through the command
def test_the_command_tells_file_line_column_and_family(command, tmp_path):
    (tmp_path / "broken.csv").write_bytes(labelled_bytes(family()[:5]))
    (tmp_path / "whole.csv").write_bytes(labelled_bytes(family(2)))
    ended = command("scorer/validate.py", "labelled", "broken.csv", "whole.csv")
    assert ended.status == 1 and ended.out == "broken.csv:2: scenario_id: found 5 members of RDOD3-001, expected 6 [contrast-family]\n"
    assert command("scorer/validate.py", "labelled", "whole.csv").status == 0


@pytest.mark.parametrize("apart", [False, True], ids=["in one file", "in two files"])
def test_a_task_recurs_within_one_family_only(command, tmp_path, apart):
    first, second = family(1), [row | {"task": family(1)[0]["task"]} for row in family(2)]
    parts = {"one.csv": first, "two.csv": second} if apart else {"one.csv": [*first, *second]}
    for name, rows in parts.items():
        (tmp_path / name).write_bytes(labelled_bytes(rows))
    ended = command("scorer/validate.py", "labelled", *parts)
    assert ended.status == 1 and ended.out.count("[split-overlap]") == len(ended.out.splitlines()) == 6
    assert "the task of RDOD3-001a" in ended.out and "RDOD3-002a" in ended.out

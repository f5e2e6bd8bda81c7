"""Annotation with Label Studio: what is exported is valid there, and what comes back is what was labelled."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command
from samples import BLIND, GOLD, edited

from rdod_metric.rules import LABEL_COLUMNS, VOCABULARIES, State
from rdod_metric.tables import read_blind, read_cases, read_predictions
from scorer.validate import gold_by_id
from tools import annotate

Region = dict[str, Any]


def regions(state: State, severity: str = "") -> list[Region]:
    """Return an answer as Label Studio's page stores it: what `no_drift` hides isn't there."""
    values: list[tuple[str, str, Any]] = [("outcome_mode", "choices", [state.outcome_mode])]
    if state.first_drift_step:
        values += [
            ("first_drift_step", "number", state.first_drift_step),
            ("mechanism_family", "choices", [state.mechanism_family]),
            ("repair_outcome", "choices", [state.repair_outcome]),
            ("residual_constraint_id", "choices", [str(state.residual_constraint_id or "none")]),
        ]
        values += [("severity", "choices", [severity])] if severity else []
    return [
        {"id": f"r{place}", "from_name": name, "to_name": "steps", "type": kind, "origin": "manual", "value": {kind: value}}
        for place, (name, kind, value) in enumerate(values)
    ]


def annotation(result: list[Region], annotator: Any = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "completed_by": annotator,
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": 6.7,
        "draft_created_at": None,
    } | more


@pytest.fixture
def project(files: Path, command: Command) -> tuple[list[dict[str, Any]], str]:
    """Return tasks and configuration of the sample's blind file."""
    run = command("tools/annotate.py", "export", "blind.csv", "--tasks", "out/tasks.json", "--config", "out/config.xml", "--severity")
    assert (run.status, run.err) == (0, "") and run.out.startswith("8 tasks written to out/tasks.json")
    return json.loads((files / "out/tasks.json").read_text()), (files / "out/config.xml").read_text()


def answered(tasks: list[dict[str, Any]], gold: Path, **by: Any) -> list[dict[str, Any]]:
    """Return the JSON export after annotators gave gold's answers; `by` says who to which scenarios."""
    cases = {case.gold.scenario_id: case for case in read_cases(gold)[0]}
    exported = []
    for number, task in enumerate(tasks, 1):
        case = cases[task["data"]["scenario_id"]]
        annotations = [
            annotation(regions(case.gold.state, case.row.cells["severity"].replace("none", "")), int(who[1:]))
            for who, names in by.items()
            if case.gold.scenario_id in names
        ]
        exported.append({"id": number, "annotations": annotations, "drafts": [], "predictions": [], **task, "meta": {}, "inner_id": number})
    return exported


def ids(first: int = 21, last: int = 28) -> list[str]:
    return [f"RDOD2-{number:03d}" for number in range(first, last + 1)]


def imported(command: Command, files: Path, *exports: Any):
    names = []
    for place, export in enumerate(exports):
        names.append(f"export{place}.json")
        content = export if isinstance(export, bytes) else json.dumps(export).encode()
        (files / names[-1]).write_bytes(content)
    return command("tools/annotate.py", "import", *names, "--blind", "blind.csv", "--output", "answers")


# ---------------------------------------------------------------- there and back
def test_round_trip(project: tuple[list[dict[str, Any]], str], files: Path, command: Command) -> None:
    run = imported(command, files, answered(project[0], files / "gold.csv", a1=ids(), a2=ids(22, 27)))
    assert run.status == 0
    assert run.out == "8 of 8 scenarios written to answers/annotator-1.csv\n6 of 8 scenarios written to answers/annotator-2.csv\n"
    gold = {case.gold.scenario_id: case for case in read_cases(files / "gold.csv")[0]}
    for annotator, names in (("1", ids()), ("2", ids(22, 27))):
        rows = list(csv.DictReader(io.StringIO((files / f"answers/annotator-{annotator}.csv").read_text())))
        assert [row["scenario_id"] for row in rows] == names
        assert [row["severity"] for row in rows] == [gold[name].row.cells["severity"] for name in names]
    agreed = command("scorer/agreement.py", "answers/annotator-1.csv", "answers/annotator-2.csv", "--gold", "gold.csv", "--resamples", 20)
    assert agreed.status == 0 and "Disputed scenarios: 0 of 6" in agreed.out and "1.000" in agreed.out


def test_without_severity_the_files_are_prediction_files(files: Path, command: Command) -> None:
    assert command("tools/annotate.py", "export", "blind.csv", "--tasks", "tasks.json", "--config", "config.xml").status == 0
    assert "severity" not in (files / "config.xml").read_text()
    cases = {case.gold.scenario_id: case.gold for case in read_cases(files / "gold.csv")[0]}
    export = [
        {**task, "annotations": [annotation(regions(cases[task["data"]["scenario_id"]].state))]} for task in json.loads((files / "tasks.json").read_text())
    ]
    assert imported(command, files, export).status == 0
    submission = read_predictions(files / "answers/annotator-1.csv", gold_by_id(read_cases(files / "gold.csv")[0]))
    assert not submission.problems and {name: answer.state for name, answer in submission.predictions.items()} == {
        name: case.state for name, case in cases.items()
    }
    scored = command("scorer/score.py", "gold.csv", "answers/annotator-1.csv", "--json")
    assert json.loads(scored.out)["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"] == 1


def test_every_state_of_the_release_comes_back(command: Command, tmp_path: Path) -> None:
    blind = [scenario for _, scenario in read_blind(ROOT / "data/test_blind.csv")[0]]
    gold = {case.gold.scenario_id: case.gold.state for case in read_cases(ROOT / "data/test.csv")[0]}
    export = [{**annotate.task(scenario), "annotations": [annotation(regions(gold[scenario.scenario_id]))]} for scenario in blind]
    (tmp_path / "export.json").write_text(json.dumps(export))
    answers, problems = annotate.read_export(tmp_path / "export.json", {scenario.scenario_id: scenario for scenario in blind}, set())
    assert not problems and {answer.scenario_id: answer.state for answer in answers} == gold


def test_exports_of_several_projects_go_together(project: tuple[list[dict[str, Any]], str], files: Path, command: Command) -> None:
    one, two = (answered(project[0], files / "gold.csv", **{who: ids()}) for who in ("a3", "a12"))
    run = imported(command, files, one, two)
    assert run.status == 0 and [line.split("/")[-1] for line in run.out.splitlines()] == ["annotator-3.csv", "annotator-12.csv"]
    assert imported(command, files, one, one).out.count("[duplicate-scenario]") == 8


def test_skipped_tasks_and_drafts_are_left_out(project: tuple[list[dict[str, Any]], str], files: Path, command: Command) -> None:
    export = answered(project[0], files / "gold.csv", a1=ids())
    export[0]["annotations"] = [annotation([], was_cancelled=True)]
    export[1]["drafts"] = [{"result": regions(State("no_drift", None, "none", "not_applicable", None)), "user": "two@example.org"}]
    run = imported(command, files, export)
    assert run.status == 0 and run.out == "7 of 8 scenarios written to answers/annotator-1.csv\n"


def test_an_annotator_s_address_goes_nowhere(project: tuple[list[dict[str, Any]], str], files: Path, command: Command) -> None:
    export = answered(project[0], files / "gold.csv", a1=ids())
    for entry in export:
        entry["annotations"][0]["completed_by"] = {"id": 4, "email": "someone@example.org", "first_name": "Some", "last_name": "One"}
    run = imported(command, files, export)
    assert run.status == 0 and [path.name for path in (files / "answers").iterdir()] == ["annotator-4.csv"]
    assert "someone" not in (files / "answers/annotator-4.csv").read_text() + run.out


# ---------------------------------------------------------------- Label Studio's own view
def test_the_configuration_is_valid_by_label_studio_s_own_parser(project: tuple[list[dict[str, Any]], str], files: Path) -> None:
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk has no wheels for this Python")
    tasks, config = project
    parsed = interface.LabelInterface(config)
    parsed.validate()
    assert all(parsed.validate_task(task) for task in tasks)
    labels = {control.name: list(getattr(control, "labels", None) or []) for control in parsed.controls}
    assert set(labels) == {"outcome_mode", "first_drift_step", "mechanism_family", "repair_outcome", "residual_constraint_id", "severity"}
    assert labels["outcome_mode"] == list(VOCABULARIES["outcome_mode"])
    assert labels["mechanism_family"] == list(VOCABULARIES["mechanism_family"][1:])
    assert labels["repair_outcome"] == list(VOCABULARIES["repair_outcome"][1:])
    assert labels["residual_constraint_id"] == ["none", "1", "2", "3"]
    for entry in answered(tasks, files / "gold.csv", a1=ids()):
        assert parsed.validate_annotation(entry["annotations"][0])
    wrong = annotation(regions(State("drifting", 2, "scope_collapse", "unrepaired", 1)))
    assert not parsed.validate_annotation(wrong)


def test_tasks_hold_the_inputs_and_no_label(project: tuple[list[dict[str, Any]], str]) -> None:
    tasks, config = project
    assert {key for task in tasks for key in task["data"]} == {"scenario_id", "domain", "task", "constraints", "steps"}
    assert not any(column in json.dumps(tasks) for column in LABEL_COLUMNS)
    assert tasks[0]["data"]["steps"].startswith("1. ") and "\n\n6. " in tasks[0]["data"]["steps"]
    assert 'max="6"' in config


def test_text_that_looks_like_markup_stays_text(files: Path, command: Command) -> None:
    (files / "blind.csv").write_bytes(edited(BLIND, 21, task='<View> & "quotes" $steps'))
    assert command("tools/annotate.py", "export", "blind.csv", "--tasks", "tasks.json", "--config", "config.xml").status == 0
    assert json.loads((files / "tasks.json").read_text())[0]["data"]["task"] == '<View> & "quotes" $steps'
    assert "quotes" not in (files / "config.xml").read_text()


# ---------------------------------------------------------------- what is refused
def test_answers_that_break_a_rule_are_findings_that_name_the_annotator(project: tuple[list[dict[str, Any]], str], files: Path, command: Command) -> None:
    export = answered(project[0], files / "gold.csv", a1=ids(), a2=ids())
    export[1]["annotations"][1]["result"] = regions(State("latent_drift", 99, "scope_collapse", "unrepaired", 1))
    export[2]["annotations"][0]["result"] = regions(State("recovered_drift", 2, "scope_collapse", "unrepaired", 1))
    export[3]["annotations"][0]["result"] = []
    export[4]["annotations"].append(annotation(regions(State("no_drift", None, "none", "not_applicable", None)), 2))
    run = imported(command, files, export)
    assert run.status == 1 and not (files / "answers").exists()
    assert "export0.json: predicted_first_drift_step: RDOD2-022: found 99 (annotator 2), expected a step from 1 to 6" in run.out
    assert "RDOD2-023: found unrepaired (annotator 1)" in run.out and "[inconsistent-state]" in run.out
    assert "RDOD2-024: found a blank (annotator 1)" in run.out
    assert "[duplicate-scenario]" in run.out and "(annotator 2)" in run.out


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda export: b"{", "[invalid-json]"),
        (lambda export: b"\xff\xfe", "[encoding]"),
        (lambda export: b"[" * 100_000, "[invalid-json]"),
        (lambda export: {"tasks": export}, "[not-an-export]"),
        (lambda export: [], "[no-rows]"),
        (lambda export: [entry["data"] | {"outcome_mode": "no_drift"} for entry in export], "a task without data.scenario_id as task 1"),
        (lambda export: [{"data": entry["data"]} for entry in export], "a task without annotations as task 1"),
        (lambda export: [{**entry, "annotations": [{"result": []}]} for entry in export], "an annotation without result or annotator"),
        (lambda export: [{**entry, "data": entry["data"] | {"scenario_id": "RDOD2-99"}} for entry in export[:1]], "[unknown-scenario]"),
        (lambda export: [{**entry, "data": entry["data"] | {"steps": "1. Another."}} for entry in export[:1]], "[blind-mismatch]"),
        (lambda export: [{**export[0], "annotations": [annotation([{"from_name": "mood", "value": {"choices": ["good"]}}])]}], "[not-an-export]"),
        (
            lambda export: [{**export[0], "annotations": [annotation([{"from_name": "outcome_mode", "value": {"choices": ["no_drift", "latent_drift"]}}])]}],
            "[invalid-label]",
        ),
        (lambda export: [{**export[0], "annotations": [annotation([3])]}], "[not-an-export]"),
    ],
)
def test_what_is_no_export_is_a_finding(change, finding: str, project: tuple[list[dict[str, Any]], str], files: Path, command: Command) -> None:
    run = imported(command, files, change(answered(project[0], files / "gold.csv", a1=ids())))
    assert run.status == 1 and finding in run.out and not (files / "answers").exists()


def test_a_blind_file_with_labels_is_not_exported(files: Path, command: Command) -> None:
    (files / "blind.csv").write_bytes(GOLD)
    run = command("tools/annotate.py", "export", "blind.csv", "--tasks", "tasks.json", "--config", "config.xml")
    assert run.status == 1 and "outcome_mode" in run.out and not (files / "tasks.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "none.csv", "--tasks", "t", "--config", "c"],
        ["export", "blind.csv", "--tasks", "blind.csv", "--config", "c"],
        ["import", "none.json", "--blind", "blind.csv", "--output", "o"],
        ["export", "blind.csv"],
        [],
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], files: Path, command: Command) -> None:
    run = command("tools/annotate.py", *arguments)
    assert run.status == 2 and "error: " in run.err and (files / "blind.csv").read_bytes() == BLIND

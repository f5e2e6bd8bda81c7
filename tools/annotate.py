#!/usr/bin/env python3
"""Have people label blind rows in Label Studio, and turn what they did into prediction-format files.

  annotate.py export BLIND --tasks FILE --config FILE [--severity]
  annotate.py import EXPORT [EXPORT ...] --blind BLIND --output FOLDER

`export` writes the tasks and the labelling configuration for new projects. `import` reads the JSON exports
of one or more projects on one server and writes one annotator-ID.csv for each annotator, for
scorer/agreement.py. Skipped tasks and drafts are left out. Exit status: 0 written, 1 findings, 2 the command could not do its work.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import (
    MECHANISM_FAMILIES,
    NONE,
    OUTCOME_MODES,
    PREDICTION_COLUMNS,
    REPAIR_OUTCOMES,
    SEVERITIES,
    Problem,
    Refused,
    Scenario,
    State,
    attempt,
    duplicate_scenario,
    parse_json,
    parse_label,
    parse_targets,
    shown,
    unknown_scenario,
)
from rdod_metric.tables import read_blind
from scorer.command import VALID, check_output, existing_file, print_findings, run, write_whole

QUESTIONS = {
    "outcome_mode": "Outcome mode: what state does the trajectory end in?",
    "first_drift_step": "First drift step: the first step after which a constraint is no longer honoured",
    "mechanism_family": "Mechanism family: the form of the loss at that step (the first question of the guide's table that fits)",
    "repair_outcome": "Repair outcome: how much of the drift is repaired where the trajectory ends",
    "residual_constraint_id": "Residual constraint: the one that is still violated at the end, or none",
    "severity": "Severity: the consequence of the drift within this scenario",
}
"""What the annotator is asked, by the name of the control."""


# ---------------------------------------------------------------- export
def task(scenario: Scenario) -> dict[str, Any]:
    """Return a blind row as a Label Studio task; it holds the model inputs and nothing else."""
    return {
        "data": {
            "scenario_id": scenario.scenario_id,
            "domain": scenario.domain,
            "task": scenario.task,
            "constraints": _numbered(scenario.constraints),
            "steps": _numbered(scenario.trajectory),
        }
    }


def _numbered(texts: Sequence[str]) -> str:
    return "\n\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def _choices(name: str, values: Sequence[str]) -> str:
    options = "".join(f"<Choice value={quoteattr(value)}/>" for value in values)
    return (
        f"<Header value={quoteattr(QUESTIONS[name])} size='5'/>"
        f'<Choices name="{name}" toName="steps" choice="single-radio" required="true" showInline="true">{options}</Choices>'
    )


def labelling_config(scenarios: Sequence[Scenario], severity: bool = False) -> str:
    """Return the labelling configuration: inputs on top, then the outcome and, unless it is `no_drift`, the rest.

    Args:
        scenarios: the rows to label, at least one; the longest bounds step and constraint numbers.
        severity: whether severity is asked for too.
    """
    steps = max(len(scenario.trajectory) for scenario in scenarios)
    constraints = max(len(scenario.constraints) for scenario in scenarios)
    drift = ",".join(OUTCOME_MODES[1:])
    return f"""<View>
<Header value="$scenario_id"/>
<Header value="$domain" size="5"/>
<Text name="task" value="$task"/>
<Header value="Constraints" size="5"/>
<Text name="constraints" value="$constraints"/>
<Header value="Steps" size="5"/>
<Text name="steps" value="$steps"/>
{_choices("outcome_mode", OUTCOME_MODES)}
<View visibleWhen="choice-selected" whenTagName="outcome_mode" whenChoiceValue="{drift}">
<Header value={quoteattr(QUESTIONS["first_drift_step"])} size="5"/>
<Number name="first_drift_step" toName="steps" min="1" max="{steps}" step="1" required="true"/>
{_choices("mechanism_family", MECHANISM_FAMILIES[1:])}
{_choices("repair_outcome", REPAIR_OUTCOMES[1:])}
{_choices("residual_constraint_id", [NONE, *map(str, range(1, constraints + 1))])}
{_choices("severity", SEVERITIES[1:]) if severity else ""}
</View>
</View>
"""


# ---------------------------------------------------------------- import
class Labelled(NamedTuple):
    """One annotator's answer for one scenario; `severity` is None where it wasn't asked."""

    annotator: str
    scenario_id: str
    state: State
    severity: str | None


_EXPORT = "Label Studio's export in the format JSON (not JSON-MIN): an array of tasks with their annotations"


def read_export(path: Path, blind: Mapping[str, Scenario], seen: set[tuple[str, str]]) -> tuple[list[Labelled], list[Problem]]:
    """Return the answers in a project's JSON export, and all that is wrong with it.

    Args:
        path: the export.
        blind: the rows that tasks were made from.
        seen: annotators and scenarios that were read before; those of this export are added.
    """
    try:
        tasks = parse_json(path.read_bytes().decode("utf-8-sig"), "file", _EXPORT)
    except UnicodeDecodeError:
        return [], [Problem("encoding", "file", "text that is no UTF-8", _EXPORT, file=str(path))]
    except Refused as refused:
        return [], [refused.problem._replace(file=str(path))]
    problems: list[Problem] = []
    answers: list[Labelled] = []
    for place, entry in enumerate(tasks if isinstance(tasks, list) else [tasks]):
        if fault := _fault(entry):
            problems.append(Problem("not-an-export", "file", f"{fault} as task {place + 1}", _EXPORT))
            continue
        name = entry["data"]["scenario_id"]
        if name not in blind:
            problems.append(unknown_scenario(name, blind)._replace(expected="an id of the blind file"))
            continue
        if entry["data"] != task(blind[name])["data"]:
            found = "other text than the blind file has"
            problems.append(Problem("blind-mismatch", "task", found, "the task that was made from this blind file", scenario_id=name))
            continue
        for annotation in entry["annotations"]:
            if annotation.get("was_cancelled"):
                continue
            annotator = _annotator(annotation)
            found_problems: list[Problem] = []
            answer = _answer(annotation["result"], annotator, blind[name], found_problems)
            if (annotator, name) in seen:
                found_problems.append(duplicate_scenario(name, "another annotation by the same annotator"))
            seen.add((annotator, name))
            problems += [problem._replace(found=f"{problem.found} (annotator {annotator})", scenario_id=name) for problem in found_problems]
            if answer and not found_problems:
                answers.append(answer)
    return answers, [problem._replace(file=str(path)) for problem in problems]


def _fault(entry: Any) -> str:
    """Say what keeps an entry from being an exported task, or ''."""
    if not isinstance(entry, dict):
        return shown(entry)
    if not isinstance(entry.get("data"), dict) or not isinstance(entry["data"].get("scenario_id"), str):
        return "a task without data.scenario_id"
    annotations = entry.get("annotations")
    if not isinstance(annotations, list):
        return "a task without annotations"
    if not all(isinstance(annotation, dict) and isinstance(annotation.get("result"), list) and _annotator(annotation) for annotation in annotations):
        return "an annotation without result or annotator"
    return ""


def _annotator(annotation: Mapping[str, Any]) -> str:
    """Return the number by which Label Studio knows the annotator, or ''; never an address."""
    person = annotation.get("completed_by")
    number = person.get("id") if isinstance(person, dict) else person
    return str(number) if isinstance(number, int) and not isinstance(number, bool) else ""


def _answer(result: Sequence[Any], annotator: str, scenario: Scenario, problems: list[Problem]) -> Labelled | None:
    """Return what an annotation says, noting what is wrong with it. What `no_drift` leaves unasked has its only value."""
    values: dict[str, Any] = {}
    for region in result:
        name = str(region.get("from_name")) if isinstance(region, dict) else ""
        if name not in QUESTIONS or not isinstance(region.get("value"), dict):
            problems.append(Problem("not-an-export", "result", shown(region), "answers to the questions of this project's configuration"))
            continue
        value = region["value"]
        chosen = value.get("choices", [value.get("number")])
        values[name] = chosen[0] if isinstance(chosen, list) and len(chosen) == 1 else chosen
    if values.get("outcome_mode") == "no_drift":
        values = {"mechanism_family": NONE, "repair_outcome": "not_applicable"} | values
    state, found = parse_targets(
        [values.get(column.removeprefix("predicted_"), "") for column in PREDICTION_COLUMNS[1:]], len(scenario.trajectory), len(scenario.constraints)
    )
    problems += found
    severity = attempt(problems, parse_label, values["severity"], "severity", SEVERITIES) if "severity" in values else None
    return Labelled(annotator, scenario.scenario_id, state, severity) if state else None


def annotator_csv(answers: Sequence[Labelled]) -> str:
    """Return one annotator's answers as a prediction-format file; the column severity follows where it was asked for."""
    severity = any(answer.severity is not None for answer in answers)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*PREDICTION_COLUMNS, *(["severity"] if severity else [])])
    for answer in answers:
        cells = ["" if value is None else value for value in answer.state[:-1]]
        row = [answer.scenario_id, *cells, answer.state.residual_constraint_id or NONE]
        writer.writerow([*row, *([answer.severity or (NONE if answer.state.outcome_mode == "no_drift" else "")] if severity else [])])
    return text.getvalue()


def by_annotator(answers: Sequence[Labelled], order: Sequence[str]) -> Iterator[tuple[str, list[Labelled]]]:
    """Yield each annotator with their answers, in the order of the blind file."""
    places = {name: place for place, name in enumerate(order)}
    for annotator in sorted({answer.annotator for answer in answers}, key=int):
        own = [answer for answer in answers if answer.annotator == annotator]
        yield annotator, sorted(own, key=lambda answer: places[answer.scenario_id])


# ---------------------------------------------------------------- the command
def _export(blind: Path, tasks: Path, config: Path, severity: bool) -> int:
    for output in (tasks, config):
        check_output(output, blind)
    rows, problems = read_blind(blind)
    if problems:
        return print_findings(problems)
    scenarios = [scenario for _, scenario in rows]
    write_whole(tasks, json.dumps([task(scenario) for scenario in scenarios], indent=2, ensure_ascii=False) + "\n")
    write_whole(config, labelling_config(scenarios, severity))
    print(f"{len(scenarios)} tasks written to {tasks}; paste {config} as the project's labelling configuration (Settings, Labeling Interface, Code)")
    return VALID


def _import(exports: Sequence[Path], blind: Path, folder: Path) -> int:
    rows, problems = read_blind(blind)
    if problems:
        return print_findings(problems)
    scenarios = {scenario.scenario_id: scenario for _, scenario in rows}
    answers: list[Labelled] = []
    seen: set[tuple[str, str]] = set()
    for export in exports:
        found, wrong = read_export(export, scenarios, seen)
        problems += wrong
        if not found and not wrong:
            problems.append(Problem("no-rows", "file", "no finished annotation", "one or more", file=str(export)))
        answers += found
    if problems:
        return print_findings(problems)
    for annotator, own in by_annotator(answers, list(scenarios)):
        path = folder / f"annotator-{annotator}.csv"
        write_whole(path, annotator_csv(own))
        print(f"{len(own)} of {len(scenarios)} scenarios written to {path}")
    return VALID


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    export = kinds.add_parser("export", help="blind rows to tasks and configuration")
    export.add_argument("blind", help="the file of model inputs")
    export.add_argument("--tasks", type=Path, required=True, metavar="FILE", help="the tasks to import into the project")
    export.add_argument("--config", type=Path, required=True, metavar="FILE", help="the project's labelling configuration")
    export.add_argument("--severity", action="store_true", help="ask for severity too")
    import_ = kinds.add_parser("import", help="projects' JSON exports to prediction-format files")
    import_.add_argument("exports", nargs="+", metavar="EXPORT", help="a project's JSON export")
    import_.add_argument("--blind", required=True, metavar="FILE", help="the file of model inputs that the tasks were made from")
    import_.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="folder of the annotators' files")
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    arguments = _parser().parse_args()
    if arguments.kind == "export":
        return _export(existing_file(arguments.blind), arguments.tasks, arguments.config, arguments.severity)
    return _import([existing_file(name) for name in arguments.exports], existing_file(arguments.blind), arguments.output)


if __name__ == "__main__":
    run(main)

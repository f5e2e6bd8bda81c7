#!/usr/bin/env python3
"""Score a prediction file against a labelled file and print both leaderboards.

What the validator refuses is refused here with the same findings, and nothing is written. Exit
status: 0 scored, 1 findings, 2 the command could not do its work.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import TARGETS, text_sha256
from rdod_metric.scoring import COMPONENTS, score
from rdod_metric.tables import read_cases, read_predictions
from scorer.command import FINDINGS, VALID, Unable, existing_file, finding_line, print_findings, run, write_whole
from scorer.validate import gold_by_id


def shown(value: float | None) -> str:
    """Return a score as the text report shows it."""
    return "undefined" if value is None else f"{value:.4f}"


def _leaderboards(report: Mapping[str, Any]) -> Iterator[str]:
    a, b = report["leaderboard_a_component_capability"], report["leaderboard_b_complete_reasoning_state"]
    n = report["benchmark"]["n"]
    yield "Leaderboard A: component capability (can it identify the parts?)"
    yield f"  {'component_mean':<36}{shown(a['component_mean']):>10}"
    for name in COMPONENTS:
        yield f"    {name:<34}{shown(a[name]):>10}"
    yield ""
    yield "Leaderboard B: complete reasoning state (can it reconstruct the whole?)"
    yield f"  {'complete_primary_accuracy':<36}{shown(b['complete_primary_accuracy']):>10}"
    for place, (target, count) in enumerate(b["ladder"].items()):
        yield f"    {('right on ' if not place else '+ ') + target:<34}{count:>10} of {n}"


def _classes(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'Class support and per-class values':<40}{'support':>8}{'predicted':>11}{'precision':>11}{'recall':>9}{'f1':>9}"
    for field, rows in report["per_class_metrics"].items():
        yield f"  {field}"
        for label, row in rows.items():
            yield f"    {label:<36}{row['support']:>8}{row['predicted']:>11}{row['precision']:>11.4f}{row['recall']:>9.4f}{row['f1']:>9.4f}"


def _wrong_cases(report: Mapping[str, Any]) -> Iterator[str]:
    wrong = [row for row in report["prediction_table"] if not row["complete_primary_correct"]]
    yield f"Cases not completely right: {len(wrong)} of {report['benchmark']['n']}"
    for row in wrong:
        fields = [f"{target}: {_value(row[f'predicted_{target}'])} for {_value(row[f'gold_{target}'])}" for target in TARGETS if not row[f"{target}_correct"]]
        yield f"  {row['scenario_id']}  " + "; ".join(fields)


def _value(value: object) -> str:
    return "none" if value is None else str(value)


def text_report(report: Mapping[str, Any]) -> str:
    """Return the report for a person's eye: both leaderboards with supports, n, ladder, classes and wrong cases."""
    benchmark = report["benchmark"]
    lines = [
        benchmark["name"],
        f"gold {benchmark['gold_file']} (sha256 {str(benchmark['gold_sha256'])[:12]}), scorer {benchmark['scorer_version']}, n = {benchmark['n']} cases",
    ]
    if benchmark["invalid_predictions"]:
        lines.append(f"invalid predictions, counted wrong on every target: {benchmark['invalid_predictions']}")
    lines += ["", *_leaderboards(report), "", "Secondary diagnostics (they rank nothing)"]
    lines += [f"  {name:<36}{shown(value):>10}" for name, value in report["secondary_diagnostics"].items()]
    return "\n".join([*lines, "", *_classes(report), "", *_wrong_cases(report)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", help="the labelled file")
    parser.add_argument("predictions", help="the prediction file")
    parser.add_argument("--json", action="store_true", help="print the JSON report instead of the text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the JSON report to FILE (its folder is made)")
    parser.add_argument(
        "--invalid",
        choices=("error", "incorrect"),
        default="error",
        help="an answer that breaks a rule or is missing: refuse the file (default), or count the case wrong on every target and say so",
    )
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    arguments = _parser().parse_args()
    gold_path, path = existing_file(arguments.gold), existing_file(arguments.predictions)
    if arguments.output is not None and arguments.output.is_dir():
        raise Unable(f"can't write {arguments.output}: it is a folder")
    cases, problems = read_cases(gold_path)
    if problems:
        return print_findings(problems)
    gold = gold_by_id(cases)
    submission = read_predictions(path, gold, invalid=arguments.invalid)
    if submission.problems:
        print_findings(submission.problems)
        return FINDINGS
    for problem in submission.invalid:
        print(f"counted wrong: {finding_line(problem)}", file=sys.stderr)
    report = score(list(gold.values()), submission.predictions, gold_file=gold_path.name, gold_sha256=text_sha256(gold_path.read_bytes()))
    text = json.dumps(report, indent=2, ensure_ascii=True, allow_nan=False)
    if arguments.output is not None:
        write_whole(arguments.output, text + "\n")
    print(text if arguments.json else text_report(report))
    return VALID


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Score a prediction file against a labelled file and print both leaderboards.

What the validator refuses is refused here with the same findings, and nothing is written. Exit
status: 0 scored, 1 findings, 2 the command could not do its work.
"""

import argparse
import gc
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.hidden import HiddenGold, HiddenGoldError
from rdod_metric.rules import TARGETS
from rdod_metric.scoring import COMPONENTS, Resampling, encode, score
from rdod_metric.tables import Case, file_sha256, read_gold, read_predictions
from scorer.command import FINDINGS, VALID, Unable, check_output, existing_file, finding_line, print_findings, run, write_whole
from scorer.strata import STRATA, strata_lines, stratum_scores

TABLE_LIMIT = 10_000
"""Cases up to which a report holds the table of single cases unasked."""

_LARGE = 1 << 22  # bytes of a file, or draws of a bootstrap, that may take seconds


def shown(value: float | None) -> str:
    """Return a score as the text report shows it."""
    return "undefined" if value is None else f"{value:.4f}"


def bounds(interval: Mapping[str, Any] | None) -> str:
    """Return an interval as the text report shows it, '' for none."""
    return "" if interval is None else f"  [{shown(interval['low'])}, {shown(interval['high'])}]"


def _leaderboards(report: Mapping[str, Any]) -> Iterator[str]:
    a, b = report["leaderboard_a_component_capability"], report["leaderboard_b_complete_reasoning_state"]
    n, intervals = report["benchmark"]["n"], report.get("intervals", {})
    yield "Leaderboard A: component capability (can it identify the parts?)"
    yield f"  {'component_mean':<36}{shown(a['component_mean']):>10}{bounds(intervals.get('component_mean'))}"
    for name in COMPONENTS:
        yield f"    {name:<34}{shown(a[name]):>10}{bounds(intervals.get(name))}"
    yield ""
    yield "Leaderboard B: complete reasoning state (can it reconstruct the whole?)"
    name = "complete_primary_accuracy"
    yield f"  {name:<36}{shown(b[name]):>10}{bounds(intervals.get(name))}"
    for place, (target, count) in enumerate(b["ladder"].items()):
        yield f"    {('right on ' if not place else '+ ') + target:<34}{count:>10} of {n}"


def _uncertainty(report: Mapping[str, Any]) -> Iterator[str]:
    """Say how far the scores can be trusted at this n."""
    drawn, wilson = report.get("resampling"), report["wilson_intervals"]
    for name in wilson["intervals"] if drawn else ["complete_primary_accuracy"]:
        yield f"{name}, {100 * wilson['level']:g}% Wilson interval: {bounds(wilson['intervals'][name]).strip()}"
    if drawn:
        yield f"intervals beside the scores: {100 * drawn['level']:g}%, {drawn['method']} ({drawn['resamples']:,} resamples of {drawn['units']} units)"
        if undefined := {name: row["undefined_resamples"] for name, row in report["intervals"].items() if row["undefined_resamples"]}:
            yield "resamples left out where the score is undefined: " + ", ".join(f"{count} of {name}" for name, count in undefined.items())
    floor = report["resolution_floor"]
    yield f"resolution floor: {shown(floor['difference'])}. {floor['meaning']}"


def _shifts(report: Mapping[str, Any]) -> str:
    check = report["onset_shift_check"]
    moved = ", ".join(f"{shown(value)} at {shift}" for shift, value in check["exact_onset_accuracy"].items() if shift != "0")
    return f"  exact onset accuracy were every predicted onset moved by one step: {moved} ({check['numeric_cases']} cases with two onsets)"


def _classes(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'Class support and per-class values':<40}{'support':>8}{'predicted':>11}{'precision':>11}{'recall':>9}{'f1':>9}"
    for field, rows in report["per_class_metrics"].items():
        yield f"  {field}"
        for label, row in rows.items():
            yield f"    {label:<36}{row['support']:>8}{row['predicted']:>11}{row['precision']:>11.4f}{row['recall']:>9.4f}{row['f1']:>9.4f}"


def _supports(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'Class support':<40}{'support':>8}"
    for field, rows in report["class_support"].items():
        yield f"  {field}"
        yield from (f"    {label:<36}{count:>8}" for label, count in rows.items())


def _wrong_cases(report: Mapping[str, Any]) -> Iterator[str]:
    n = report["benchmark"]["n"]
    wrong = n - report["leaderboard_b_complete_reasoning_state"]["ladder"][TARGETS[-1]]
    yield f"Cases not completely right: {wrong} of {n}" + ("" if report["prediction_table"] else " (named with --table)")
    for row in report["prediction_table"]:
        if row["predicted_outcome_mode"] is None:
            yield f"  {row['scenario_id']}  no valid answer"
        elif not row["complete_primary_correct"]:
            fields = [
                f"{target}: {_value(row[f'predicted_{target}'])} for {_value(row[f'gold_{target}'])}" for target in TARGETS if not row[f"{target}_correct"]
            ]
            yield f"  {row['scenario_id']}  " + "; ".join(fields)


def _value(value: object) -> str:
    return "none" if value is None else str(value)


def text_report(report: Mapping[str, Any]) -> str:
    """Return the report for a person's eye: both leaderboards with supports, n, uncertainty, ladder and, unless gold is hidden, classes, strata and cases."""
    benchmark, intervals = report["benchmark"], report.get("intervals", {})
    gold = benchmark["gold_file"] or "hidden"
    lines = [
        benchmark["name"],
        f"gold {gold} (sha256 {str(benchmark['gold_sha256'])[:12]}), scorer {benchmark['scorer_version']}, n = {benchmark['n']} cases",
        report["signature"],
    ]
    if benchmark["invalid_predictions"]:
        lines.append(f"invalid predictions, counted wrong on every target: {benchmark['invalid_predictions']}")
    lines += ["", *_leaderboards(report), "", *_uncertainty(report), "", "Secondary diagnostics (they rank nothing)"]
    lines += [f"  {name:<36}{shown(value):>10}{bounds(intervals.get(name))}" for name, value in report["secondary_diagnostics"].items()]
    if benchmark.get("hidden"):
        return "\n".join([*lines, "", *_supports(report)])
    lines += [_shifts(report), "", *_classes(report)]
    for by, scores in report.get("strata", {}).items():
        lines += ["", *strata_lines(by, scores)]
    return "\n".join([*lines, "", *_wrong_cases(report)])


def progress(what: str, size: int, total: int | None = None) -> Callable[[Any], Iterable[Any]]:
    """Return what shows the progress of an iterable on a terminal once it takes more than two seconds; small work is left alone."""
    if size < _LARGE or not sys.stderr.isatty():
        return iter
    from tqdm import tqdm

    return lambda steps: tqdm(steps, desc=what, total=total, delay=2, leave=False)


def _checksum(path: Path, size: int) -> Callable[[], str]:
    """Return what gives a file's checksum; that of a large file is taken meanwhile, on another processor."""
    if size < _LARGE:
        return lambda: file_sha256(path)
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1).submit(file_sha256, path).result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", help="the labelled file")
    parser.add_argument("predictions", help="the prediction file")
    parser.add_argument("--json", action="store_true", help="print the JSON report instead of the text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the JSON report to FILE (its folder is made)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the report as one HTML file to look at")
    parser.add_argument(
        "--invalid",
        choices=("error", "incorrect"),
        default="error",
        help="an answer that breaks a rule or is missing: refuse the file (default), or count the case wrong on every target and say so",
    )
    parser.add_argument("--by", choices=tuple(STRATA), action="append", default=[], help="add the plain accuracies by stratum; may be given more than once")
    parser.add_argument("--table", action="store_true", help=f"put every case into the report and the text, more than {TABLE_LIMIT:,} of them too")
    parser.add_argument("--hidden", action="store_true", help="gold is private: tell aggregates and class supports alone, nothing of single cases")
    add_resampling_options(parser)
    return parser


def add_resampling_options(parser: argparse.ArgumentParser, *, flag: bool = True) -> None:
    """Add the options of a bootstrap to a command's parser; `flag` is whether it is drawn on request only."""
    drawn = Resampling()
    if flag:
        parser.add_argument("--ci", action="store_true", help="add bootstrap intervals of every aggregate")
    only = " (with --ci)" if flag else ""
    parser.add_argument("--resamples", type=int, metavar="R", help=f"resamples of the bootstrap{only}; default: {drawn.resamples:,}")
    parser.add_argument("--seed", type=int, metavar="S", help=f"its seed{only}; default: {drawn.seed}")
    parser.add_argument("--level", type=float, metavar="L", help=f"confidence level of the intervals{only}; default: {drawn.level}")


def chosen_resampling(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Resampling:
    """Return the resampling that the options ask for; wrong ones end the command as wrong arguments do."""
    given = {name: value for name in Resampling._fields if (value := getattr(arguments, name)) is not None}
    if given and not getattr(arguments, "ci", True):
        parser.error(f"{', '.join(f'--{name}' for name in given)} without --ci")
    resampling = Resampling(**given)
    if resampling.resamples < 1:
        parser.error("--resamples is a number from 1 on")
    if resampling.seed < 0:
        parser.error("--seed is a whole number from 0 on")
    if not 0 < resampling.level < 1:
        parser.error("--level is a number between 0 and 1, such as 0.95")
    return resampling


def _score_hidden(gold: Path, predictions: Path, arguments: argparse.Namespace, resampling: Resampling | None) -> int:
    try:
        result = HiddenGold(gold).score(predictions, str(predictions), invalid=arguments.invalid, resampling=resampling)
    except HiddenGoldError as error:
        raise Unable(str(error)) from None
    if result.report is None:
        print_findings(result.problems)
        return FINDINGS
    for problem in result.invalid:
        print(f"counted wrong: {finding_line(problem)}", file=sys.stderr)
    text = json.dumps(result.report, indent=2, ensure_ascii=True, allow_nan=False)
    if arguments.output is not None:
        write_whole(arguments.output, text + "\n")
    print(text if arguments.json else text_report(result.report))
    return VALID


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    resampling = chosen_resampling(parser, arguments)
    gold_path, path = existing_file(arguments.gold), existing_file(arguments.predictions)
    outputs = [output for output in (arguments.output, arguments.html) if output is not None]
    for output in outputs:
        check_output(output, gold_path, path)
    if len({output.resolve() for output in outputs}) < len(outputs):
        raise Unable(f"--output and --html both name {arguments.html}")
    if arguments.hidden:
        if arguments.html or arguments.by or arguments.table:
            parser.error("--hidden tells nothing of single cases or groups of them: leave out --html, --by and --table")
        return _score_hidden(gold_path, path, arguments, resampling if arguments.ci else None)
    size = gold_path.stat().st_size
    checksum = _checksum(gold_path, size)
    if size >= _LARGE:
        gc.disable()  # millions of records and no cycle among them: looking for one takes a tenth of the time

    def keep(case: Case) -> tuple[Case | None, list[str]]:
        return case if arguments.html else None, [STRATA[by](case) for by in arguments.by]

    gold, kept, problems = read_gold(gold_path, keep=keep if arguments.html or arguments.by else None, watch=progress("gold", size))
    if problems:
        return print_findings(problems)
    submission = read_predictions(path, gold, invalid=arguments.invalid, watch=progress("predictions", size, len(gold)))
    if submission.problems:
        print_findings(submission.problems)
        return FINDINGS
    for problem in submission.invalid:
        print(f"counted wrong: {finding_line(problem)}", file=sys.stderr)
    cases = list(gold.values())
    report = score(
        cases,
        submission.predictions,
        gold_file=gold_path.name,
        gold_sha256=checksum(),
        table=len(cases) <= TABLE_LIMIT or arguments.table or arguments.html is not None,
        resampling=resampling if arguments.ci else None,
        watch=progress("resamples", len(cases) * resampling.resamples),
    )
    if arguments.by:
        answers = encode(cases, submission.predictions)
        strata = zip(*(labels for _, labels in kept), strict=True)
        report["strata"] = {by: stratum_scores(by, answers, labels, resampling.level) for by, labels in zip(arguments.by, strata, strict=True)}
    if warning := report["onset_shift_check"]["warning"]:
        print(f"warning: {warning}", file=sys.stderr)
    text = json.dumps(report, indent=2, ensure_ascii=True, allow_nan=False) if arguments.json or arguments.output is not None else ""
    if arguments.output is not None:
        write_whole(arguments.output, text + "\n")
    if arguments.html is not None:
        from scorer.html_report import html_report

        write_whole(arguments.html, html_report(report, [case for case, _ in kept if case is not None]))
    print(text if arguments.json else text_report(report))
    return VALID


if __name__ == "__main__":
    run(main)

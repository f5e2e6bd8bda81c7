#!/usr/bin/env python3
"""Measure how far two or more annotators agree, from one prediction-format file each.

Rows may be missing from a file. Each coefficient comes with a percentile-bootstrap interval over
scenarios (contrast families are resampled whole). Exit status: 0 measured, 1 findings, 2 the command
could not do its work.
"""

import argparse
import functools
import itertools
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import krippendorff
import numpy as np
import numpy.typing as npt
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from rdod_metric.rules import (
    CONFIDENCE,
    NONE,
    PREDICTION_COLUMNS,
    SEVERITIES,
    TARGETS,
    VOCABULARIES,
    Gold,
    Prediction,
    Problem,
    State,
    attempt,
    contrast_family,
    is_blank,
    parse_fraction,
    parse_label,
    parse_target_cells,
    unknown_scenario,
)
from rdod_metric.scoring import LEVEL, Interval, percentile_interval, score
from rdod_metric.tables import Case, Table, read_cases, read_id
from scorer.command import VALID, Unable, check_output, existing_file, print_findings, run, write_whole
from scorer.validate import gold_by_id

SEVERITY = "severity"
"""Optional column of an annotator's file."""

RESAMPLES = 1000
"""Bootstrap resamples behind every interval."""

SEED = 0
"""Seed of the bootstrap."""

Counts = npt.NDArray[np.int64]
Level = Literal["nominal", "ordinal", "interval"]
Floats = npt.NDArray[np.float64]


class Answer(NamedTuple):
    """What an annotator says of a scenario; `severity` is None where it isn't given."""

    state: State
    severity: str | None = None


class Annotator(NamedTuple):
    """An annotator's answers by scenario id."""

    name: str
    answers: dict[str, Answer]


# ---------------------------------------------------------------- reading
def read_annotator(path: Path, name: str, gold: Mapping[str, Gold] | None) -> tuple[Annotator, list[Problem]]:
    """Return an annotator's answers and all problems of the file. With gold, ids, steps and constraints are held against it."""
    table = Table(path, PREDICTION_COLUMNS, optional=[CONFIDENCE, SEVERITY], ordered=False)
    answers: dict[str, Answer] = {}
    seen: dict[str, Any] = {}
    for row in table.rows():
        scenario_id = read_id(table, row, seen)
        if scenario_id is None:
            continue
        case = gold.get(scenario_id) if gold is not None else None
        if gold is not None and case is None:
            table.add(unknown_scenario(scenario_id, gold), row.line)
            continue
        steps, constraints = (case.steps, case.constraints) if case else (None, None)
        state, found = parse_target_cells(tuple(row.cells[column] for column in PREDICTION_COLUMNS[1:]), steps, constraints)
        problems = list(found)
        attempt(problems, parse_fraction, row.cells[CONFIDENCE], CONFIDENCE)
        severity = attempt(problems, _parse_severity, row.cells[SEVERITY])
        if state and severity is not None and (severity == NONE) is not (state.outcome_mode == "no_drift"):
            expected = "none" if state.outcome_mode == "no_drift" else "low, medium or high"
            problems.append(Problem("inconsistent-state", SEVERITY, severity, f"{expected}, since the outcome is {state.outcome_mode}"))
        for problem in problems:
            table.add(problem, row.line, scenario_id)
        if state and not problems:
            answers[scenario_id] = Answer(state, severity)
    return Annotator(name, answers), table.problems


def _parse_severity(value: object) -> str | None:
    return None if is_blank(value) else parse_label(value, SEVERITY, SEVERITIES)


# ---------------------------------------------------------------- coefficients
def value_counts(values: Sequence[Sequence[str | int | None]], domain: Sequence[str | int]) -> Counts:
    """Return how many annotators gave each value to each scenario, shape (scenarios, domain); None is a missing answer."""
    places = {value: place for place, value in enumerate(domain)}
    counts = np.zeros((len(values), len(domain)), dtype=np.int64)
    for row, given in enumerate(values):
        for value in given:
            if value is not None:
                counts[row, places[value]] += 1
    return counts


def alpha(counts: Counts, level: Level, domain: Sequence[float] | None = None) -> float:
    """Return Krippendorff's alpha; NaN where it is undefined: nothing was answered twice, or all answers are the same."""
    paired = counts[counts.sum(axis=1) > 1]
    used = paired.sum(axis=0) > 0
    if used.sum() < 2:
        return float("nan")
    values = np.arange(len(used)) if domain is None else np.asarray(domain)
    return float(krippendorff.alpha(value_counts=paired[:, used], value_domain=values[used], level_of_measurement=level))


def kappa(counts: Counts, annotators: int) -> float:
    """Return Fleiss' kappa over the scenarios that every annotator answered; NaN where it is undefined."""
    full = counts[counts.sum(axis=1) == annotators]
    if not len(full) or (full.sum(axis=0) > 0).sum() < 2:
        return float("nan")
    return float(fleiss_kappa(full))


def weighted_kappa(values: Sequence[Sequence[int | None]], classes: int) -> float:
    """Return Cohen's kappa with linear weights, its mean over all pairs of annotators; NaN where no pair has one."""
    found = []
    for pair in itertools.combinations(zip(*values, strict=True), 2):
        table = np.zeros((classes, classes))
        for a, b in zip(*pair, strict=True):
            if a is not None and b is not None:
                table[a, b] += 1
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # undefined for a table with one class: that comes out as NaN
            found.append(float(cohens_kappa(table, wt="linear", return_results=False)) if table.sum() else float("nan"))
    defined = [value for value in found if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def pair_agreement(counts: Counts) -> float:
    """Return the share of pairs of answers to one scenario that are the same; NaN where there is no pair."""
    same, pairs = same_pairs(counts)
    return float(same.sum() / pairs.sum()) if pairs.sum() else float("nan")


def same_pairs(counts: Counts) -> tuple[Counts, Counts]:
    """Return for each scenario the pairs of answers that are the same, and all pairs."""
    given = counts.sum(axis=1)
    return (counts * (counts - 1)).sum(axis=1) // 2, given * (given - 1) // 2


def near_agreement(steps: Sequence[Sequence[int | None]], distance: int) -> float:
    """Return the share of pairs of onsets no more than `distance` steps apart.

    Args:
        steps: for each scenario the onsets given; 0 stands for a blank and equals a blank alone, None for no answer.
        distance: largest difference that still agrees.
    """
    pairs = [pair for given in steps for pair in itertools.combinations([step for step in given if step is not None], 2)]
    if not pairs:
        return float("nan")
    return float(np.mean([a == b if 0 in (a, b) else abs(a - b) <= distance for a, b in pairs]))


class Coefficient(NamedTuple):
    """A measured agreement.

    Attributes:
        field: what is agreed on.
        name: which coefficient it is.
        value: None where it is undefined.
        low: lower end of the bootstrap interval, None where no resample has a value.
        high: upper end.
        scenarios: how many scenarios it rests on.
    """

    field: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    scenarios: int


class ClassAgreement(NamedTuple):
    """How annotators agree on one label.

    Attributes:
        answers: how often it was given.
        specific: probability that a second annotator gives it where one did; None where nobody had a second answer.
        kappa: Fleiss' kappa of this label against all others.
    """

    field: str
    label: str
    answers: int
    specific: float | None
    kappa: float | None


class Dispute(NamedTuple):
    """A scenario that annotators label differently.

    Attributes:
        disagreement: share of pairs of answers that differ, mean over the five targets.
        fields: the targets that differ.
        answers: each annotator's answer, None where it is missing.
    """

    scenario_id: str
    disagreement: float
    fields: tuple[str, ...]
    answers: dict[str, Answer | None]


class Agreement(NamedTuple):
    """Everything that is measured."""

    annotators: dict[str, int]
    scenarios: int
    units: int
    coefficients: list[Coefficient]
    classes: list[ClassAgreement]
    disputes: list[Dispute]
    gold: dict[str, dict[str, Any]]


# ---------------------------------------------------------------- measuring
class _Field(NamedTuple):
    """A field as annotators' values: for each scenario one value per annotator, None for no answer."""

    name: str
    values: list[list[Any]]
    domain: list[Any]

    @property
    def counts(self) -> Counts:
        """Return how many annotators gave each value to each scenario."""
        return value_counts(self.values, self.domain)


_LABELS = ("drift", "outcome_mode", "mechanism_family", "repair_outcome")


def _fields(annotators: Sequence[Annotator], names: Sequence[str]) -> dict[str, _Field]:
    def field(name: str, of: Callable[[Answer], Any], domain: Sequence[Any] | None = None) -> _Field:
        values = [[of(answer) if (answer := annotator.answers.get(key)) else None for annotator in annotators] for key in names]
        return _Field(name, values, list(domain) if domain is not None else sorted({value for given in values for value in given if value is not None}))

    fields = [
        field("drift", lambda answer: "no" if answer.state.outcome_mode == "no_drift" else "yes", ("no", "yes")),
        field("outcome_mode", lambda answer: answer.state.outcome_mode, VOCABULARIES["outcome_mode"]),
        field("mechanism_family", lambda answer: answer.state.mechanism_family, VOCABULARIES["mechanism_family"]),
        field("repair_outcome", lambda answer: answer.state.repair_outcome, VOCABULARIES["repair_outcome"]),
        field("first_drift_step", lambda answer: answer.state.first_drift_step or 0),
        field("residual_constraint_id", lambda answer: answer.state.residual_constraint_id or 0),
        field(SEVERITY, lambda answer: None if answer.severity is None else SEVERITIES.index(answer.severity), range(len(SEVERITIES))),
    ]
    return {field_.name: field_ for field_ in fields}


class _Statistic(NamedTuple):
    """A coefficient as a function of the chosen scenarios' places, and the scenarios that it rests on."""

    field: str
    name: str
    of: Callable[[npt.NDArray[np.intp]], float]
    scenarios: int


def _statistics(fields: Mapping[str, _Field], annotators: int) -> Iterator[_Statistic]:
    for name in _LABELS:
        yield from _nominal(fields[name], "agreement", annotators)
    onset = fields["first_drift_step"]
    yield _of_counts(onset, onset.counts, "exact agreement", pair_agreement)
    near = _of_counts(onset, onset.counts, "agreement within one step", pair_agreement)
    yield near._replace(of=lambda rows: near_agreement([onset.values[row] for row in rows], 1))
    steps = [step for step in onset.domain if step]
    numeric = value_counts([[value or None for value in given] for given in onset.values], steps)
    yield _of_counts(onset, numeric, "alpha (interval), where steps are given", functools.partial(alpha, level="interval", domain=steps))
    yield from _nominal(fields["residual_constraint_id"], "exact agreement", annotators)
    severity = fields[SEVERITY]
    if severity.counts.any():
        yield _of_counts(severity, severity.counts, "agreement", pair_agreement)
        weighted = _of_counts(severity, severity.counts, "weighted kappa (linear)", pair_agreement)
        yield weighted._replace(of=lambda rows: weighted_kappa([severity.values[row] for row in rows], len(severity.domain)))
        yield _of_counts(severity, severity.counts, "alpha (ordinal)", functools.partial(alpha, level="ordinal"))


def _nominal(field: _Field, agreement: str, annotators: int) -> Iterator[_Statistic]:
    yield _of_counts(field, field.counts, agreement, pair_agreement)
    by_all = _of_counts(field, field.counts, "Fleiss' kappa", functools.partial(kappa, annotators=annotators))
    yield by_all._replace(scenarios=int((field.counts.sum(axis=1) == annotators).sum()))
    yield _of_counts(field, field.counts, "alpha (nominal)", functools.partial(alpha, level="nominal"))


def _of_counts(field: _Field, counts: Counts, name: str, of: Callable[[Counts], float]) -> _Statistic:
    return _Statistic(field.name, name, lambda rows: of(counts[rows]), int((counts.sum(axis=1) > 1).sum()))


def resampled_rows(names: Sequence[str], resamples: int) -> tuple[list[npt.NDArray[np.intp]], int]:
    """Return the places of the scenarios in each bootstrap resample, and how many units were drawn from: families stay whole."""
    units: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        units.setdefault(contrast_family(name) or name, []).append(place)
    members = [np.array(places, dtype=np.intp) for places in units.values()]
    generator = np.random.default_rng(SEED)
    draws = generator.integers(len(members), size=(resamples, len(members)))
    return [np.concatenate([members[unit] for unit in draw]) for draw in draws], len(members)


def measure(annotators: Sequence[Annotator], gold: Mapping[str, Case] | None = None, resamples: int = RESAMPLES) -> Agreement:
    """Measure the agreement of two or more annotators, and of each with gold where it is given.

    Raises:
        ValueError: no scenario has answers of two annotators.
    """
    names = list(dict.fromkeys(itertools.chain(*(annotator.answers for annotator in annotators))))
    if gold is not None:
        names = [name for name in gold if name in set(names)]
    names = [name for name in names if sum(name in annotator.answers for annotator in annotators) > 1]
    if not names:
        raise ValueError("no scenario has answers of two annotators")
    fields = _fields(annotators, names)
    draws, units = resampled_rows(names, resamples)
    every = np.arange(len(names))
    coefficients = []
    for statistic in _statistics(fields, len(annotators)):
        interval: Interval = percentile_interval(np.array([statistic.of(rows) for rows in draws]), LEVEL)
        coefficients.append(Coefficient(statistic.field, statistic.name, _defined(statistic.of(every)), interval.low, interval.high, statistic.scenarios))
    return Agreement(
        {annotator.name: len(annotator.answers) for annotator in annotators},
        len(names),
        units,
        coefficients,
        list(itertools.chain(*(_class_agreement(fields[name], len(annotators)) for name in _LABELS))),
        disputes(annotators, names),
        {} if gold is None else {annotator.name: against_gold(annotator, gold) for annotator in annotators},
    )


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else value


def _class_agreement(field: _Field, annotators: int) -> Iterator[ClassAgreement]:
    counts = field.counts
    given = counts.sum(axis=1)
    for place, label in enumerate(field.domain):
        own = counts[:, place]
        others = (own * (given - 1)).sum()
        specific = float((own * (own - 1)).sum() / others) if others else None
        yield ClassAgreement(field.name, str(label), int(own.sum()), specific, _defined(kappa(np.column_stack([own, given - own]), annotators)))


def disputes(annotators: Sequence[Annotator], names: Sequence[str]) -> list[Dispute]:
    """Return the scenarios with different answers, the most disputed first, equals by id."""
    found = []
    for name in names:
        answers = {annotator.name: annotator.answers.get(name) for annotator in annotators}
        states = [answer.state for answer in answers.values() if answer is not None]
        shares = {target: np.mean([a[place] != b[place] for a, b in itertools.combinations(states, 2)]) for place, target in enumerate(TARGETS)}
        if any(shares.values()):
            found.append(Dispute(name, float(np.mean(list(shares.values()))), tuple(target for target, share in shares.items() if share), answers))
    return sorted(found, key=lambda dispute: (-dispute.disagreement, dispute.scenario_id))


def against_gold(annotator: Annotator, gold: Mapping[str, Case]) -> dict[str, Any]:
    """Return an annotator's scores against gold on the scenarios that they labelled: the report's leaderboards, and the share right of each target."""
    cases = [gold[name].gold for name in gold if name in annotator.answers]
    report = score(cases, {name: Prediction(name, answer.state) for name, answer in annotator.answers.items()})
    rights = Counter(target for row in report["prediction_table"] for target in TARGETS if row[f"{target}_correct"])
    severities = [gold[case.scenario_id].row.cells[SEVERITY].strip() == given for case in cases if (given := annotator.answers[case.scenario_id].severity)]
    return {
        "scenarios": len(cases),
        **{f"{target}_accuracy": rights[target] / len(cases) for target in TARGETS},
        "within_one_onset_accuracy": report["secondary_diagnostics"]["within_one_onset_accuracy"],
        "complete_primary_accuracy": report["leaderboard_b_complete_reasoning_state"]["complete_primary_accuracy"],
        "component_mean": report["leaderboard_a_component_capability"]["component_mean"],
        "severity_accuracy": float(np.mean(severities)) if severities else None,
    }


# ---------------------------------------------------------------- what is shown
def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _state_text(answer: Answer | None) -> str:
    if answer is None:
        return "no answer"
    values = [NONE if value is None else str(value) for value in answer.state]
    return ", ".join([*values, *([answer.severity] if answer.severity else [])])


def text_report(agreement: Agreement) -> str:
    """Return the measured agreement for a terminal."""
    lines = [
        f"{len(agreement.annotators)} annotators ({', '.join(f'{name}: {rows} rows' for name, rows in agreement.annotators.items())}); "
        f"{agreement.scenarios} scenarios with two answers or more",
        f"Intervals: {LEVEL:.0%} percentile bootstrap over {agreement.units} units (scenarios, or whole contrast families), seed {SEED}",
        "",
        f"{'field':<24}{'coefficient':<42}{'value':>10}{'low':>11}{'high':>11}{'scenarios':>11}",
    ]
    for row in agreement.coefficients:
        lines.append(f"{row.field:<24}{row.name:<42}{_shown(row.value):>10}{_shown(row.low):>11}{_shown(row.high):>11}{row.scenarios:>11}")
    lines += ["", f"{'field':<24}{'label':<32}{'answers':>8}{'specific agreement':>20}{'kappa of the label':>20}"]
    for label in agreement.classes:
        if label.answers:
            lines.append(f"{label.field:<24}{label.label:<32}{label.answers:>8}{_shown(label.specific):>20}{_shown(label.kappa):>20}")
    for name, scores in agreement.gold.items():
        lines += ["", f"{name} against gold ({scores['scenarios']} scenarios)"]
        lines += [f"  {key:<40}{_shown(value):>10}" for key, value in scores.items() if key != "scenarios" and value is not None]
    lines += ["", f"Disputed scenarios: {len(agreement.disputes)} of {agreement.scenarios}"]
    for dispute in agreement.disputes:
        lines.append(f"  {dispute.scenario_id}  {dispute.disagreement:.2f}  {', '.join(dispute.fields)}")
        lines += [f"    {name}: {_state_text(answer)}" for name, answer in dispute.answers.items()]
    return "\n".join(lines)


def json_report(agreement: Agreement, resamples: int) -> dict[str, Any]:
    """Return the measured agreement as plain Python that JSON takes."""
    return {
        "annotators": agreement.annotators,
        "scenarios": agreement.scenarios,
        "resampling": {"units": agreement.units, "resamples": resamples, "seed": SEED, "level": LEVEL},
        "coefficients": [row._asdict() for row in agreement.coefficients],
        "classes": [row._asdict() for row in agreement.classes],
        "against_gold": agreement.gold,
        "disputes": [
            {
                **dispute._asdict(),
                "answers": {name: answer and {**answer.state._asdict(), SEVERITY: answer.severity} for name, answer in dispute.answers.items()},
            }
            for dispute in agreement.disputes
        ],
    }


# ---------------------------------------------------------------- the command
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="an annotator's file in prediction format; a column severity may follow")
    parser.add_argument("--gold", metavar="FILE", help="labelled file: each annotator is held against it too")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how the agreement is shown (default: text)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it to FILE instead of printing it")
    parser.add_argument("--resamples", type=int, default=RESAMPLES, metavar="N", help=f"bootstrap resamples (default: {RESAMPLES})")
    return parser


def _names(files: Sequence[str]) -> list[str]:
    """Return what annotators are called: their files' names, or whole paths where names repeat."""
    stems = [Path(name).stem for name in files]
    return stems if len(set(stems)) == len(stems) else list(files)


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if len(arguments.files) < 2 or len(set(arguments.files)) < len(arguments.files):
        parser.error("agreement needs the files of two annotators or more, each once")
    if arguments.resamples < 1:
        parser.error("--resamples has to be 1 or more")
    paths = [existing_file(name) for name in arguments.files]
    if arguments.output is not None:
        check_output(arguments.output, *paths)
    problems: list[Problem] = []
    gold: dict[str, Case] | None = None
    if arguments.gold:
        cases, problems = read_cases(existing_file(arguments.gold))
        gold = {case.gold.scenario_id: case for case in cases}
    golds = None if gold is None else gold_by_id(gold.values())
    annotators = []
    for path, name in zip(paths, _names(arguments.files), strict=True):
        annotator, found = read_annotator(path, name, golds)
        annotators.append(annotator)
        problems += found
    if problems:
        return print_findings(problems)
    try:
        agreement = measure(annotators, gold, arguments.resamples)
    except ValueError as error:
        raise Unable(str(error)) from None
    report = text_report(agreement) if arguments.format == "text" else json.dumps(json_report(agreement, arguments.resamples), indent=2, allow_nan=False)
    if arguments.output is None:
        print(report)
    else:
        write_whole(arguments.output, report + "\n")
    return VALID


if __name__ == "__main__":
    run(main)

"""Dict records, as the metric gets them, to gold and predictions with all that is wrong with them.

Records arrive in batches, from several processes maybe, and only at the end is it known which
scenarios there are and by which policy answers are judged. So a record is first turned into a row of
plain typed fields (`batch`), which is what the metric stores; the rows become `Gold` and `Prediction`,
or problems, once all are there (`pair`). A record that breaks a rule travels as a JSON text in place
of its id, so that nothing about it is lost or changed on the way.
"""

import difflib
import functools
import json
import numbers
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from .rules import (
    CONFIDENCE,
    GOLD_NAMES,
    LABELLED_COLUMNS,
    MECHANISM_FAMILIES,
    NONE,
    OUTCOME_MODES,
    PREDICTION_COLUMNS,
    REPAIR_OUTCOMES,
    TARGETS,
    UNKNOWN,
    Gold,
    Prediction,
    Problem,
    State,
    attempt,
    check_constraints,
    check_trajectory,
    duplicate_scenario,
    is_near_neighbour,
    nearest,
    pairing_problems,
    parse_constraint_id,
    parse_constraint_text,
    parse_constraints,
    parse_fraction,
    parse_label,
    parse_step,
    parse_targets,
    parse_text,
    parse_trajectory,
    shown,
    state_problems,
    unknown_scenario,
)

PREDICTION_FIELDS = dict(zip((*PREDICTION_COLUMNS, CONFIDENCE), ("string", "string", "int64", "string", "string", "int64", "float64"), strict=True))
"""Fields of a stored prediction and their types."""

REFERENCE_FIELDS = {
    **dict(zip(("scenario_id", *TARGETS), PREDICTION_FIELDS.values(), strict=False)),
    "trajectory_length": "int64",
    "constraint_count": "int64",
    "near_neighbour": "bool",
}
"""Fields of a stored reference and their types; length and count are null where the record does not tell them."""

Row = dict[str, Any]
"""A stored record: its fields by name."""

Problems = Sequence[Problem]

_ANSWER = (*PREDICTION_COLUMNS[1:], CONFIDENCE)
_ID, _TEXT = "residual_constraint_id", "residual_constraint_failure"  # either of the two will do
_LENGTH, _COUNT = "trajectory_length", "constraint_count"
_REFERENCE_KEYS = ("scenario_id", *TARGETS[:-1])
_REFERENCE_OPTIONS = frozenset((*LABELLED_COLUMNS, "constraints", "trajectory", "lost_constraint_id", _ID, _COUNT))
_LARGEST = 10**9 - 1  # bound for steps and ids where the record tells none: they are stored as 32-bit integers
_MARK = "\0"  # opens the text of a record that travels as JSON
_CLOSE = 0.8  # likeness from which an unknown key is taken for an optional one that was misspelt
_values_of = itemgetter(*PREDICTION_COLUMNS[1:])
_fields_of = itemgetter(*REFERENCE_FIELDS)
_scenario_of = itemgetter("scenario_id")  # blank in a row of nothing


# ---------------------------------------------------------------- values that travel
class _Shown:
    """Stands for a value that JSON can't hold, and that no field accepts; a message shows it as it was."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _to_json(value: Any) -> Any:
    """Return a value as JSON can hold it, so that `_from_json` gives one that is judged alike."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        number = int(value)
        return number if abs(number) <= _LARGEST else {"shown": "a whole number of more than nine digits"}
    if isinstance(value, numbers.Real):
        return float(value)
    return {"shown": shown(value)}


def _from_json(value: Any) -> Any:
    return _Shown(value["shown"]) if isinstance(value, dict) else value


# ---------------------------------------------------------------- keys
@functools.lru_cache(maxsize=256)
def _key_problems(keys: tuple[Any, ...], required: tuple[str, ...], optional: frozenset[str]) -> tuple[Problem, ...]:
    """Say which required keys are missing, and which unknown ones are near misses of a known key that is absent."""
    known = {*required, *optional}
    absent = [key for key in (*required, *sorted(optional)) if key not in keys]
    problems = []
    meant = set()
    for key in keys:
        if not isinstance(key, str) or key in known:
            continue
        near = nearest(key, absent)
        if near in required or (near and (near in key or difflib.SequenceMatcher(None, key.casefold(), near).ratio() >= _CLOSE)):
            meant.add(near)
            problems.append(Problem("unknown-key", key, f"the unknown key {shown(key)}", "the keys " + ", ".join(required), near))
    for key in absent:
        if key in required and key not in meant:
            problems.append(Problem("missing-key", key, f"no key {key}", "the keys " + ", ".join(required)))
    return tuple(problems)


def _read_id(value: Any, problems: list[Problem]) -> str:
    """Return a scenario id without blanks around it, or '' with a problem noted."""
    if isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value and value:
        return value
    name: str = attempt(problems, parse_text, value, "scenario_id", default="").strip()
    if name and (name.startswith(_MARK) or not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name)):
        problems.append(Problem("invalid-text", "scenario_id", shown(name), "a text that UTF-8 can hold"))
        return ""
    return name


def _travelling(fields: Mapping[str, str], **content: Any) -> Row:
    """Return a row whose id holds `content` as JSON; its other fields are blank."""
    return {field: "" if kind == "string" else None for field, kind in fields.items()} | {"scenario_id": _MARK + json.dumps(content)}


def _not_a_record(record: Any) -> Problem:
    return Problem("not-a-record", "record", shown(record), "a dict with the column names as keys")


# ---------------------------------------------------------------- predictions
def _prediction_row(record: Any) -> Row:
    if not isinstance(record, Mapping):
        return _travelling(PREDICTION_FIELDS, name="", problems=[_not_a_record(record)], values=[[]] * len(_ANSWER))
    problems = list(_key_problems(tuple(record), PREDICTION_COLUMNS, frozenset((CONFIDENCE,))))
    name = _read_id(record["scenario_id"], problems) if "scenario_id" in record else ""
    if not problems:
        confidence = attempt(problems, parse_fraction, record.get(CONFIDENCE), CONFIDENCE)
        state, found = _judged_state(_values_of(record), None, None)
        if state is not None and not problems:
            return dict(zip(PREDICTION_FIELDS, (name, *state, confidence), strict=True))
        problems = []  # it is judged again once its case is known, with all that is wrong in one go
    raw = [[_to_json(record[key])] if key in record else [] for key in _ANSWER]
    return _travelling(PREDICTION_FIELDS, name=name, problems=problems, values=raw)


def _read_prediction(row: Row, gold: Mapping[str, Gold | None]) -> tuple[Prediction, Problems, Problems]:
    """Return what a stored prediction says of its case, what is wrong with the record as such, and what with its answer."""
    name, values, confidence = row["scenario_id"], _values_of(row), row[CONFIDENCE]
    problems: Problems = ()
    faults: list[Problem] = []
    if name.startswith(_MARK):
        content = json.loads(name[1:])
        name, problems = content["name"], [Problem(*problem) for problem in content["problems"]]
        *values, confidence = (_from_json(value[0]) if value else UNKNOWN for value in content["values"])
        confidence = attempt(faults, parse_fraction, confidence, CONFIDENCE)
    case = gold.get(name)
    state, wrong = _judged_state(values, case.steps, case.constraints) if case else _judged_state(values, None, None)
    if wrong or faults:
        return Prediction(name, None), problems, [*wrong, *faults]
    return Prediction(name, state, confidence), problems, ()


def _judged_state(values: Sequence[Any], steps: int | None, constraints: int | None) -> tuple[State | None, tuple[Problem, ...]]:
    limits = steps or _LARGEST, constraints or _LARGEST
    try:
        return _parse_targets(*values, *limits)
    except TypeError:  # a list or another value that no cache can hold
        return parse_targets(values, *limits)


@functools.lru_cache(maxsize=1 << 16, typed=True)
def _parse_targets(outcome: Any, onset: Any, family: Any, repair: Any, residual: Any, steps: int, constraints: int) -> tuple[State | None, tuple[Problem, ...]]:
    """Call `parse_targets`; typed, since 1, 1.0 and True are one key to an untyped cache and three values to the rules."""
    return parse_targets((outcome, onset, family, repair, residual), steps, constraints)


# ---------------------------------------------------------------- references
def _plain_sequence(value: Any) -> Any:
    """Return an array of constraints or steps as a list; data frames and formatted datasets give arrays of their own."""
    return value.tolist() if hasattr(value, "tolist") else value


def _constraints(record: Mapping[Any, Any], problems: list[Problem]) -> Any:
    """Return a reference's constraints: None where it has none, `UNKNOWN` where they can't be read."""
    if record.get("constraints") is not None:
        return attempt(problems, check_constraints, _plain_sequence(record["constraints"]), "constraints", default=UNKNOWN)
    if record.get("constraints_json") is not None:
        return attempt(problems, parse_constraints, record["constraints_json"], default=UNKNOWN)
    return None


def _trajectory(record: Mapping[Any, Any], problems: list[Problem]) -> Any:
    """Return the texts of a reference's steps: None where it has none, `UNKNOWN` where they can't be read."""
    if record.get("trajectory") is not None:
        return attempt(problems, check_trajectory, _plain_sequence(record["trajectory"]), "trajectory", default=UNKNOWN)
    if record.get("trajectory_json") is not None:
        return attempt(problems, parse_trajectory, record["trajectory_json"], default=UNKNOWN)
    return None


def _residual_by_text(record: Mapping[Any, Any], constraints: Any, problems: list[Problem]) -> Any:
    """Return the residual constraint's id by its text; `UNKNOWN` where the record doesn't give it, or can't."""
    text = record.get(_TEXT)
    if text == NONE or (text is not None and constraints not in (None, UNKNOWN)):
        return attempt(problems, parse_constraint_text, text, _TEXT, constraints, default=UNKNOWN)
    if _ID not in record and constraints is not UNKNOWN:
        problems.append(Problem("missing-key", _ID, f"no key {_ID}", f"{_ID}, or {_TEXT} with the constraints"))
    return UNKNOWN


def _parse_gold(values: Sequence[Any]) -> tuple[Gold, tuple[Problem, ...]]:
    """Return a case without an id from a reference's five targets, its length and its number of constraints, and what is wrong with them."""
    outcome, onset, family, repair, residual, length, constraints = values
    problems: list[Problem] = []
    steps = attempt(problems, parse_step, length, _LENGTH, _LARGEST, "invalid-number")
    count = attempt(problems, parse_step, constraints, _COUNT, _LARGEST, "invalid-number")
    state = State(
        attempt(problems, parse_label, outcome, "outcome_mode", OUTCOME_MODES, default=UNKNOWN),
        attempt(problems, parse_step, onset, "first_drift_step", steps or _LARGEST, default=UNKNOWN),
        attempt(problems, parse_label, family, "mechanism_family", MECHANISM_FAMILIES, default=UNKNOWN),
        attempt(problems, parse_label, repair, "repair_outcome", REPAIR_OUTCOMES, default=UNKNOWN),
        attempt(problems, parse_constraint_id, residual, _ID, count or _LARGEST, default=UNKNOWN),
    )
    problems += state_problems(state, GOLD_NAMES, steps)
    return Gold("", state, steps, count), tuple(problems)


@functools.lru_cache(maxsize=1 << 16, typed=True)
def _parse_gold_cached(*values: Any) -> tuple[Gold, tuple[Problem, ...]]:
    return _parse_gold(values)


def _size(texts: Any) -> Any:
    return UNKNOWN if texts is UNKNOWN else len(texts)


def _reference_row(record: Any) -> Row:
    if not isinstance(record, Mapping):
        return _travelling(REFERENCE_FIELDS, name="", problems=[_not_a_record(record)])
    get = record.get
    problems = list(_key_problems(tuple(record), _REFERENCE_KEYS, _REFERENCE_OPTIONS))
    name = _read_id(record["scenario_id"], problems) if "scenario_id" in record else ""
    constraints, trajectory = _constraints(record, problems), _trajectory(record, problems)
    by_text = UNKNOWN if _ID in record and get(_TEXT) is None else _residual_by_text(record, constraints, problems)
    values = (
        *[get(column, UNKNOWN) for column in TARGETS[:-1]],
        get(_ID, by_text),
        get(_LENGTH) if trajectory is None else _size(trajectory),
        get(_COUNT) if constraints is None else _size(constraints),
    )
    try:
        gold, found = _parse_gold_cached(*values)
    except TypeError:  # a list or another value that no cache can hold
        gold, found = _parse_gold(values)
    problems += found
    residual = gold.state.residual_constraint_id
    if by_text is not UNKNOWN and residual not in (UNKNOWN, by_text):
        problems.append(Problem("inconsistent-state", _TEXT, shown(get(_TEXT)), f"the text of constraint {residual or 'none'}, as {_ID} says"))
    if trajectory is not None and get(_LENGTH) is not None:
        length = attempt(problems, parse_step, get(_LENGTH), _LENGTH, _LARGEST, "invalid-number")
        if gold.steps and length and length != gold.steps:
            problems.append(Problem("trajectory-length", _LENGTH, shown(get(_LENGTH)), f"{gold.steps}, the number of steps"))
    if problems:
        return _travelling(REFERENCE_FIELDS, name=name, problems=problems)
    return dict(zip(REFERENCE_FIELDS, (name, *gold.state, gold.steps, gold.constraints, is_near_neighbour(get("trajectory_structure"))), strict=True))


_shared_state = functools.lru_cache(maxsize=1 << 16)(State)  # the same few states come again and again


def _read_reference(row: Row) -> tuple[str, Gold | None, Problems]:
    name, outcome, onset, family, repair, residual, steps, count, neighbour = _fields_of(row)
    if not name.startswith(_MARK):
        return name, Gold(name, _shared_state(outcome, onset, family, repair, residual), steps, count, neighbour), ()
    content = json.loads(name[1:])
    return content["name"], None, [Problem(*problem) for problem in content["problems"]]


# ---------------------------------------------------------------- batches and pairs
def batch(predictions: Iterable[Any] | None, references: Iterable[Any] | None) -> dict[str, list[Row]]:
    """Return records as rows to be stored, in columns of the same length; None is no record.

    The shorter column is filled up with rows of nothing, which `pair` leaves out: what is missing is
    told by its scenario id, not by a count.

    Raises:
        ValueError: the records don't come as a sequence of records.
    """
    columns: dict[str, list[Row]] = {}
    for kind, records, row in (("predictions", predictions, _prediction_row), ("references", references, _reference_row)):
        if isinstance(records, str | Mapping) or not (records is None or hasattr(records, "__iter__")):
            raise ValueError(f"{kind}: found {shown(records)}, expected a list of dicts or a split of a dataset")
        columns[kind] = [row(record) for record in (() if records is None else records)]
    length = max(map(len, columns.values()))
    for kind, fields in (("predictions", PREDICTION_FIELDS), ("references", REFERENCE_FIELDS)):
        nothing = {field: "" if dtype == "string" else None for field, dtype in fields.items()}
        columns[kind] += [nothing] * (length - len(columns[kind]))
    return columns


class Pairs(NamedTuple):
    """Stored rows as scoring takes them.

    Attributes:
        gold: the labelled cases, in the order in which they came.
        predictions: an answer for every case, by scenario id; complete only without problems.
        problems: why the records are refused.
    """

    gold: list[Gold]
    predictions: dict[str, Prediction]
    problems: list[Problem]


def pair(predictions: Iterable[Row], references: Iterable[Row], invalid: Literal["error", "incorrect"] = "error") -> Pairs:
    """Judge stored rows and pair them by scenario id.

    With `invalid="incorrect"` an answer that breaks a rule, or that is missing, counts as wrong on every
    target; records that can't be paired, and references that break a rule, are refused all the same.
    """
    problems: list[Problem] = []
    gold: dict[str, Gold | None] = {}
    answers: dict[str, Prediction] = {}

    def add(found: Iterable[Problem], kind: str, place: int, name: str) -> None:
        problems.extend(problem._replace(file=kind, line=place, scenario_id=problem.scenario_id or name) for problem in found)

    for place, row in enumerate(filter(_scenario_of, references)):
        name, case, found = _read_reference(row)
        if found:
            add(found, "references", place, name)
        if name and name in gold:
            add([duplicate_scenario(name, "an earlier reference")], "references", place, name)
        gold.setdefault(name, case)
    all_known = gold.pop("", UNKNOWN) is UNKNOWN
    if not gold and all_known:
        problems.append(Problem("no-rows", "scenario_id", "no reference", "at least one", file="references"))
    names = tuple(gold)
    for place, row in enumerate(filter(_scenario_of, predictions)):
        answer, found, wrong = _read_prediction(row, gold)
        name = answer.scenario_id
        if found:
            add(found, "predictions", place, name)
        if wrong and invalid == "error":
            add(wrong, "predictions", place, name)
        if name and name in answers:
            add([duplicate_scenario(name, "an earlier prediction")], "predictions", place, name)
        elif name not in gold and name and all_known:
            add([unknown_scenario(name, names)], "predictions", place, name)
        answers.setdefault(name, answer)
    if not answers:
        problems.append(Problem("no-rows", "scenario_id", "no prediction", "at least one", file="predictions"))
    missing = [problem._replace(file="predictions") for problem in pairing_problems(gold, answers)]
    if invalid == "error" and "" not in answers:
        problems += missing
    answers |= {problem.scenario_id: Prediction(problem.scenario_id, None) for problem in missing}
    return Pairs([case for case in gold.values() if case], answers, problems)


def refusal(problems: Sequence[Problem]) -> ValueError:
    """Return the error that tells all problems of all records, one line each."""
    lines = []
    for problem in problems:
        place = problem.file if problem.line is None else f"{problem.file}[{problem.line}]"
        lines.append(f"{place}: {problem.column}: {problem.message} [{problem.code}]")
    count = f"{len(problems)} problem{'s' * (len(problems) != 1)} in the records"
    return ValueError("\n".join([count, *lines]))


def check_options(invalid: object, resamples: object, seed: object, level: object) -> None:
    """Raise `ValueError` for an option of the metric that can't be meant."""
    faults = []
    if invalid not in ("error", "incorrect"):
        faults.append(f"invalid: found {shown(invalid)}, expected 'error' or 'incorrect'")
    for name, value, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
            faults.append(f"{name}: found {shown(value)}, expected a whole number from {least} on")
    if not isinstance(level, float) or not 0 < level < 1:
        faults.append(f"level: found {shown(level)}, expected a number between 0 and 1, such as 0.95")
    if faults:
        raise ValueError("\n".join(faults))


def flat_scores(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the metric returns by default: the report's scores as flat scalars, `n`, the class tables, and intervals if it has any."""
    sections = ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics")
    scores = {
        name: value for section in sections for name, value in report[section].items() if name != "primary_ranking_metric" and not isinstance(value, Mapping)
    }
    counts = {name: report["benchmark"][name] for name in ("n", "invalid_predictions")}
    tables = {name: report[name] for name in ("class_support", "per_class_metrics", "intervals") if name in report}
    return {**scores, **counts, **tables}

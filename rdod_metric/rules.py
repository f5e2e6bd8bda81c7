"""Vocabularies, record rules and the state table: the one home of what a valid record is.

Everything that reads records (validator, scorer, metric, harness) asks this module. It needs the
standard library alone, so that the published metric folder and every command can import it at once.

A record that breaks a rule is described by a `Problem`. Readers collect all problems of a record
and never stop at the first one.
"""

import difflib
import functools
import hashlib
import json
import math
import numbers
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

VERSION = "0.2.0"
"""Version of the release whose rules and scores these are."""

BENCHMARK_NAME = "Reasoning Drift Onset Detection v0.2"
"""Name under which reports speak of the benchmark."""

EXPANDED_VERSION = "0.3.0-preview"
"""Version of the expanded release, whose cases come in contrast families."""

EXPANDED_NAME = f"Reasoning Drift Onset Detection {EXPANDED_VERSION}"
"""Name under which reports on the expanded release speak of it: its scores are never mixed with those of v0.2."""

NEAR_NEIGHBOUR = "near_neighbour"
"""Part of the `trajectory_structure` of the two members of a family that differ in one step, one of them sound."""

OUTCOME_MODES = ("no_drift", "latent_drift", "recovered_drift", "visible_failure")
"""Final structural state of a trajectory."""

MECHANISM_FAMILIES = (
    "none",
    "premature_constraint_closure",
    "scope_collapse",
    "causal_scope_collapse",
    "multi_causal_collapse",
    "multi_objective_collapse",
    "proxy_substitution",
    "evidence_suppression",
    "evaluation_scope_collapse",
)
"""Form of the loss at the onset; `none` for no_drift alone."""

REPAIR_OUTCOMES = ("not_applicable", "full_repair", "partial_repair", "failed_repair", "unrepaired")
"""How much of the drift is repaired where the trajectory ends."""

CORRECTION_SOURCES = ("self_correction", "external_intervention", "mixed", "not_applicable")
"""Where the pressure to correct came from."""

SEVERITIES = ("none", "low", "medium", "high")
"""Coarse consequence of the drift within its scenario, in rising order."""

RECOMMENDED_REPAIRS = (
    "none",
    "evidence_reset",
    "scope_restoration",
    "causal_reset",
    "objective_reintegration",
    "branch_reopening",
    "timeline_reconstruction",
    "system_scope_restoration",
    "evaluation_scope_restoration",
    "readiness_decomposition",
)
"""Structural operation that would restore coherence."""

VOCABULARIES: dict[str, tuple[str, ...]] = {
    "outcome_mode": OUTCOME_MODES,
    "mechanism_family": MECHANISM_FAMILIES,
    "repair_outcome": REPAIR_OUTCOMES,
    "correction_source": CORRECTION_SOURCES,
    "severity": SEVERITIES,
    "recommended_repair": RECOMMENDED_REPAIRS,
}
"""Allowed labels of every closed column."""

INPUT_COLUMNS = ("scenario_id", "domain", "task", "constraints_json", "trajectory_json")
"""Columns of a blind file, in order: all that a model may see."""

LABEL_COLUMNS = (
    "outcome_mode",
    "first_drift_step",
    "mechanism_family",
    "repair_outcome",
    "residual_constraint_failure",
    "drift_mechanism",
    "correction_source",
    "lost_constraint",
    "visible_failure_step",
    "severity",
    "recommended_repair",
    "repair_instruction",
    "trajectory_length",
    "relative_onset_position",
    "trajectory_structure",
    "annotation_confidence",
)
"""What a labelled file adds to the inputs, in order."""

LABELLED_COLUMNS = INPUT_COLUMNS + LABEL_COLUMNS
"""Columns of a labelled file, in order."""

TARGETS = ("outcome_mode", "first_drift_step", "mechanism_family", "repair_outcome", "residual_constraint_id")
"""The five primary targets, in the order of the ladder."""

PREDICTION_COLUMNS = ("scenario_id", *(f"predicted_{target}" for target in TARGETS))
"""Required columns of a prediction file; `confidence` may follow."""

CONFIDENCE = "confidence"
"""Optional prediction column: probability that all five targets are right."""

NONE = "none"
"""How the absence of a family, constraint or repair is spelt."""

RELATIVE_ONSET_TOLERANCE = 1e-4
"""Largest accepted distance of `relative_onset_position` from step / length."""

_MAX_DIGITS = 9  # far beyond any trajectory, and below CPython's limit for int(str)
_WHOLE = re.compile(rf"-?(?:0|[1-9][0-9]{{0,{_MAX_DIGITS - 1}}})(?:\.0+)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STEP_KEYS = frozenset(("step", "text"))
_ARRAY, _OBJECT, _INTEGER = (list, tuple), (dict, Mapping), (int, numbers.Integral)  # the plain types first: abstract ones are slow to ask
_MEMBER = re.compile(r"(RDOD[0-9]+-[0-9]{3,})[a-z]")
_BLANKS = " \t\r\n"
_SHOWN_LENGTH = 80
_CLOSE_MATCH_OPTIONS = 200  # above this, difflib costs more than the hint is worth

T = TypeVar("T")
Names = Mapping[str, str]


UNKNOWN: Any = object()
"""Stands for a value that was refused already, so that it is not judged a second time."""


# ---------------------------------------------------------------- problems
class Problem(NamedTuple):
    """One thing that is wrong with one record, as data.

    `line` is the physical line of the file (from 1) at which the row begins, or the position of the
    record (from 0) when records come as a list; None when the problem concerns no one row.
    """

    code: str
    column: str
    found: str
    expected: str
    nearest: str = ""
    scenario_id: str = ""
    file: str = ""
    line: int | None = None

    @property
    def message(self) -> str:
        """Say what was found, what was expected and, if there is one, the nearest valid value."""
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        subject = f"{self.scenario_id}: " if self.scenario_id and self.column != "scenario_id" else ""
        return f"{subject}found {self.found}, expected {self.expected}{hint}"


class Refused(ValueError):
    """Raised by the parser of one value; carries the `Problem`."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem beside its message."""
        super().__init__(problem.message)
        self.problem = problem


def shown(value: object) -> str:
    """Return a value as a message shows it: quoted, on one line, cut to a readable length.

    >>> shown("no_dirft")
    "'no_dirft'"
    """
    if isinstance(value, str) and not value.strip(_BLANKS):
        return "a blank"
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 4] + "..." + text[-1]


def _fold(text: str) -> str:
    """Reduce a name to what people usually get right in it: letters, and numbers without leading zeros."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(part.lstrip("0") or "0" if part.isdigit() else part for part in re.findall(r"[^\W\d_]+|\d+", folded))


@functools.lru_cache(maxsize=8)
def _folded(options: tuple[str, ...]) -> dict[str, str]:
    return {_fold(option): option for option in reversed(options)}


def nearest(value: object, options: Collection[str]) -> str:
    """Return the option that was most probably meant, or ''.

    >>> nearest("rdod2-25", ["RDOD2-025", "RDOD2-026"])
    'RDOD2-025'
    """
    if not isinstance(value, str):
        return ""
    names = tuple(options)
    if same := _folded(names).get(_fold(value)):
        return same
    if len(names) > _CLOSE_MATCH_OPTIONS:
        return ""
    folded = {name.casefold(): name for name in reversed(names)}
    close = difflib.get_close_matches(value.casefold()[:_SHOWN_LENGTH], folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else ""


def attempt(problems: list[Problem], parse: Callable[..., T], *arguments: Any, default: Any = None) -> T | Any:
    """Parse one value; on refusal note the problem and return the default, as for a value that is `UNKNOWN`."""
    if arguments[0] is UNKNOWN:
        return default
    try:
        return parse(*arguments)
    except Refused as refused:
        problems.append(refused.problem)
        return default


# ---------------------------------------------------------------- single values
def is_blank(value: object) -> bool:
    """Tell whether a cell or a record's value stands for nothing: None, '', blanks, or a float NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def parse_label(value: object, column: str, vocabulary: Sequence[str]) -> str:
    """Return a label of the vocabulary; raise `Refused` (invalid-label) for anything else."""
    label = value.strip(_BLANKS) if isinstance(value, str) else value
    if isinstance(label, str) and label in vocabulary:
        return label
    hint = ""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        hint = "; a class number is not read: give its name, for instance with features[column].int2str(number)"
    raise Refused(Problem("invalid-label", column, shown(value), "one of " + ", ".join(vocabulary) + hint, nearest(label, vocabulary)))


def parse_text(value: object, column: str) -> str:
    """Return a text that is not blank, unchanged; raise `Refused` (missing-value or invalid-text) otherwise."""
    if is_blank(value):
        raise Refused(Problem("missing-value", column, "a blank", "a text"))
    if isinstance(value, str):
        return value
    raise Refused(Problem("invalid-text", column, shown(value), "a text"))


def _as_float(value: numbers.Real) -> float:
    """Return a number of any kind as a float, infinite where it has no room in one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def parse_whole_number(value: object, column: str) -> int | None:
    """Return a whole number, or None for a blank.

    `3`, `3.0` (what a data frame makes of an integer column with blanks) and numpy integers are
    whole numbers; `3.5`, `1_0`, full-width digits and booleans are not. Raises `Refused`
    (invalid-number).
    """
    if is_blank(value):
        return None
    if isinstance(value, str):
        text = value.strip(_BLANKS)
        if _WHOLE.fullmatch(text):
            return int(text.partition(".")[0])
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = _as_float(value)
        if number.is_integer() and abs(number) < 10**_MAX_DIGITS:
            return int(number)
    raise Refused(Problem("invalid-number", column, shown(value), "a whole number such as 3, or a blank"))


def parse_step(value: object, column: str, steps: int | None, code: str = "onset-out-of-bounds") -> int | None:
    """Return a step from 1 to `steps` (no upper bound if None), or None for a blank; raise `Refused`."""
    step = parse_whole_number(value, column)
    if step is not None and (step < 1 or (steps is not None and step > steps)):
        last = f"a step from 1 to {steps}" if steps is not None else "a step from 1 on"
        raise Refused(Problem(code, column, str(step), f"{last}, or a blank"))
    return step


def parse_constraint_id(value: object, column: str, constraints: int | None) -> int | None:
    """Return a 1-based constraint id, or None for `none` or a blank; raise `Refused`."""
    if isinstance(value, str) and value.strip(_BLANKS) == NONE:
        return None
    highest = f"a constraint id from 1 to {constraints}" if constraints is not None else "a constraint id from 1 on"
    try:
        number = parse_whole_number(value, column)
    except Refused as refused:
        meant = nearest(value, [NONE])
        raise Refused(refused.problem._replace(expected=f"{highest}, none or a blank", nearest=meant)) from None
    if number is not None and (number < 1 or (constraints is not None and number > constraints)):
        raise Refused(Problem("constraint-out-of-bounds", column, str(number), f"{highest}, none or a blank"))
    return number


def parse_constraint_text(value: object, column: str, constraints: Sequence[str]) -> int | None:
    """Return the 1-based id of a constraint given by its exact text, None for `none`; raise `Refused`."""
    if isinstance(value, str) and value.strip(_BLANKS) == NONE:
        return None
    if isinstance(value, str) and value in constraints:
        return constraints.index(value) + 1
    expected = "none, or the exact text of one of the row's constraints"
    raise Refused(Problem("unknown-constraint", column, shown(value), expected, shown_nearest(value, (NONE, *constraints))))


def shown_nearest(value: object, options: Sequence[str]) -> str:
    """Return the nearest option as a message shows it, or ''."""
    option = nearest(value, options)
    return shown(option) if option else ""


def parse_fraction(value: object, column: str, code: str = "invalid-confidence") -> float | None:
    """Return a number in [0, 1], or None for a blank; raise `Refused` for a percentage, NaN or anything else."""
    if value is None or (isinstance(value, str) and is_blank(value)):
        return None
    number = math.nan
    if isinstance(value, str):
        text = value.strip(_BLANKS)
        if _DECIMAL.fullmatch(text):
            number = float(text)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = _as_float(value)
    if 0 <= number <= 1:
        return number
    percent = isinstance(value, str) and value.strip(_BLANKS).endswith("%") or 1 < number <= 100
    hint = " (a percentage divided by 100)" if percent else ""
    raise Refused(Problem(code, column, shown(value), f"a number from 0 to 1{hint}"))


# ---------------------------------------------------------------- JSON cells
class _BadJson(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _BadJson(f"the key {shown(min(key for key, count in counts.items() if count > 1))} twice in one object")
    return record


def _not_json(word: str) -> Any:
    raise _BadJson(f"{word}, which is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_not_json)


def parse_json(value: object, column: str, expected: str) -> Any:
    """Return what a JSON cell holds; raise `Refused` (invalid-json) with the position of the fault."""
    text = parse_text(value, column)
    try:
        return _JSON.decode(text)
    except json.JSONDecodeError as error:
        found = f"{shown(text[max(error.pos - 10, 0) : error.pos + 20])} where JSON breaks at character {error.pos + 1} ({error.msg})"
        hint = "; write the cell with json.dumps: JSON has double quotes only" if re.match(r"[\s\[{]*['\u2018\u201c\u201e]", text) else ""
    except _BadJson as error:
        found, hint = str(error), ""
    except (RecursionError, ValueError):  # nested beyond any record, or a number of thousands of digits
        found, hint = "JSON beyond what can be read", ""
    raise Refused(Problem("invalid-json", column, found, expected + hint))


_CONSTRAINTS = 'a JSON array of texts, such as ["First rule.", "Second rule."]'
_TRAJECTORY = 'a JSON array of steps numbered 1, 2, 3, such as [{"step": 1, "text": "..."}]'


def _fault_of_text(text: object) -> str:
    """Say what is wrong with a constraint's or a step's text, or ''."""
    if not isinstance(text, str):
        return shown(text)
    if not text.strip():
        return "a blank text"
    if "\0" in text:
        return "a NUL character"
    if not text.isascii() and _SURROGATE.search(text):
        return "half of a surrogate pair"
    return ""


def _first_fault(texts: Sequence[Any]) -> tuple[int, str] | None:
    """Return the number, from 1, and the fault of the first text that has one."""
    try:
        whole = "".join(texts)
    except TypeError:  # not all of them are texts
        whole = "\0"
    if whole.isascii() and "\0" not in whole and all(map(str.strip, texts)):  # one look at all of them settles most
        return None
    return next(((number, fault) for number, text in enumerate(texts, 1) if (fault := _fault_of_text(text))), None)


def check_constraints(value: object, column: str) -> tuple[str, ...]:
    """Return the constraints of an already decoded array; raise `Refused` where it isn't one.

    They are one or more texts, none of them blank, `none` or a repetition of another.
    """
    if not isinstance(value, _ARRAY) or not value:
        raise Refused(Problem("invalid-constraints", column, shown(value), _CONSTRAINTS))
    if fault := _first_fault(value):
        raise Refused(Problem("invalid-constraints", column, f"{fault[1]} as constraint {fault[0]}", _CONSTRAINTS))
    folded = [" ".join(text.casefold().split()) for text in value]
    if NONE in folded and (number := next((k for k, text in enumerate(value, 1) if text.strip() == NONE), None)):
        raise Refused(Problem("invalid-constraints", column, f"the word none as constraint {number}", "a text that can't be taken for none"))
    if len(set(folded)) < len(folded):
        first: dict[str, int] = {}
        twin, number = next((first[text], k) for k, text in enumerate(folded, 1) if first.setdefault(text, k) != k)
        found = f"constraint {number} the same as constraint {twin}"
        raise Refused(Problem("duplicate-constraint", column, found, "constraints that differ"))
    return tuple(value)


def check_trajectory(value: object, column: str) -> tuple[str, ...]:
    """Return the texts of an already decoded array of steps, in order; raise `Refused` where it isn't one.

    Each step is an object of `step` and `text` alone; steps are the integers 1, 2, 3, ...
    """
    if not isinstance(value, _ARRAY) or not value:
        raise Refused(Problem("invalid-trajectory", column, shown(value), _TRAJECTORY))
    for number, step in enumerate(value, 1):
        if not isinstance(step, _OBJECT) or step.keys() != _STEP_KEYS:
            keys = f"an object with the keys {', '.join(map(shown, step))}" if isinstance(step, Mapping) else shown(step)
            expected = _TRAJECTORY + ", each with exactly the keys step and text"
            raise Refused(Problem("invalid-trajectory", column, f"{keys} as entry {number}", expected))
        place = step["step"]
        if not isinstance(place, _INTEGER) or isinstance(place, bool) or place != number:
            raise Refused(Problem("invalid-trajectory", column, f"step {shown(place)} as entry {number}", f"the integer {number}"))
    texts = [step["text"] for step in value]
    if fault := _first_fault(texts):
        raise Refused(Problem("invalid-trajectory", column, f"{fault[1]} as text of step {fault[0]}", _TRAJECTORY))
    return tuple(texts)


def parse_constraints(value: object, column: str = "constraints_json") -> tuple[str, ...]:
    """Return the constraints of a JSON cell; raise `Refused`."""
    return check_constraints(parse_json(value, column, _CONSTRAINTS), column)


def parse_trajectory(value: object, column: str = "trajectory_json") -> tuple[str, ...]:
    """Return the texts of the steps of a JSON cell, in order; raise `Refused`."""
    return check_trajectory(parse_json(value, column, _TRAJECTORY), column)


# ---------------------------------------------------------------- records
class State(NamedTuple):
    """The five primary targets. Steps and constraint ids count from 1; None is a blank or `none`."""

    outcome_mode: str
    first_drift_step: int | None
    mechanism_family: str
    repair_outcome: str
    residual_constraint_id: int | None


class Scenario(NamedTuple):
    """What a model sees of a case."""

    scenario_id: str
    domain: str
    task: str
    constraints: tuple[str, ...]
    trajectory: tuple[str, ...]


class Gold(NamedTuple):
    """A labelled case, as far as scoring needs it. `steps` and `constraints` are None where they are not known.

    `near_neighbour` marks the two members of a contrast family that differ in one step, one of them sound.
    """

    scenario_id: str
    state: State
    steps: int | None = None
    constraints: int | None = None
    near_neighbour: bool = False


class Prediction(NamedTuple):
    """A system's answer for a case; `state` is None for an answer that counts as wrong on every target."""

    scenario_id: str
    state: State | None
    confidence: float | None = None


# ---------------------------------------------------------------- the state table
class StateRow(NamedTuple):
    """A kind of state that may occur: one row of the codebook's table."""

    outcome_mode: str
    onset: Literal["blank", "any step", "before the last step"]
    drifts: bool  # a family other than none, and a severity other than none
    repair_outcome: str
    residual: bool
    corrected: bool  # a correction source other than not_applicable
    visible: bool  # a visible failure step, from the onset on


STATE_TABLE = (
    StateRow("no_drift", "blank", False, "not_applicable", False, False, False),
    StateRow("latent_drift", "any step", True, "failed_repair", True, True, False),
    StateRow("latent_drift", "any step", True, "unrepaired", True, False, False),
    StateRow("recovered_drift", "before the last step", True, "full_repair", False, True, False),
    StateRow("recovered_drift", "before the last step", True, "partial_repair", True, True, False),
    StateRow("visible_failure", "any step", True, "failed_repair", True, True, True),
    StateRow("visible_failure", "any step", True, "unrepaired", True, False, True),
)
"""Every combination that is allowed; all others are inconsistent."""

GOLD_NAMES: Names = {target: target for target in TARGETS}
"""Column names of the five targets in typed records."""

PREDICTED_NAMES: Names = {target: f"predicted_{target}" for target in TARGETS}
"""Column names of the five targets in predictions."""


@functools.lru_cache(maxsize=1024)
def state_rows(outcome_mode: Any, repair_outcome: Any = UNKNOWN) -> tuple[StateRow, ...]:
    """Return the rows of the table that these two labels leave open."""
    return tuple(
        row for row in STATE_TABLE if outcome_mode in (row.outcome_mode, UNKNOWN) and (repair_outcome is UNKNOWN or repair_outcome == row.repair_outcome)
    )


def state_problems(state: State, names: Names = GOLD_NAMES, steps: int | None = None) -> list[Problem]:
    """Say in words what a combination of the five targets breaks; an empty list when nothing.

    A target that is `UNKNOWN` is left out of the judgement. `steps` is the trajectory's length, where
    it is known.
    """
    outcome, onset, family, repair, residual = state
    problems: list[Problem] = []

    def inconsistent(target: str, found: object, expected: str) -> None:
        problems.append(Problem("inconsistent-state", names[target], "a blank" if found is None else str(found), expected))

    if outcome is UNKNOWN:
        return problems
    rows = state_rows(outcome, repair)
    said = outcome if repair is UNKNOWN else f"{outcome} with {repair}"
    if not rows:
        rows, said = state_rows(outcome), outcome
        inconsistent("repair_outcome", repair, f"{' or '.join(row.repair_outcome for row in rows)}, since outcome_mode is {outcome}")
    if onset is not UNKNOWN:
        allowed = {row.onset for row in rows}
        if onset is None and "blank" not in allowed:
            inconsistent("first_drift_step", None, f"the step of the onset, since outcome_mode is {outcome}")
        if onset is not None and allowed == {"blank"}:
            inconsistent("first_drift_step", onset, f"a blank, since {outcome} has no onset")
        if onset is not None and onset == steps and allowed == {"before the last step"}:
            inconsistent("first_drift_step", onset, f"a step before the last one ({steps}), since in {outcome} a repair comes after the onset")
    if family is not UNKNOWN:
        drifts = rows[0].drifts
        if drifts and family == NONE:
            inconsistent("mechanism_family", family, f"a family other than none, since outcome_mode is {outcome}")
        if not drifts and family != NONE:
            inconsistent("mechanism_family", family, f"none, since outcome_mode is {outcome}")
    if residual is not UNKNOWN:
        wanted = {row.residual for row in rows}
        if residual is None and wanted == {True}:
            inconsistent("residual_constraint_id", "none", f"the constraint that is still broken, since the state is {said}")
        if residual is not None and wanted == {False}:
            inconsistent("residual_constraint_id", residual, f"none, since {said} leaves no constraint broken")
    return problems


# ---------------------------------------------------------------- predictions
def parse_targets(values: Sequence[object], steps: int | None, constraints: int | None) -> tuple[State | None, tuple[Problem, ...]]:
    """Return the state that a prediction's five values say, or None with all that is wrong with them.

    Args:
        values: the five predicted targets, in the order of `TARGETS`, as text or as plain values.
        steps: length of the trajectory; None if it is not known.
        constraints: number of constraints; None if it is not known.
    """
    outcome, onset, family, repair, residual = values
    problems: list[Problem] = []
    names = PREDICTED_NAMES
    state = State(
        attempt(problems, parse_label, outcome, names["outcome_mode"], OUTCOME_MODES, default=UNKNOWN),
        attempt(problems, parse_step, onset, names["first_drift_step"], steps, default=UNKNOWN),
        attempt(problems, parse_label, family, names["mechanism_family"], MECHANISM_FAMILIES, default=UNKNOWN),
        attempt(problems, parse_label, repair, names["repair_outcome"], REPAIR_OUTCOMES, default=UNKNOWN),
        attempt(problems, parse_constraint_id, residual, names["residual_constraint_id"], constraints, default=UNKNOWN),
    )
    problems += state_problems(state, names, steps)
    return (None, tuple(problems)) if problems else (state, ())


parse_target_cells = functools.lru_cache(maxsize=1 << 16)(parse_targets)
"""`parse_targets` for the text cells of large files, where the same few states come again and again."""


# ---------------------------------------------------------------- data rows
def parse_scenario(row: Mapping[str, str], problems: list[Problem]) -> Scenario:
    """Return a row's model inputs, noting what is wrong; what could not be read is blank or empty."""
    return Scenario(
        attempt(problems, parse_text, row["scenario_id"], "scenario_id", default="").strip(_BLANKS),
        attempt(problems, parse_text, row["domain"], "domain", default=""),
        attempt(problems, parse_text, row["task"], "task", default=""),
        attempt(problems, parse_constraints, row["constraints_json"], default=()),
        attempt(problems, parse_trajectory, row["trajectory_json"], default=()),
    )


_recall = functools.lru_cache(maxsize=1 << 16, typed=True)  # for judgements of cells that come again and again in large files
_state = _recall(State)


@_recall
def _parse_closed(steps: int | None, first_drift_step: Any, visible_failure_step: Any, *labels: Any) -> tuple[tuple[Any, ...], Any, Any, tuple[Problem, ...]]:
    """Return a labelled row's labels, in the order of `VOCABULARIES`, its onset, its visible failure step and what is wrong with them."""
    problems: list[Problem] = []
    parsed = tuple(
        attempt(problems, parse_label, label, column, vocabulary, default=UNKNOWN)
        for label, (column, vocabulary) in zip(labels, VOCABULARIES.items(), strict=True)
    )
    onset = attempt(problems, parse_step, first_drift_step, "first_drift_step", steps, default=UNKNOWN)
    visible = attempt(problems, parse_step, visible_failure_step, "visible_failure_step", steps, "visible-failure-out-of-bounds", default=UNKNOWN)
    return parsed, onset, visible, tuple(problems)


@_recall
def _labelled_state_problems(state: State, steps: int | None) -> tuple[Problem, ...]:
    return tuple(state_problems(state, {**GOLD_NAMES, "residual_constraint_id": "residual_constraint_failure"}, steps))


def parse_labelled(row: Mapping[str, str], problems: list[Problem]) -> tuple[Scenario, Gold]:
    """Return a labelled row's inputs and targets, noting everything that breaks a rule in `problems`.

    Rules that need a cell which was refused already are left out, so that one fault is told once.
    """
    scenario = parse_scenario(row, problems)
    steps = len(scenario.trajectory) or None
    closed = [row[column] for column in VOCABULARIES]
    labels, onset, visible, found = _parse_closed(steps, row["first_drift_step"], row["visible_failure_step"], *closed)
    problems += found
    outcome, family, repair, source, severity, recommended = labels
    residual, lost = (
        attempt(problems, parse_constraint_text, row[column], column, scenario.constraints, default=UNKNOWN) if scenario.constraints else UNKNOWN
        for column in ("residual_constraint_failure", "lost_constraint")
    )
    state = _state(outcome, onset, family, repair, residual)
    problems += _labelled_state_problems(state, steps)
    problems += _text_problems(row, outcome, lost)
    problems += _secondary_problems(outcome, onset, repair, source, severity, visible)
    if recommended is not UNKNOWN and outcome == "no_drift" and recommended != NONE:
        problems.append(Problem("inconsistent-state", "recommended_repair", recommended, "none, since outcome_mode is no_drift"))
    problems += _audit_problems(row["trajectory_length"], row["relative_onset_position"], row["annotation_confidence"], steps, onset)
    return scenario, Gold(scenario.scenario_id, state, steps, len(scenario.constraints) or None, is_near_neighbour(row["trajectory_structure"]))


def _text_problems(row: Mapping[str, str], outcome: Any, lost: Any) -> list[Problem]:
    """Hold the free texts and the lost constraint against the outcome."""
    problems: list[Problem] = []
    for column in ("drift_mechanism", "repair_instruction"):
        text = attempt(problems, parse_text, row[column], column, default=UNKNOWN)
        if outcome == "no_drift" and text is not UNKNOWN and text.strip() != NONE:
            problems.append(Problem("inconsistent-state", column, shown(text), "none, since outcome_mode is no_drift"))
    attempt(problems, parse_text, row["trajectory_structure"], "trajectory_structure")
    if outcome is not UNKNOWN and lost is not UNKNOWN:
        drifts = state_rows(outcome)[0].drifts
        if (lost is not None) is not drifts:
            found = "none" if lost is None else shown(row["lost_constraint"])
            expected = f"{'the constraint lost at the onset' if drifts else 'none'}, since outcome_mode is {outcome}"
            problems.append(Problem("inconsistent-state", "lost_constraint", found, expected))
    return problems


@_recall
def _secondary_problems(outcome: Any, onset: Any, repair: Any, source: Any, severity: Any, visible: Any) -> tuple[Problem, ...]:
    """Hold the secondary annotations against the state table."""
    problems: list[Problem] = []

    def inconsistent(column: str, found: object, expected: str, code: str = "inconsistent-state") -> None:
        problems.append(Problem(code, column, "a blank" if found is None else str(found), expected))

    rows = state_rows(outcome, repair) or state_rows(outcome)
    if outcome is UNKNOWN or not rows:
        return ()
    said = outcome if repair is UNKNOWN else f"{outcome} with {repair}"
    corrected = {row_.corrected for row_ in rows}
    if source is not UNKNOWN and len(corrected) == 1 and (source != "not_applicable") not in corrected:
        real = " or ".join(CORRECTION_SOURCES[:3])
        inconsistent("correction_source", source, f"{real if True in corrected else 'not_applicable'}, since the state is {said}")
    drifts = rows[0].drifts
    if severity is not UNKNOWN and (severity != NONE) is not drifts:
        inconsistent("severity", severity, f"{'low, medium or high' if drifts else 'none'}, since outcome_mode is {outcome}")
    if visible is not UNKNOWN:
        if (visible is not None) is not rows[0].visible:
            expected = "the step of the failure" if rows[0].visible else "a blank"
            inconsistent("visible_failure_step", visible, f"{expected}, since outcome_mode is {outcome}")
        elif visible is not None and isinstance(onset, int) and visible < onset:
            expected = f"a step from the onset ({onset}) on"
            inconsistent("visible_failure_step", visible, expected, "visible-failure-out-of-bounds")
    return tuple(problems)


@_recall
def _audit_problems(trajectory_length: Any, relative_onset_position: Any, annotation_confidence: Any, steps: int | None, onset: Any) -> tuple[Problem, ...]:
    """Hold the derived and the audit columns against the trajectory and the onset."""
    problems: list[Problem] = []
    length = attempt(problems, parse_whole_number, trajectory_length, "trajectory_length", default=UNKNOWN)
    if steps is not None and length is not UNKNOWN and length != steps:
        problems.append(Problem("trajectory-length", "trajectory_length", shown(trajectory_length), f"{steps}, the number of steps"))
    column = "relative_onset_position"
    relative = attempt(problems, parse_fraction, relative_onset_position, column, "invalid-number", default=UNKNOWN)
    if steps is not None and onset is not UNKNOWN and relative is not UNKNOWN:
        wanted = None if onset is None else round(onset / steps, 4)
        # the tolerance counts from the exact quotient; 1e-12 covers the float error of the difference
        near = relative is None if onset is None else relative is not None and abs(relative - onset / steps) <= RELATIVE_ONSET_TOLERANCE + 1e-12
        if not near:
            expected = "a blank, since there is no onset" if wanted is None else f"{wanted} (step {onset} of {steps})"
            problems.append(Problem("relative-onset", column, shown(relative_onset_position), expected))
    column = "annotation_confidence"
    confidence = attempt(problems, parse_fraction, annotation_confidence, column, default=UNKNOWN)
    if confidence is None:
        problems.append(Problem("missing-value", column, "a blank", "a number from 0 to 1"))
    return tuple(problems)


# ---------------------------------------------------------------- sets of records
def pairing_problems(gold: Mapping[str, Any], seen: Mapping[str, Any]) -> list[Problem]:
    """Name the scenarios of `gold` for which `seen` has no prediction."""
    return [
        Problem("missing-prediction", "scenario_id", f"no row for {name}", "exactly one prediction for every gold scenario", scenario_id=name)
        for name in gold
        if name not in seen
    ]


def contrast_family(scenario_id: str) -> str | None:
    """Return the contrast family that a scenario's id names, or None.

    >>> contrast_family("RDOD3-017b"), contrast_family("RDOD2-017")
    ('RDOD3-017', None)
    """
    member = _MEMBER.fullmatch(scenario_id)
    return member[1] if member else None


def is_near_neighbour(trajectory_structure: object) -> bool:
    """Tell whether a `trajectory_structure` marks a near neighbour."""
    return isinstance(trajectory_structure, str) and NEAR_NEIGHBOUR in trajectory_structure


def unknown_scenario(name: str, gold: Collection[str]) -> Problem:
    """Return the problem of a prediction for a scenario that gold doesn't have."""
    return Problem("unknown-scenario", "scenario_id", shown(name), "an id of the gold file", nearest(name, gold), name)


def duplicate_scenario(name: str, first: str) -> Problem:
    """Return the problem of a scenario that comes a second time; `first` says where it came before."""
    return Problem("duplicate-scenario", "scenario_id", f"{shown(name)} again, after {first}", "every scenario once", scenario_id=name)


def lf_bytes(content: bytes) -> bytes:
    """Return a text file's bytes with LF line ends and without a byte-order mark, as checksums see it."""
    return content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def text_sha256(content: bytes) -> str:
    """Return the SHA-256 of a text file that survives a checkout with other line ends."""
    return hashlib.sha256(lf_bytes(content)).hexdigest()

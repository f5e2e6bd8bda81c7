"""The answer parser: reads a model's free text into the five targets, or says by name why it can't.

The last complete JSON object that names a target is the answer. What is spelt otherwise than asked
for is repaired where one reading is possible and counted by kind; where two readings are possible, or
none, the answer is a failure. No value falls back to a legal one. The parser never raises, and its
time grows linearly with the text.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import (
    CONFIDENCE,
    MECHANISM_FAMILIES,
    NONE,
    OUTCOME_MODES,
    PREDICTED_NAMES,
    REPAIR_OUTCOMES,
    TARGETS,
    Problem,
    Refused,
    Scenario,
    State,
    parse_fraction,
    parse_targets,
    shown,
)

REPAIRS = {
    "surrounding-text": "there is text beside the object",
    "code-fence": "the object stands in a code fence",
    "earlier-object": "an earlier object names targets too; the last one counts",
    "wrapped-object": "the answer is inside another object",
    "trailing-comma": "a comma before a closing bracket",
    "single-quotes": "a text in single quotes",
    "control-character": "a line break or another control character inside a text",
    "bare-word": "a key or a value without quotes that JSON does not know, such as None",
    "key-name": "a key spelt otherwise than asked for",
    "label-spelling": "a label in other case, or with blanks or hyphens for underscores",
    "blank-word": "none, N/A or the like where null was asked for, or null for the label none",
    "quoted-number": "a number given as text",
    "named-number": "a number with its noun, such as step 3 or Constraint 2: ...",
    "full-text": "a constraint or a step given by its text",
    "percent": "a confidence in per cent",
}
"""Kinds of repair, and what each one found."""

FAILURES = {
    "empty-answer": "the answer is blank",
    "no-object": "no JSON object names any of the five targets",
    "incomplete-object": "a JSON object begins and is never completed",
    "duplicate-key": "the object gives one target twice",
    "missing-key": "the object leaves out a target",
    "ambiguous-value": "a value can be read in two ways",
    "invalid-label": "a label that is not in the vocabulary",
    "invalid-number": "neither a whole number nor a blank",
    "onset-out-of-bounds": "a step that the trajectory does not have",
    "constraint-out-of-bounds": "a constraint that the case does not have",
    "invalid-confidence": "a confidence that is no number from 0 to 1",
    "inconsistent-state": "values that are legal one by one but not together",
}
"""Names of the failures, and what each one means."""

_MAX_DEPTH = 8  # objects and arrays inside one another; answers need one, wrapped ones two
_MAX_NUMBER = 40  # characters; reading longer numbers costs more than linear time
_SPACE = re.compile(r"\s*")
_STRING = re.compile(r"""("[^"\\]*(?:\\.[^"\\]*)*")|('[^'\\]*(?:\\.[^'\\]*)*')""", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?%?")
_WORD = re.compile(r"[^\W\d][\w./-]*")
_QUOTE_OR_ESCAPE = re.compile(r'\\.|"', re.DOTALL)
_CONTROL = re.compile("[\0-\x1f]")
_SEPARATORS = re.compile(r"[\s_-]+")
_WHOLE = re.compile(r"-?[0-9]{1,9}(?:\.0+)?")
_UNDER_NUMBER = re.compile(r"([0-9]{1,9})\s*[.:)]\s*(.*)", re.DOTALL)
_BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:%|percent|per cent)", re.IGNORECASE)
_NOUNS = {"first_drift_step": "step", "residual_constraint_id": "constraint"}
_NAMED = {noun: re.compile(rf"(?:{noun}(?:[\s_#]*|-)|#\s*)([0-9]{{1,9}})(?:\s*[.:)(\u2013\u2014-]\s*(.*))?", re.I | re.DOTALL) for noun in _NOUNS.values()}
_MENTION = {noun: re.compile(rf"\b{noun}s?[\s_#-]*([0-9]{{1,9}})", re.I) for noun in _NOUNS.values()}
_BLANKS = frozenset(("null", "none", "n/a", "na", "not_applicable"))
_NOT_APPLICABLE = frozenset(("n/a", "na"))
_KEYS = {target: target for target in (*TARGETS, CONFIDENCE)} | {
    **{name: target for target, name in PREDICTED_NAMES.items()},
    "residual_constraint": "residual_constraint_id",
    "residual_constraint_failure": "residual_constraint_id",
}


class Answer(NamedTuple):
    """What a text says. `state` is None exactly where `failure` names one of `FAILURES`.

    Attributes:
        detail: the failure in words.
        repairs: names from `REPAIRS`, one for every place that was repaired.
    """

    state: State | None
    confidence: float | None = None
    failure: str = ""
    detail: str = ""
    repairs: tuple[str, ...] = ()


class _Unreadable(Exception):
    def __init__(self, failure: str, detail: str) -> None:
        super().__init__(detail)
        self.failure, self.detail = failure, detail


# ---------------------------------------------------------------- objects in a text
class _Scalar(NamedTuple):
    kind: str  # string, number or word
    text: str


class _Object(NamedTuple):
    """A complete object of a text: where it stands, its members, the objects inside it, what was repaired."""

    start: int
    end: int
    members: list[tuple[str, "_Scalar | None"]]  # None: an array or an object
    inner: list["_Object"]
    repairs: list[str]

    def names_target(self) -> bool:
        return any(_KEYS.get(_fold(key)) in TARGETS for key, _ in self.members)


class _Broken(Exception):
    """No value begins here."""


class _Reader:
    """Reads JSON, and what is nearly JSON, at any place of a text.

    Whether members can be read from a place on depends on the place and the depth alone. Places that
    proved unreadable are kept, so that no attempt walks the same members twice.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.dead: set[tuple[int, int, str]] = set()

    def objects(self) -> Iterator[_Object]:
        """Yield the complete objects that stand in no other, in the order of the text."""
        start = self.text.find("{")
        while start >= 0:
            repairs: list[str] = []
            inner: list[_Object] = []
            try:
                end = self._bracket(start, 0, repairs, inner)
                yield inner[-1]
            except _Broken:
                end = start + 1
            start = self.text.find("{", end)

    def _skip(self, place: int) -> int:
        return _SPACE.match(self.text, place).end()  # type: ignore[union-attr]  # matches everywhere

    def _bracket(self, start: int, depth: int, repairs: list[str], found: list[_Object]) -> int:
        """Read the object or array that opens at `start`, add it (an array: what is inside it) to `found`, return its end."""
        closing = "}" if self.text[start] == "{" else "]"
        members: list[tuple[str, _Scalar | None]] = []
        own: list[str] = []
        inner: list[_Object] = []
        walked: list[tuple[int, int, str]] = []
        place, after_comma = start + 1, False
        try:
            while True:
                if depth >= _MAX_DEPTH or (place, depth, closing) in self.dead:
                    raise _Broken
                walked.append((place, depth, closing))
                place = self._skip(place)
                if self.text.startswith(closing, place):
                    own += ["trailing-comma"] * after_comma
                    break
                key = ""
                if closing == "}":
                    key, place = self._key(place, own)
                value, place = self._value(place, depth, own, inner)
                members.append((key, value))
                place = self._skip(place)
                if self.text.startswith(closing, place):
                    break
                if not self.text.startswith(",", place):
                    raise _Broken
                place, after_comma = place + 1, True
        except _Broken:
            self.dead.update(walked)
            raise
        if closing == "}":
            found.append(_Object(start, place + 1, members, inner, own))
        else:
            repairs += own
            found += inner
        return place + 1

    def _key(self, place: int, repairs: list[str]) -> tuple[str, int]:
        scalar, place = self._scalar(place, repairs)
        place = self._skip(place)
        if scalar.kind == "number" or not self.text.startswith(":", place):
            raise _Broken
        repairs += ["bare-word"] * (scalar.kind == "word")
        return scalar.text, self._skip(place + 1)

    def _value(self, place: int, depth: int, repairs: list[str], inner: list[_Object]) -> tuple[_Scalar | None, int]:
        if self.text.startswith(("{", "["), place):
            return None, self._bracket(place, depth + 1, repairs, inner)
        scalar, place = self._scalar(place, repairs)
        repairs += ["bare-word"] * (scalar.kind == "word" and scalar.text not in ("null", "true", "false"))
        return scalar, place

    def _scalar(self, place: int, repairs: list[str]) -> tuple[_Scalar, int]:
        if match := _STRING.match(self.text, place):
            return _Scalar("string", self._decoded(match, repairs)), match.end()
        for kind, pattern in (("number", _NUMBER), ("word", _WORD)):
            if match := pattern.match(self.text, place):
                return _Scalar(kind, match[0]), match.end()
        raise _Broken

    def _decoded(self, match: re.Match[str], repairs: list[str]) -> str:
        quoted = match[1]
        if quoted is None:
            repairs.append("single-quotes")
            quoted = '"' + _QUOTE_OR_ESCAPE.sub(lambda part: {'"': '\\"', "\\'": "'"}.get(part[0], part[0]), match[2][1:-1]) + '"'
        if _CONTROL.search(quoted):
            repairs.append("control-character")
        try:
            text: str = json.loads(quoted, strict=False)
        except ValueError:  # an escape that JSON does not know
            raise _Broken from None
        return text


def _last_answer(found: Sequence[_Object]) -> tuple[_Object | None, bool]:
    """Return the last object that names a target, and whether it stands inside another one."""
    for candidate in reversed(found):
        if candidate.names_target():
            return candidate, False
        if inner := _last_answer(candidate.inner)[0]:
            return inner, True
    return None, False


# ---------------------------------------------------------------- values
def _fold(text: str) -> str:
    return _SEPARATORS.sub("_", text.strip().casefold()).strip("_")


def _plain(text: str) -> str:
    """Reduce a sentence to what makes it that sentence: case, blanks, quotes and the full stop aside."""
    return " ".join(text.casefold().split()).strip(" \"'`\u201c\u201d\u2018\u2019.")


_LABELS: dict[tuple[str, ...], dict[str, str]] = {
    vocabulary: {_fold(label): label for label in vocabulary} for vocabulary in (OUTCOME_MODES, MECHANISM_FAMILIES, REPAIR_OUTCOMES)
}


def _label(value: _Scalar, vocabulary: tuple[str, ...], repairs: list[str]) -> str:
    """Return the label that is meant, or what was found, for the rules to refuse."""
    if value.kind == "number" or value.text in vocabulary:
        return value.text
    folded = _fold(value.text)
    if label := _LABELS[vocabulary].get(folded):
        repairs.append("label-spelling")
        return label
    blank = ""
    if vocabulary is MECHANISM_FAMILIES and folded in _BLANKS:
        blank = NONE
    if vocabulary is REPAIR_OUTCOMES and folded in _NOT_APPLICABLE:
        # none and null are left unread here: nobody repaired, or there was nothing to repair
        blank = "not_applicable"
    repairs += ["blank-word"] * bool(blank)
    return blank or value.text


def _readings(text: str, noun: str, texts: Sequence[str]) -> dict[int | None, str]:
    """Return all that a text can stand for, a number or none, with the kind of repair that each reading takes."""
    numbers: dict[int | None, str] = {}
    known = {number: plain for number, plain in enumerate(map(_plain, texts), 1) if plain}
    rest = text
    if _fold(text) in _BLANKS:
        numbers[None] = "blank-word"
    elif _WHOLE.fullmatch(text):
        numbers[int(text.partition(".")[0])] = "quoted-number"
    elif match := _NAMED[noun].fullmatch(text):
        rest = match[2] or ""
        if _plain(rest) in known.values():
            numbers[int(match[1])] = "named-number"
        elif not rest[:1].isdigit():  # a digit here is half of a range or a fraction, as in step 3-4
            numbers |= {int(number): "named-number" for number in (match[1], *_MENTION[noun].findall(rest))}
    elif (match := _UNDER_NUMBER.fullmatch(text)) and _plain(match[2]) in known.values():
        rest = match[2]
        numbers[int(match[1])] = "named-number"
    return {number: "full-text" for number, plain in known.items() if plain == _plain(rest)} | numbers


def _numbered(value: _Scalar, target: str, texts: Sequence[str], repairs: list[str]) -> str:
    """Return a step or a constraint id as the rules read it, '' for none, or what was found, for the rules to refuse."""
    text = value.text.strip()
    if value.kind == "number" or not text:
        return text
    readings = _readings(text, _NOUNS[target], texts)
    if len(readings) > 1:
        ways = " or ".join("none" if number is None else str(number) for number in readings)
        raise _Unreadable("ambiguous-value", f"{target}: {shown(value.text)} can be read as {ways}")
    for number, repair in readings.items():
        repairs += [repair] * (value.kind == "string")  # a bare word is null, or counted as bare already
        return "" if number is None else str(number)
    return value.text


def _confidence(value: _Scalar, repairs: list[str]) -> float | None:
    """Return the confidence, None for none; raise `_Unreadable`."""
    text = value.text.strip()
    if value.kind != "number" and (not text or _fold(text) in _BLANKS):
        repairs += ["blank-word"] * (value.kind == "string" and bool(text))
        return None
    if len(text) > _MAX_NUMBER:
        raise _Unreadable("invalid-confidence", f"{CONFIDENCE}: found {shown(text)}, expected a number from 0 to 1")
    per_cent = _PERCENT.fullmatch(text)
    # above 10 no other scale than per cent is in use; up to 10 a number may be marks out of ten
    if (per_cent and float(per_cent[1]) <= 100) or (_BARE.fullmatch(text) and 10 < float(text) <= 100):
        repairs.append("percent")
        return float(per_cent[1] if per_cent else text) / 100
    try:
        number = parse_fraction(text, CONFIDENCE)
    except Refused as refused:
        raise _Unreadable(refused.problem.code, _said(refused.problem)) from None
    repairs += ["quoted-number"] * (value.kind == "string")
    return number


def _said(problem: Problem) -> str:
    return f"{problem.column.removeprefix('predicted_')}: {problem.message}"


# ---------------------------------------------------------------- answers
def _members(answer: _Object, repairs: list[str]) -> dict[str, _Scalar]:
    """Return the values of the object's known keys; raise `_Unreadable` unless every target has one value."""
    values: dict[str, _Scalar] = {}
    for key, value in answer.members:
        target = _KEYS.get(_fold(key))
        if target is None:
            continue
        if target in values:
            raise _Unreadable("duplicate-key", f"{target} stands twice in the object")
        if value is None:
            code = "invalid-confidence" if target == CONFIDENCE else "invalid-number" if target in _NOUNS else "invalid-label"
            raise _Unreadable(code, f"{target}: found an array or an object, expected one value")
        repairs += ["key-name"] * (key != target)
        values[target] = value
    if missing := [target for target in TARGETS if target not in values]:
        raise _Unreadable("missing-key", f"the object has no {', '.join(missing)}")
    return values


def _around(text: str, outer: _Object) -> list[str]:
    """Name what stands beside the object: a fence, other text or both."""
    before, after = text[: outer.start].strip(), text[outer.end :].strip()
    head, fence, language = before.rpartition("```")
    fenced = bool(fence) and (not language or language.isalnum()) and after.startswith("```")
    if fenced:
        before, after = head.strip(), after.removeprefix("```").strip()
    return ["code-fence"] * fenced + ["surrounding-text"] * bool(before or after)


def _read(text: str, scenario: Scenario, repairs: list[str]) -> tuple[State, float | None]:
    found = list(_Reader(text).objects())
    answer, wrapped = _last_answer(found)
    if answer is None:
        if "{" in text and not found:
            raise _Unreadable("incomplete-object", "an object begins, but none is complete")
        raise _Unreadable("no-object", "no JSON object names any of the five targets")
    outer = next(candidate for candidate in reversed(found) if candidate.start <= answer.start)
    repairs += _around(text, outer)
    repairs += ["earlier-object"] * any(_last_answer([candidate])[0] for candidate in found if candidate.end <= outer.start)
    repairs += ["wrapped-object"] * wrapped + answer.repairs
    values = _members(answer, repairs)
    state, problems = parse_targets(
        (
            _label(values["outcome_mode"], OUTCOME_MODES, repairs),
            _numbered(values["first_drift_step"], "first_drift_step", scenario.trajectory, repairs),
            _label(values["mechanism_family"], MECHANISM_FAMILIES, repairs),
            _label(values["repair_outcome"], REPAIR_OUTCOMES, repairs),
            _numbered(values["residual_constraint_id"], "residual_constraint_id", scenario.constraints, repairs),
        ),
        len(scenario.trajectory),
        len(scenario.constraints),
    )
    if state is None:
        raise _Unreadable(problems[0].code, "; ".join(map(_said, problems)))
    return state, _confidence(values[CONFIDENCE], repairs) if CONFIDENCE in values else None


def parse(text: object, scenario: Scenario) -> Answer:
    """Read a model's text on a case; never raises.

    >>> case = Scenario("A", "d", "t", ("Rule one.", "Rule two."), ("First.", "Second."))
    >>> parse('So: {"outcome_mode": "Latent drift", "first_drift_step": "step 2", "mechanism_family": "scope_collapse", '
    ...       '"repair_outcome": "unrepaired", "residual_constraint_id": 1, "confidence": "80%"}', case)
    ... # doctest: +NORMALIZE_WHITESPACE
    Answer(state=State(outcome_mode='latent_drift', first_drift_step=2, mechanism_family='scope_collapse', repair_outcome='unrepaired',
    residual_constraint_id=1), confidence=0.8, failure='', detail='', repairs=('surrounding-text', 'label-spelling', 'named-number', 'percent'))
    >>> parse('{"outcome_mode": "no_dri', case).failure
    'incomplete-object'
    """
    if not isinstance(text, str) or not text.strip():
        return Answer(None, failure="empty-answer", detail="the answer is blank")
    repairs: list[str] = []
    try:
        state, confidence = _read(text, scenario, repairs)
    except _Unreadable as fault:
        return Answer(None, failure=fault.failure, detail=fault.detail, repairs=tuple(repairs))
    return Answer(state, confidence, repairs=tuple(repairs))

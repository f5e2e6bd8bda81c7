"""The rules of contrast families: what six trajectories of one task must share, and what must differ between them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rdod_metric.rules import NEAR_NEIGHBOUR, NONE, OUTCOME_MODES, Problem, contrast_family, shown
from rdod_metric.tables import Case

SIZE = 6
"""Members of a family."""

SHARED = ("domain", "task", "constraints_json")
"""Columns that are the same in all members."""

LOST_CONSTRAINTS, MECHANISMS = 2, 2
"""How many different constraints get lost in a family, and how many mechanism families occur, at least."""

OPENING = 5
"""Words with which a member's first step begins as another member's does, at least: they part later."""


class Member(NamedTuple):
    """A case of a family, and the file that it stands in."""

    file: str
    case: Case

    @property
    def outcome(self) -> Any:
        """Return the outcome that the member is labelled with."""
        return self.case.gold.state.outcome_mode

    def label(self, column: str) -> str:
        """Return the cell of a column of labels."""
        return str(self.case.row.cells[column]).strip()

    def problem(self, column: str, found: str, expected: str) -> Problem:
        """Return a finding at this member's row."""
        return Problem("contrast-family", column, found, expected, file=self.file, line=self.case.row.line, scenario_id=self.case.scenario.scenario_id)


def members_by_family(files: Mapping[str, Sequence[Case]]) -> dict[str, list[Member]]:
    """Return the members of every family in the order of the files; cases whose id names no family are left out."""
    members: dict[str, list[Member]] = defaultdict(list)
    for name, cases in files.items():
        for case in cases:
            if family := contrast_family(case.scenario.scenario_id):
                members[family].append(Member(name, case))
    return members


def family_problems(files: Mapping[str, Sequence[Case]], known: Sequence[Problem] = ()) -> list[Problem]:
    """Return what is wrong between the members of the families in labelled files.

    A family of which a member has a `known` problem is left out: what its labels lack may only be unreadable.
    """
    spoilt = {contrast_family(problem.scenario_id) for problem in known}
    found: list[Problem] = []
    for family, members in members_by_family(files).items():
        if family not in spoilt:
            for rule in (_size, _one_split, _shared, _openings, _outcomes, _losses, _near_neighbours):
                found += rule(family, members)
    return found


def stray_problems(files: Mapping[str, Sequence[Case]]) -> list[Problem]:
    """Return a problem for every case, of a release of families, whose id names none."""
    cases = [Member(name, case) for name, rows in files.items() for case in rows if case.scenario.scenario_id]
    strays = [member for member in cases if not contrast_family(member.case.scenario.scenario_id)]
    return [member.problem("scenario_id", shown(member.case.scenario.scenario_id), "the id of a family's member, such as RDOD3-017b") for member in strays]


# ---------------------------------------------------------------- the rules
def _size(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    if len(members) != SIZE:
        yield members[0].problem("scenario_id", f"{len(members)} members of {family}", f"{SIZE}")


def _one_split(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    for member in {member.file: member for member in reversed(members) if member.file != members[0].file}.values():
        yield member.problem("scenario_id", f"a member of {family}, which stands in {members[0].file} too", "a family in one split only")


def _shared(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    for column, place in zip(SHARED, ("domain", "task", "constraints"), strict=True):
        counts = Counter(getattr(member.case.scenario, place) for member in members)
        usual = counts.most_common(1)[0][0]
        for member in members:
            if getattr(member.case.scenario, place) != usual:
                yield member.problem(column, f"another {column} than in the rest of {family}", "the same in all members")


def _openings(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    openings = [" ".join(member.case.scenario.trajectory[:1]).split()[:OPENING] for member in members]
    for member, opening in zip(members, openings, strict=True):
        if opening and openings.count(opening) < 2:
            found = f"a first step that begins as in no other member of {family}"
            yield member.problem("trajectory_json", found, "an opening that members share word for word")


def _outcomes(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    present = {member.outcome for member in members}
    if lacking := [mode for mode in OUTCOME_MODES if mode not in present]:
        yield members[0].problem("outcome_mode", f"no {' and no '.join(lacking)} in {family}", "all four outcomes in a family")


def _losses(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    for column, least, meaning in (
        ("lost_constraint", LOST_CONSTRAINTS, "of the constraints lost"),
        ("mechanism_family", MECHANISMS, "of the mechanism families"),
    ):
        number = len({member.label(column) for member in members} - {NONE})
        if number < least:
            yield members[0].problem(column, f"{number} {meaning} in {family}", f"at least {least}")


def _near_neighbours(family: str, members: Sequence[Member]) -> Iterator[Problem]:
    pair = [member for member in members if member.case.gold.near_neighbour]
    if len(pair) != 2:
        yield (pair or members)[0].problem("trajectory_structure", f"{len(pair)} members of {family} marked {NEAR_NEIGHBOUR}", "two, a pair")
        return
    names = " and ".join(member.case.scenario.scenario_id for member in pair)
    sound = [member.outcome for member in pair].count(OUTCOME_MODES[0])
    if sound != 1:
        yield pair[0].problem("outcome_mode", f"{'two' if sound else 'no'} {OUTCOME_MODES[0]} among the near neighbours {names}", "one sound, one drifting")
    one, other = (member.case.scenario.trajectory for member in pair)
    if len(one) != len(other):
        yield pair[1].problem("trajectory_json", f"{len(other)} steps where its near neighbour {names.split()[0]} has {len(one)}", "the same number of steps")
    elif (different := sum(map(str.__ne__, one, other))) != 1:
        yield pair[1].problem("trajectory_json", f"{different} steps other than in its near neighbour {names.split()[0]}", "exactly one")

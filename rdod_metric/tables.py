"""Read the CSV files that people edit, and find everything that is wrong with them.

Whatever is wrong inside a file ends as a `Problem` with the file, the physical line and the column;
only a file that can't be opened raises `OSError`. Files are read as a stream.
"""

import codecs
import csv
import hashlib
import io
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from .rules import (
    CONFIDENCE,
    INPUT_COLUMNS,
    LABELLED_COLUMNS,
    PREDICTION_COLUMNS,
    UNKNOWN,
    Gold,
    Prediction,
    Problem,
    Scenario,
    attempt,
    duplicate_scenario,
    nearest,
    pairing_problems,
    parse_fraction,
    parse_labelled,
    parse_scenario,
    parse_target_cells,
    parse_text,
    shown,
    unknown_scenario,
)

RATIONALE_COLUMNS = ("scenario_id", "rationale")
"""Columns of annotations/rationales.csv, in order."""

ANSWER_CODES = frozenset(
    ("invalid-label", "invalid-number", "onset-out-of-bounds", "constraint-out-of-bounds", "inconsistent-state", "invalid-confidence", "missing-prediction")
)
"""Codes of findings that concern one answer, and that `invalid="incorrect"` turns into a wrong case."""

_NUL = "\udc00"  # stands for a NUL byte, which csv refuses before Python 3.11; no UTF-8 text holds it
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive, such as an Excel workbook (.xlsx)",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)",
    b"\x1f\x8b": "a gzip archive",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_PIECE = 1 << 20
_EXPECTED_CSV = "CSV in UTF-8, with commas"
csv.field_size_limit(2**31 - 1)

T = TypeVar("T")


class Row(NamedTuple):
    """A data row: the physical line on which it begins, and its cells by column name."""

    line: int
    cells: dict[str, Any]


Watch = Callable[[Iterator[Row]], Iterable[Row]]


class Case(NamedTuple):
    """A labelled row as it was read. Where the file has problems, parts of it may be unknown."""

    row: Row
    scenario: Scenario
    gold: Gold


class Table:
    """A CSV file with the columns that it should have, and the problems found while it is read.

    Attributes:
        problems: everything found so far; complete once the rows have been read.
        broken: whether rows were lost, so that what seems to be missing may only be unreadable.
    """

    def __init__(self, path: Path, columns: Sequence[str], *, optional: Sequence[str] = (), ordered: bool = True, name: str = "") -> None:
        """Keep what the header should be; nothing is read yet. `name` is how findings call the file."""
        self.path, self.columns, self.optional, self.ordered = path, tuple(columns), tuple(optional), ordered
        self.name = name or str(path)
        self.problems: list[Problem] = []
        self.broken = False

    def add(self, problem: Problem, line: int | None = None, scenario_id: str = "") -> None:
        """Note a problem of this file."""
        self.problems.append(problem._replace(file=self.name, line=line, scenario_id=problem.scenario_id or scenario_id))

    def rows(self) -> Iterator[Row]:
        """Yield the rows whose width is right. A cell that can't be read is `UNKNOWN`, and so are those of a missing column."""
        with self.path.open("rb") as raw:
            if fault := self._fault_of_content(raw.read(4096)):
                self._lose(fault)
                return
            raw.seek(0)
            yield from self._rows(io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline=""))

    def _lose(self, problem: Problem, line: int | None = 1) -> None:
        self.broken = True
        self.add(problem, line)

    def _fault_of_content(self, start: bytes) -> Problem | None:
        for signature, kind in _SIGNATURES.items():
            if start.startswith(signature):
                return Problem("not-csv", "file", kind, _EXPECTED_CSV)
        if b"\0" in start.split(b"\n", 1)[0]:
            return Problem("not-csv", "file", "binary content (NUL bytes in the first line)", _EXPECTED_CSV)
        return None

    def _rows(self, text: io.TextIOWrapper) -> Iterator[Row]:
        lines = (line.replace("\0", _NUL) if "\0" in line else line for line in text)
        reader = csv.reader(lines, strict=True)
        header: list[str] | None = None
        count = 0
        while True:
            start = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                self._lose(*self._broken_row(start, reader.line_num, error))
                if header is None:
                    return
                continue
            if not (cells and cells[0].strip()) and not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip(" \t") for cell in cells]
                if not self._check_header(header, start):
                    return
                places = {column: header.index(column) for column in (*self.columns, *self.optional) if header.count(column) == 1}
                unknown = dict.fromkeys((*self.columns, *self.optional), UNKNOWN)
                complete = len(places) == len(header) == len(unknown)
                continue
            count += 1
            if len(cells) != len(header):
                self._check_width(cells, header, places, start)
                continue
            known = dict(zip(header, cells, strict=True)) if complete else {**unknown, **{column: cells[place] for column, place in places.items()}}
            row = Row(start, known)
            if not "".join(cells).isascii():
                self._check_letters(row)
            yield row
        if header is None:
            self._lose(Problem("empty-file", "file", "nothing", "a header and rows of " + _EXPECTED_CSV))
        elif not count and not self.broken:
            self.add(Problem("no-rows", "file", "a header and no row", "at least one row"), 1)

    def _broken_row(self, start: int, end: int, error: csv.Error) -> tuple[Problem, int]:
        """Say what breaks a row, and on which line the quote (or else the row) begins."""
        line, reason = start, str(error)
        if "unexpected end of data" in reason:
            reason = "a quote that never closes"
            with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
                body = "".join(line for number, line in enumerate(text, 1) if start <= number <= end)
            opening = list(re.finditer(r'"(?:[^"]|"")*(?:"|\Z)', body))[-1]
            line += len(re.findall(r"\r\n|\r|\n", body[: opening.start()]))
        expected = 'cells quoted as in RFC 4180: a quote inside a quoted cell is doubled (""), not written \\"'
        return Problem("broken-csv", "row", f"a row that is no CSV ({reason})", expected), line

    def _check_header(self, header: list[str], line: int) -> bool:
        """Note what is wrong with the header; return whether its rows can be read at all."""
        known = (*self.columns, *self.optional)
        if len(header) == 1 and (delimiter := next((mark for mark in ";\t|" if mark in header[0]), "")):
            self._lose(Problem("wrong-delimiter", "header", f"columns separated by {delimiter!r}", "columns separated by commas"), line)
            return False
        for column in header:
            if _SURROGATE.search(column):
                self._lose(Problem("encoding", "header", shown(column), "column names in UTF-8"), line)
                return False
        if not any(column in known or nearest(column, known) for column in header):
            found = f"no header: {shown(','.join(header))}"
            self._lose(Problem("no-header", "header", found, "the columns " + ",".join(self.columns)), line)
            return False
        missing = [column for column in self.columns if column not in header]
        meant: set[str] = set()
        for column in dict.fromkeys(header):
            if column not in known:
                near = nearest(column, [name for name in known if name not in header])
                meant.add(near)
                self.add(
                    Problem("unknown-column", column or "(no name)", f"the unknown column {shown(column)}", "no other columns than " + ",".join(known), near),
                    line,
                )
            elif header.count(column) > 1:
                self.add(Problem("duplicate-column", column, f"the column {column} more than once", "every column once"), line)
        for column in missing:
            if column not in meant:
                self.add(Problem("missing-column", column, f"no column {column}", "the columns " + ",".join(self.columns)), line)
        wanted = [column for column in self.columns if column in header]
        if self.ordered and not missing and [column for column in dict.fromkeys(header) if column in wanted] != wanted:
            self.add(Problem("column-order", "header", "the columns in the order " + ",".join(header), "the order " + ",".join(self.columns)), line)
        return True

    def _check_width(self, cells: list[str], header: list[str], places: Mapping[str, int], line: int) -> None:
        self.broken = True
        place = places.get("scenario_id", len(cells))
        name = cells[place].strip() if place < len(cells) else ""
        expected = f"{len(header)}, as in the header (a comma inside a cell needs quotes around the cell)"
        self.add(Problem("row-width", "row", f"{len(cells)} cells", expected), line, name)

    def _check_letters(self, row: Row) -> None:
        """Note cells with bytes that are no UTF-8, or with NUL bytes, and make them unknown."""
        for column, cell in row.cells.items():
            if cell is not UNKNOWN and (match := _SURROGATE.search(cell)):
                if match[0] == _NUL:
                    problem = Problem("nul-byte", column, "a NUL byte", "text without NUL bytes")
                else:
                    byte = f"0x{ord(match[0]) & 0xFF:02x}"
                    problem = Problem("encoding", column, f"the byte {byte}, which is no UTF-8 here", "UTF-8 (save the file as CSV UTF-8)")
                self.add(problem, row.line)
                row.cells[column] = UNKNOWN


def read_id(table: Table, row: Row, seen: dict[str, Any]) -> str | None:
    """Return a row's scenario id, noting a missing or repeated one; None if it can't be used."""
    problems: list[Problem] = []
    cell = attempt(problems, parse_text, row.cells["scenario_id"], "scenario_id")
    if cell is None:
        for problem in problems:
            table.add(problem, row.line)
        table.broken = True
        return None
    name: str = cell.strip()
    if name in seen:
        table.add(duplicate_scenario(name, f"line {seen[name]}"), row.line)
        return None
    seen[name] = row.line
    return name


def _labelled_rows(table: Table, watch: Watch) -> Iterator[Case]:
    seen: dict[str, int] = {}
    for row in watch(table.rows()):
        scenario_id = read_id(table, row, seen) or ""
        problems: list[Problem] = []
        plain = scenario_id and scenario_id == row.cells["scenario_id"]  # as nearly always: then nothing has to be put right
        scenario, gold = parse_labelled(row.cells if plain else {**row.cells, "scenario_id": UNKNOWN}, problems)
        for problem in problems:
            table.add(problem, row.line, scenario_id)
        yield Case(row, scenario, gold) if plain else Case(row, scenario._replace(scenario_id=scenario_id), gold._replace(scenario_id=scenario_id))


def read_cases(path: Path, name: str = "") -> tuple[list[Case], list[Problem]]:
    """Return the cases of a labelled file and all its problems. Only without problems are the cases complete."""
    table = Table(path, LABELLED_COLUMNS, name=name)
    return list(_labelled_rows(table, iter)), table.problems


def read_gold(path: Path, name: str = "", *, keep: Callable[[Case], T] | None = None, watch: Watch = iter) -> tuple[dict[str, Gold], list[T], list[Problem]]:
    """Read a labelled file for scoring, without holding its texts.

    Args:
        path: the file.
        name: how findings call it.
        keep: what else to keep of each case; nothing without it.
        watch: wraps the rows as they come, for instance in a progress bar.

    Returns:
        The gold records by scenario id in file order, what `keep` gave in the same order, and all problems
        of the file. Only without problems are the first two complete.
    """
    table = Table(path, LABELLED_COLUMNS, name=name)
    gold: dict[str, Gold] = {}
    kept: list[T] = []
    for case in _labelled_rows(table, watch):
        gold[case.gold.scenario_id] = case.gold
        if keep is not None and not table.problems:
            kept.append(keep(case))
    return gold, kept, table.problems


def read_blind(path: Path, name: str = "") -> tuple[list[tuple[Row, Scenario]], list[Problem]]:
    """Return the rows of a blind file and all its problems, any column beyond the inputs among them."""
    table = Table(path, INPUT_COLUMNS, name=name)
    rows: list[tuple[Row, Scenario]] = []
    seen: dict[str, int] = {}
    for row in table.rows():
        scenario_id = read_id(table, row, seen) or ""
        problems: list[Problem] = []
        scenario = parse_scenario({**row.cells, "scenario_id": UNKNOWN}, problems)
        for problem in problems:
            table.add(problem, row.line, scenario_id)
        rows.append((row, scenario._replace(scenario_id=scenario_id)))
    return rows, table.problems


def file_sha256(path: Path) -> str:
    """Return `text_sha256` of a file of any size, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        rest = b""
        while piece := file.read(_PIECE):
            piece = rest + piece
            rest = b"\r" if piece.endswith(b"\r") else b""  # the LF that belongs to it may begin the next piece
            digest.update(piece.removesuffix(rest).replace(b"\r\n", b"\n"))
        digest.update(rest)
    return digest.hexdigest()


class Submission(NamedTuple):
    """A prediction file as it was read.

    Attributes:
        predictions: the answers by scenario id; complete only without problems.
        problems: why the file is refused.
        invalid: what is wrong with answers that count as wrong, under `invalid="incorrect"` alone.
    """

    predictions: dict[str, Prediction]
    problems: list[Problem]
    invalid: list[Problem]


def read_predictions(path: Path, gold: Mapping[str, Gold], name: str = "", invalid: Literal["error", "incorrect"] = "error", watch: Watch = iter) -> Submission:
    """Read a prediction file and hold it against `gold`.

    With `invalid="incorrect"` an answer that breaks a rule, or that is missing, counts as wrong on every
    target; files that can't be paired with gold (columns, ids, broken rows) are refused all the same.
    `watch` wraps the rows as they come, for instance in a progress bar.
    """
    table = Table(path, PREDICTION_COLUMNS, optional=[CONFIDENCE], ordered=False, name=name)
    predictions: dict[str, Prediction] = {}
    wrong: list[Problem] = []
    seen: dict[str, int] = {}
    targets = operator.itemgetter(*PREDICTION_COLUMNS[1:])
    for row in watch(table.rows()):
        scenario_id = read_id(table, row, seen)
        case = gold.get(scenario_id) if scenario_id is not None else None
        if scenario_id is not None and case is None:
            table.add(unknown_scenario(scenario_id, gold), row.line)
        steps, constraints = (case.steps, case.constraints) if case else (None, None)
        state, found = parse_target_cells(targets(row.cells), steps, constraints)
        problems = list(found)
        confidence = attempt(problems, parse_fraction, row.cells[CONFIDENCE], CONFIDENCE)
        for problem in problems:
            table.add(problem, row.line, scenario_id or "")
        if case:
            predictions[case.scenario_id] = Prediction(case.scenario_id, None) if problems else Prediction(case.scenario_id, state, confidence)
    if not table.broken:
        for problem in pairing_problems(gold, seen):
            table.add(problem)
    if invalid == "incorrect":
        wrong = [problem for problem in table.problems if problem.code in ANSWER_CODES]
        table.problems = [problem for problem in table.problems if problem.code not in ANSWER_CODES]
        predictions |= {name: Prediction(name, None) for name in gold if name not in seen}
    return Submission(predictions, table.problems, wrong)


def read_rationales(path: Path, scenario_ids: Iterable[str], name: str = "") -> list[Problem]:
    """Return what is wrong with a file of rationales: it has exactly one for each labelled row."""
    table = Table(path, RATIONALE_COLUMNS, name=name)
    seen: dict[str, int] = {}
    wanted = dict.fromkeys(scenario_ids)
    for row in table.rows():
        scenario_id = read_id(table, row, seen)
        if scenario_id is not None and scenario_id not in wanted:
            table.add(unknown_scenario(scenario_id, wanted)._replace(expected="the id of a labelled row"), row.line)
        problems: list[Problem] = []
        attempt(problems, parse_text, row.cells["rationale"], "rationale")
        for problem in problems:
            table.add(problem, row.line, scenario_id or "")
    for scenario_id in wanted:
        if scenario_id not in seen and not table.broken:
            table.add(Problem("missing-rationale", "scenario_id", f"no rationale for {scenario_id}", "one for every labelled row", scenario_id=scenario_id))
    return table.problems

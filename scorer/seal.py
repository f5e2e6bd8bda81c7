#!/usr/bin/env python3
"""Publish a split without its labels, committed to by salted SHA-256, and prove later that the labels never changed.

  seal.py publish LABELLED --blind FILE --commitment FILE --salts FILE
  seal.py verify  LABELLED --commitment FILE --salts FILE

The blind file and the commitment are for everybody; the labelled file and the salts stay private until
the labels are revealed. Exit status: 0 sealed or verified, 1 findings, 2 the command could not do its work.
"""

import argparse
import csv
import hashlib
import io
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import INPUT_COLUMNS, LABELLED_COLUMNS, Problem, lf_bytes
from rdod_metric.tables import Row, read_cases
from scorer.command import VALID, Unable, check_output, existing_file, print_findings, run, write_whole

SCHEME = "rdod-seal-1"
"""Names how digests are made: SHA-256 of the scheme's name, a zero byte, the salt's 32 bytes and the content."""

SALT_BYTES = 32
"""Length of a salt. What is salted so can't be found by trying labels out."""

_HEX = re.compile(rf"[0-9a-f]{{{2 * SALT_BYTES}}}")


class Seal(NamedTuple):
    """Salts or digests: one for the whole file, one for each scenario."""

    file: str
    scenarios: dict[str, str]


def digest(salt: str, content: bytes) -> str:
    """Return the commitment to some content under a salt (64 hexadecimal digits)."""
    return hashlib.sha256(SCHEME.encode() + b"\0" + bytes.fromhex(salt) + content).hexdigest()


def row_bytes(row: Row) -> bytes:
    """Return a labelled row's cells as the bytes that are committed to: a JSON array in the order of the columns, line ends LF."""
    cells = [row.cells[column].replace("\r\n", "\n") for column in LABELLED_COLUMNS]
    return json.dumps(cells, ensure_ascii=True, separators=(",", ":")).encode()


def new_salts(scenario_ids: Iterable[str]) -> Seal:
    """Return fresh random salts."""
    return Seal(secrets.token_hex(SALT_BYTES), {name: secrets.token_hex(SALT_BYTES) for name in scenario_ids})


def commit(content: bytes, rows: Mapping[str, Row], salts: Seal) -> Seal:
    """Return the digests of a labelled file and of each of its rows, by scenario id."""
    return Seal(digest(salts.file, lf_bytes(content)), {name: digest(salts.scenarios[name], row_bytes(row)) for name, row in rows.items()})


def blind_csv(rows: Iterable[Row]) -> str:
    """Return the input columns of labelled rows as the text of a blind file, cell by cell as they stand."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(INPUT_COLUMNS)
    writer.writerows([row.cells[column] for column in INPUT_COLUMNS] for row in rows)
    return text.getvalue()


def differences(commitment: Seal, found: Seal, name: str, lines: Mapping[str, int]) -> list[Problem]:
    """Say what of a revealed file is not what was committed to.

    Args:
        commitment: the published digests.
        found: the digests of the revealed file.
        name: the revealed file's name.
        lines: the line of each revealed scenario.
    """
    problems = [
        Problem("seal-broken", "row", "another row than the one committed to", "the row of the commitment", scenario_id=key, file=name, line=lines[key])
        for key, value in found.scenarios.items()
        if key in commitment.scenarios and commitment.scenarios[key] != value
    ]
    for key in lines:
        if key not in commitment.scenarios:
            problems.append(Problem("unknown-scenario", "scenario_id", key, "a scenario of the commitment", scenario_id=key, file=name, line=lines[key]))
    for key in commitment.scenarios:
        if key not in lines:
            problems.append(Problem("missing-scenario", "scenario_id", f"no row for {key}", "every scenario of the commitment", scenario_id=key, file=name))
    if not problems and found.file != commitment.file:
        expected = "the file committed to, byte for byte (line ends aside)"
        problems.append(Problem("seal-broken", "file", "the same rows in another order or spelling", expected, file=name))
    return problems


# ---------------------------------------------------------------- files
def seal_json(seal: Seal, kind: str) -> str:
    """Return a commitment (`sha256`) or its salts (`salt`) as the text of a JSON file."""
    rows = {name: {kind: value} for name, value in seal.scenarios.items()}
    return json.dumps({"scheme": SCHEME, "file": {kind: seal.file}, "scenarios": rows}, indent=2) + "\n"


def read_seal(path: Path, kind: str) -> tuple[Seal | None, list[Problem]]:
    """Return what `seal_json` wrote, or what is wrong with the file."""
    expected = f"what scorer/seal.py publish wrote ({SCHEME}, with {kind} of the file and of each scenario)"
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        if content["scheme"] != SCHEME:
            raise ValueError("another scheme")
        seal = Seal(content["file"][kind], {name: row[kind] for name, row in content["scenarios"].items()})
        if not all(isinstance(value, str) and _HEX.fullmatch(value) for value in (seal.file, *seal.scenarios.values())):
            raise ValueError("no digest")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, [Problem("not-a-seal", "file", "something else", expected, file=str(path))]
    return seal, []


def read_labelled(path: Path) -> tuple[dict[str, Row], list[Problem]]:
    """Return the rows of a labelled file by scenario id, and its problems."""
    cases, problems = read_cases(path)
    return {case.gold.scenario_id: case.row for case in cases}, problems


# ---------------------------------------------------------------- the command
def publish(labelled: Path, blind: Path, commitment: Path, salts: Path) -> int:
    """Write the blind file, the commitment and the salts; nothing is written where the labelled file has findings.

    Raises:
        Unable: the salts' file is there already (without its salts an earlier commitment proves nothing), two
            of the files are the same, or one can't be written.
    """
    outputs = (blind, commitment, salts)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise Unable("the blind file, the commitment and the salts are three files")
    for path in outputs:
        check_output(path, labelled)
    if salts.exists():
        raise Unable(f"{salts} is there already: an earlier commitment needs it")
    rows, problems = read_labelled(labelled)
    if problems:
        return print_findings(problems)
    fresh = new_salts(rows)
    umask = os.umask(0o077)  # the salts are for their owner's eyes
    try:
        write_whole(salts, seal_json(fresh, "salt"))
    finally:
        os.umask(umask)
    try:
        write_whole(blind, blind_csv(rows.values()))
        write_whole(commitment, seal_json(commit(labelled.read_bytes(), rows, fresh), "sha256"))
    except BaseException:  # salts without a commitment are of no use, and would stand in the way of the next attempt
        salts.unlink()
        raise
    print(f"sealed {len(rows)} scenarios: publish {blind} and {commitment}; keep {labelled} and {salts} private")
    return VALID


def verify(labelled: Path, commitment: Path, salts: Path) -> int:
    """Hold a revealed labelled file against the published commitment."""
    committed, problems = read_seal(commitment, "sha256")
    used, found = read_seal(salts, "salt")
    rows, wrong = read_labelled(labelled)
    problems += found + wrong
    if committed and used and set(committed.scenarios) != set(used.scenarios):
        problems.append(Problem("not-a-seal", "file", "salts of other scenarios", "the salts that belong to the commitment", file=str(salts)))
    if committed is None or used is None or problems:
        return print_findings(problems)
    known = {name: row for name, row in rows.items() if name in used.scenarios}
    digests = commit(labelled.read_bytes(), known, used)
    status = print_findings(differences(committed, digests, str(labelled), {name: row.line for name, row in rows.items()}))
    if status == VALID:
        print(f"verified: {labelled} is the file committed to, {len(rows)} scenarios")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind, text in (("publish", "write blind file, commitment and salts"), ("verify", "hold a revealed file against its commitment")):
        part = kinds.add_parser(kind, help=text)
        part.add_argument("labelled", help="the labelled file")
        if kind == "publish":
            part.add_argument("--blind", type=Path, required=True, metavar="FILE", help="public: the model inputs")
        part.add_argument("--commitment", type=Path, required=True, metavar="FILE", help="public: the digests")
        part.add_argument("--salts", type=Path, required=True, metavar="FILE", help="private until the labels are revealed")
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    chosen = _parser().parse_args()
    labelled = existing_file(chosen.labelled)
    if chosen.kind == "publish":
        return publish(labelled, chosen.blind, chosen.commitment, chosen.salts)
    return verify(labelled, existing_file(str(chosen.commitment)), existing_file(str(chosen.salts)))


if __name__ == "__main__":
    run(main)

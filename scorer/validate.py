#!/usr/bin/env python3
"""Validate labelled, blind and prediction files, or the whole repository.

Prints one line for each problem, all of them at once. Exit status: 0 valid, 1 findings, 2 the
command could not do its work.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import EXPANDED_VERSION, INPUT_COLUMNS, VERSION, Gold, Problem, Scenario, contrast_family, lf_bytes, text_sha256
from rdod_metric.schema import build_schema
from rdod_metric.tables import Case, Row, read_blind, read_cases, read_gold, read_predictions, read_rationales
from scorer.command import ROOT, Unable, existing_file, print_findings, run
from scorer.families import family_problems, stray_problems

SPLITS = ("train", "dev", "test")
"""The labelled splits of a release."""


class Release(NamedTuple):
    """A release of the data, and where its files are."""

    name: str
    version: str
    folder: str
    rationales: str

    @property
    def labelled(self) -> tuple[str, ...]:
        """Return the labelled files, in the order of `SPLITS`."""
        return tuple(f"{self.folder}/{split}.csv" for split in SPLITS)

    @property
    def blind(self) -> str:
        """Return the file of test's inputs."""
        return f"{self.folder}/test_blind.csv"


SEED = Release("v0.2", VERSION, "data", "annotations/rationales.csv")
"""The release of the official leaderboards."""

EXPANDED = Release("expanded", EXPANDED_VERSION, "data/expanded", "annotations/expanded_rationales.csv")
"""The release of contrast families, a preview."""

RELEASES = (SEED, EXPANDED)

REQUIRED_FILES = (
    *(name for release in RELEASES for name in (*release.labelled, release.blind, release.rationales)),
    "baseline/baseline.py",
    "baseline/example_predictions.csv",
    "scorer/score.py",
    "scorer/validate.py",
    "README.md",
    "schema.json",
    "manifest.json",
    "CITATION.cff",
    "requirements.txt",
    "LICENSE",
)
"""What a repository must hold to be published."""


def _folded(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.casefold().split()) for text in texts)


def overlap_problems(files: Mapping[str, Sequence[tuple[Row, Scenario]]]) -> list[Problem]:
    """Find scenarios that stand twice: an id in two files, a trajectory anywhere, a task in two files or in two families.

    The members of a contrast family share their task; that they lie in one file is a rule of families.

    Args:
        files: the rows of each file, by the file's name.
    """
    problems: list[Problem] = []
    ids: dict[str, str] = {}
    first: dict[tuple[str, tuple[str, ...]], tuple[str, Row, Scenario]] = {}
    for name, rows in files.items():
        for row, scenario in rows:
            place = ids.setdefault(scenario.scenario_id, name)
            if scenario.scenario_id and place != name:
                problems.append(
                    Problem(
                        "split-overlap",
                        "scenario_id",
                        f"{scenario.scenario_id}, which stands in {place} too",
                        "an id in one split only",
                        file=name,
                        line=row.line,
                        scenario_id=scenario.scenario_id,
                    )
                )
                continue
            twins: dict[str, tuple[str, Row, Scenario]] = {}
            for kind, texts in (("trajectory", scenario.trajectory), ("task", (scenario.task,))):
                key = kind, _folded(texts)
                if not any(key[1]):
                    continue
                twin = first.setdefault(key, (name, row, scenario))
                if twin[2] is not scenario and (kind == "trajectory" or not _may_share_task(twin[2], scenario, same_file=twin[0] == name)):
                    twins[kind] = twin
            if twins:
                other, line, known = next(iter(twins.values()))
                found = f"the {' and '.join(twins)} of {known.scenario_id} ({other}:{line.line}) again"
                problems.append(
                    Problem(
                        "split-overlap",
                        "trajectory_json" if "trajectory" in twins else "task",
                        found,
                        "text of its own in every scenario",
                        file=name,
                        line=row.line,
                        scenario_id=scenario.scenario_id,
                    )
                )
    return problems


def _may_share_task(one: Scenario, other: Scenario, *, same_file: bool) -> bool:
    families = contrast_family(one.scenario_id), contrast_family(other.scenario_id)
    return families[0] == families[1] if any(families) else same_file


def _between(files: Mapping[str, Sequence[Case]], known: Sequence[Problem]) -> list[Problem]:
    """Return the problems between the rows of labelled files; `known` are those of single rows."""
    return overlap_problems({name: [(case.row, case.scenario) for case in cases] for name, cases in files.items()}) + family_problems(files, known)


def validate_labelled(paths: Sequence[Path]) -> list[Problem]:
    """Return the problems of labelled files and those between them."""
    problems: list[Problem] = []
    files: dict[str, list[Case]] = {}
    for path in paths:
        files[str(path)], found = read_cases(path)
        problems += found
    return problems + _between(files, problems)


def validate_predictions(path: Path, gold_path: Path) -> list[Problem]:
    """Return the problems of a gold file or, if it has none, those of the predictions for it."""
    gold, _, problems = read_gold(gold_path)
    return problems or read_predictions(path, gold).problems


def gold_by_id(cases: Iterable[Case]) -> dict[str, Gold]:
    """Return the gold records of cases by scenario id, in file order."""
    return {case.gold.scenario_id: case.gold for case in cases}


# ---------------------------------------------------------------- the repository
def _read_json(root: Path, name: str) -> tuple[Any, list[Problem]]:
    try:
        return json.loads((root / name).read_text(encoding="utf-8")), []
    except (ValueError, RecursionError) as error:
        return None, [Problem("invalid-json", "file", str(error), "JSON in UTF-8", file=name, line=getattr(error, "lineno", None))]


def _blind_problems(test: Sequence[Case], blind: Sequence[tuple[Row, Scenario]], release: Release) -> list[Problem]:
    """Hold the blind split of a release against its test: the same cells in the same order."""
    name, labelled = release.blind, release.labelled[-1]
    problems: list[Problem] = []
    if len(test) != len(blind):
        problems.append(Problem("blind-mismatch", "rows", f"{len(blind)} rows", f"{len(test)}, as in {labelled}", file=name))
    for case, (row, _) in zip(test, blind, strict=False):  # the lengths are compared above
        for column in INPUT_COLUMNS:
            if _lf(row.cells[column]) != _lf(case.row.cells[column]):
                found = f"another {column} than in {labelled}:{case.row.line}"
                problems.append(
                    Problem(
                        "blind-mismatch",
                        column,
                        found,
                        "the same cells in the same order as test",
                        file=name,
                        line=row.line,
                        scenario_id=case.scenario.scenario_id,
                    )
                )
    return problems


def _lf(cell: Any) -> Any:
    return cell.replace("\r\n", "\n") if isinstance(cell, str) else cell


def file_entry(content: bytes, rows: int | None) -> dict[str, Any]:
    """Return what the manifest says of a text file: rows, and bytes and SHA-256 of its LF-normalised text."""
    return {"rows": rows, "bytes": len(lf_bytes(content)), "sha256": text_sha256(content)}


def _manifest_problems(root: Path, rows: Mapping[str, int]) -> list[Problem]:
    manifest, problems = _read_json(root, "manifest.json")
    entries = manifest.get("files") if isinstance(manifest, dict) else None
    if problems or not isinstance(entries, dict):
        return problems or [Problem("stale-file", "files", "no object of files", "an entry for every file; run make build", file="manifest.json")]
    for name, count in rows.items():
        wanted = file_entry((root / name).read_bytes(), count)
        entry = entries.get(name)
        if not isinstance(entry, dict) or any(entry.get(key) != value for key, value in wanted.items()):
            found = ", ".join(f"{key} {entry.get(key)}" for key in wanted) if isinstance(entry, dict) else "no entry"
            expected = ", ".join(f"{key} {value}" for key, value in wanted.items()) + "; run make build"
            problems.append(Problem("stale-file", name, found, expected, file="manifest.json"))
    return problems


def _schema_problems(root: Path) -> list[Problem]:
    schema, problems = _read_json(root, "schema.json")
    if not problems and schema != build_schema():
        problems.append(Problem("stale-file", "file", "another schema than the rules give", "the schema of the rules; run make build", file="schema.json"))
    return problems


def validate_repository(root: Path) -> list[Problem]:
    """Return everything that keeps a repository from being published; file names are relative to `root`.

    What is missing is named, and the rest is checked all the same.
    """
    if not root.is_dir():
        raise Unable(f"no such folder: {root}")
    missing = {name for name in REQUIRED_FILES if not (root / name).is_file()}
    problems = [Problem("missing-file", "file", "no such file", "every published file", file=name) for name in REQUIRED_FILES if name in missing]
    files: dict[str, list[Case]] = {}
    rows: dict[str, int] = {}
    for name in (name for release in RELEASES for name in release.labelled):
        if name not in missing:
            files[name], found = read_cases(root / name, name)
            problems += found
            rows[name] = len(files[name])
    problems += _between(files, problems) + stray_problems({name: files[name] for name in EXPANDED.labelled if name in files})
    for release in RELEASES:
        test, name = files.get(release.labelled[-1]), release.blind
        if name not in missing:
            blind, found = read_blind(root / name, name)
            rows[name] = len(blind)
            problems += found + (_blind_problems(test, blind, release) if test is not None else [])
        name = release.rationales
        if not missing & {name, *release.labelled}:
            labelled = [case.scenario.scenario_id for file in release.labelled for case in files[file] if case.scenario.scenario_id]
            rows[name] = len(labelled)
            problems += read_rationales(root / name, labelled, name)
    test, name = files.get(SEED.labelled[-1]), "baseline/example_predictions.csv"
    if name not in missing and test is not None:
        rows[name] = len(test)
        problems += read_predictions(root / name, gold_by_id(test), name).problems
    if "manifest.json" not in missing:
        problems += _manifest_problems(root, rows)
    if "schema.json" not in missing:
        problems += _schema_problems(root)
    return problems


# ---------------------------------------------------------------- the command
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    repository = kinds.add_parser("repository", help="everything that is published")
    repository.add_argument("--root", type=Path, default=ROOT, help="the repository's root (default: the one that holds this command)")
    labelled = kinds.add_parser("labelled", help="labelled files, and their overlap")
    labelled.add_argument("files", nargs="+", metavar="FILE")
    blind = kinds.add_parser("blind", help="files of model inputs, which hold no label")
    blind.add_argument("files", nargs="+", metavar="FILE")
    predictions = kinds.add_parser("predictions", help="a prediction file, held against its gold file")
    predictions.add_argument("files", nargs=1, metavar="FILE")
    predictions.add_argument("--gold", required=True, metavar="FILE", help="the labelled file that the predictions are for")
    for kind in (repository, labelled, blind, predictions):
        kind.add_argument("--format", choices=("text", "json"), default="text", help="how findings are printed (default: text)")
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    arguments = _parser().parse_args()
    if arguments.kind == "repository":
        problems = validate_repository(arguments.root)
        subject = "the repository"
    else:
        paths = [existing_file(name) for name in arguments.files]
        subject = ", ".join(arguments.files)
        if arguments.kind == "labelled":
            problems = validate_labelled(paths)
        elif arguments.kind == "blind":
            problems = [problem for path in paths for problem in read_blind(path)[1]]
        else:
            problems = validate_predictions(paths[0], existing_file(arguments.gold))
    status = print_findings(problems, arguments.format)
    if not problems and arguments.format == "text":
        print(f"valid: {subject}")
    return status


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Build every generated file from the CSV files and the rules, or check that the committed ones are fresh.

Whoever edits a CSV runs this and commits what changed. Exit status: 0 built or fresh, 1 findings in
the data or something stale under --check, 2 the command could not do its work.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baseline.baseline import heuristic, prediction_csv
from rdod_metric.rules import VERSION, Problem
from rdod_metric.schema import build_schema
from rdod_metric.tables import RATIONALE_COLUMNS, Table, read_blind
from scorer.command import ROOT, VALID, print_findings, run, write_whole
from scorer.validate import SPLITS, file_entry, validate_labelled

STATUS = {
    "status": "structured_reasoning_state_seed",
    "publication_ready": True,
    "schema_validated": True,
    "evaluation_pipeline_validated": True,
    "model_comparison_validated": False,
    "blind_test_label_space_complete": True,
    "blind_test_class_support_sufficient": False,
    "leaderboard_statistically_mature": False,
    "known_fixed_position_shortcut": False,
    "human_baseline_available": False,
    "inter_annotator_agreement_available": False,
    "hidden_test_server_available": False,
}
"""What the release may be taken for, and what not."""

CANARY = "rdod-canary:38992a87-553c-4934-9b7b-348c8150cfff"
"""Marks the release, so that training corpora can be searched and filtered for it."""

Files = Mapping[str, bytes]


def as_json(value: Any) -> bytes:
    """Return a value as the bytes of a JSON file."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def example_predictions(root: Path) -> bytes:
    """Return the default baseline's answers to the blind test."""
    rows, _ = read_blind(root / "data/test_blind.csv")
    return prediction_csv([heuristic(scenario) for _, scenario in rows]).encode()


def manifest(root: Path, example: bytes) -> dict[str, Any]:
    """Return the manifest: version, status flags, and rows, bytes and SHA-256 of every file of rows."""
    entries = {}
    for name in (*(f"data/{split}.csv" for split in SPLITS), "data/test_blind.csv"):
        rows = sum(1 for _ in Table(root / name, ["scenario_id"]).rows())
        entries[name] = file_entry((root / name).read_bytes(), rows)
    name = "annotations/rationales.csv"
    entries[name] = file_entry((root / name).read_bytes(), sum(1 for _ in Table(root / name, RATIONALE_COLUMNS).rows()))
    entries["baseline/example_predictions.csv"] = file_entry(example, entries["data/test_blind.csv"]["rows"])
    return {
        "name": "reasoning-drift-onset-detection-v0.2",
        "publisher": "Clarus Invariant",
        "framework": "SIOS",
        "version": VERSION,
        "license": "MIT",
        "canary": CANARY,
        "checksums": "rows, bytes and sha256 of text files are those of their text with LF line ends",
        **STATUS,
        "files": entries,
    }


def generated(root: Path) -> dict[str, bytes]:
    """Return the content of every generated file, by its name relative to `root`."""
    example = example_predictions(root)
    return {
        "schema.json": as_json(build_schema()),
        "baseline/example_predictions.csv": example,
        "manifest.json": as_json(manifest(root, example)),
    }


def stale(root: Path, files: Files) -> list[Problem]:
    """Return a problem for every generated file whose committed content is another, line ends aside."""
    problems = []
    for name, content in files.items():
        path = root / name
        if not path.is_file() or path.read_bytes().replace(b"\r\n", b"\n") != content:
            found = "other content than would be built" if path.is_file() else "no such file"
            problems.append(Problem("stale-file", "file", found, "what make build writes", file=name))
    return problems


def data_problems(root: Path) -> list[Problem]:
    """Return what keeps the CSV files from being built on."""
    problems = validate_labelled([root / f"data/{split}.csv" for split in SPLITS])
    return problems + read_blind(root / "data/test_blind.csv")[1]


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if anything committed is stale")
    arguments = parser.parse_args()
    if problems := data_problems(ROOT):
        return print_findings(problems)
    files = generated(ROOT)
    problems = stale(ROOT, files)
    if arguments.check:
        return print_findings(problems)
    for problem in problems:
        write_whole(ROOT / problem.file, files[problem.file].decode())
        print(f"wrote {problem.file}")
    if not problems:
        print("everything is fresh")
    return VALID


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Build every generated file from the CSV files and the rules, or check that the committed ones are fresh.

Whoever edits a CSV runs this and commits what changed. Exit status: 0 built or fresh, 1 findings in
the data or something stale under --check, 2 the command could not do its work.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baseline.baseline import heuristic, prediction_csv
from rdod_metric.rules import VERSION, Problem, lf_bytes
from rdod_metric.schema import build_schema
from rdod_metric.tables import RATIONALE_COLUMNS, Table, read_blind
from scorer.command import ROOT, VALID, print_findings, run, write_whole
from scorer.validate import RELEASES, SPLITS, file_entry, validate_labelled
from tools.audit_tables import RESULTS, audit_results, with_audit_tables
from tools.card import dataset_infos, front_matter, with_front_matter
from tools.croissant import croissant
from tools.typed import Tables, parquet_files, read_tables

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


def held_out_domains(tables: Tables) -> list[str]:
    """Return the domains of the expanded test that no row of the expanded train or dev has."""
    train, dev, test = (set(tables[f"expanded/{split}"]["domain"].to_pylist()) for split in SPLITS)
    return sorted(test - train - dev)


def manifest(root: Path, example: bytes, tables: Tables, parquet: Files) -> dict[str, Any]:
    """Return the manifest: versions, status flags, and rows, bytes and SHA-256 of every file of rows."""
    entries = {}
    for release in RELEASES:
        for name in (*release.labelled, release.blind):
            entries[name] = file_entry((root / name).read_bytes(), sum(1 for _ in Table(root / name, ["scenario_id"]).rows()))
        name = release.rationales
        entries[name] = file_entry((root / name).read_bytes(), sum(1 for _ in Table(root / name, RATIONALE_COLUMNS).rows()))
    entries["baseline/example_predictions.csv"] = file_entry(example, entries["data/test_blind.csv"]["rows"])
    for name, content in parquet.items():
        rows = entries[name.replace(".parquet", ".csv")]["rows"]
        entries[name] = {"rows": rows, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {
        "name": "reasoning-drift-onset-detection-v0.2",
        "publisher": "Clarus Invariant",
        "framework": "SIOS",
        "version": VERSION,
        "license": "MIT",
        "canary": CANARY,
        "checksums": "rows, bytes and sha256 of text files are those of their text with LF line ends, and of Parquet files those of the file",
        **STATUS,
        "releases": {release.name: {"version": release.version, "folder": release.folder} for release in RELEASES},
        "held_out_domains": held_out_domains(tables),
        "files": entries,
    }


def generated(root: Path, measure: bool = True) -> dict[str, bytes]:
    """Return the content of every generated file, by its name relative to `root`.

    Of the card, the text is what is there. Without `measure` the audit is not run, and a result of it that is out of date
    only differs from what would be built.
    """
    example = example_predictions(root)
    tables = read_tables(root)
    parquet = parquet_files(root, tables)
    data = {f"data/{file}.csv": lf_bytes((root / f"data/{file}.csv").read_bytes()) for file in tables} | parquet
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    audits = audit_results(root, measure)
    card = (root / "README.md").read_text(encoding="utf-8") if (root / "README.md").is_file() else ""
    return {
        **parquet,
        RESULTS: as_json(audits),
        "README.md": with_front_matter(with_audit_tables(card, audits), front_matter(tables)).encode(),
        "dataset_infos.json": as_json(dataset_infos(tables)),
        "croissant.json": as_json(croissant(tables, data, citation)),
        "schema.json": as_json(build_schema()),
        "baseline/example_predictions.csv": example,
        "rdod_metric/test.csv": data["data/test.csv"],
        "manifest.json": as_json(manifest(root, example, tables, parquet)),
    }


def stale(root: Path, files: Files) -> list[Problem]:
    """Return a problem for every generated file whose committed content is another, line ends of text aside."""
    problems = []
    for name, content in files.items():
        path = root / name
        if not path.is_file() or content not in (present := path.read_bytes(), lf_bytes(present)):
            found = "other content than would be built" if path.is_file() else "no such file"
            problems.append(Problem("stale-file", "file", found, "what make build writes", file=name))
    return problems


def data_problems(root: Path) -> list[Problem]:
    """Return what keeps the CSV files from being built on."""
    problems = validate_labelled([root / name for release in RELEASES for name in release.labelled])
    return problems + [problem for release in RELEASES for problem in read_blind(root / release.blind)[1]]


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if anything committed is stale")
    arguments = parser.parse_args()
    if problems := data_problems(ROOT):
        return print_findings(problems)
    files = generated(ROOT, measure=not arguments.check)
    problems = stale(ROOT, files)
    if arguments.check:
        return print_findings(problems)
    for problem in problems:
        write_whole(ROOT / problem.file, files[problem.file])
        print(f"wrote {problem.file}")
    if not problems:
        print("everything is fresh")
    return VALID


if __name__ == "__main__":
    run(main)

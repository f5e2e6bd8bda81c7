"""The audit's tables for the card, measured anew only where data or audit have changed."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from rdod_metric.rules import lf_bytes
from scorer.validate import RELEASES, Release

RESULTS = "audit.json"
"""File that keeps the tables between builds, with a digest of all that they follow from."""

_SOURCES = (
    "scorer/audit.py",
    "scorer/audit_checks.py",
    "scorer/audit_probes.py",
    "scorer/audit_thresholds.json",
    "scorer/leaderboard.py",
    "scorer/strata.py",
    "baseline/baseline.py",
    "rdod_metric/scoring.py",
)
_TABLES = re.compile(r"(<!-- (audit|floors) of (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def audit_results(root: Path, measure: bool = True) -> dict[str, Any]:
    """Return for each release the digest of its data and of the audit, the main table, the floors and the failing checks.

    Without `measure` what is out of date gets its new digest alone, which is enough to find that it is.
    """
    kept = json.loads((root / RESULTS).read_text(encoding="utf-8")) if (root / RESULTS).is_file() else {}
    results = {}
    for release in RELEASES:
        digest = _digest(root, release)
        known = kept.get(release.name, {"failing": [], "audit": "", "floors": ""})
        fresh = known.get("digest") == digest or not measure
        results[release.name] = {**known, "digest": digest} if fresh else {"digest": digest, **_measured(root, release)}
    return results


def with_audit_tables(card: str, results: dict[str, Any]) -> str:
    """Return a card whose marked places hold the tables: `<!-- audit of v0.2 -->` up to `<!-- end -->`."""
    return _TABLES.sub(lambda place: f"{place[1]}\n{results[place[3]][place[2]]}\n\n{place[4]}", card)


def _digest(root: Path, release: Release) -> str:
    digest = hashlib.sha256()
    for name in (*release.labelled, *_SOURCES):
        digest.update(hashlib.sha256(lf_bytes((root / name).read_bytes())).digest())
    return digest.hexdigest()


def _measured(root: Path, release: Release) -> dict[str, Any]:
    from scorer import audit  # slow to import, with libraries that publishing doesn't need: only where something has changed

    files, _ = audit.read_files([str(root / name) for name in release.labelled])
    report = audit.audit(files)
    failing = [f"{check.name} [{check.scope}]" for check in report.checks if not check.passed]
    return {"failing": failing, "audit": audit.main_table(report).rstrip(), "floors": audit.floors_table(report.floors).rstrip()}

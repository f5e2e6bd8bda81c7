#!/usr/bin/env python3
"""Publish the dataset and the metric's Space on the Hugging Face Hub, or say what would go where.

Only what is committed goes, and only from a clean, valid and fresh checkout. Each repository is tagged
with the version; one that has the tag already is left as it is. Log in first with `hf auth login`, or
set HF_TOKEN. Exit status: 0 published or shown, 1 findings in the checkout, 2 the command could not do
its work.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import HfApi, get_token

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import BENCHMARK_NAME, VERSION
from scorer.command import ROOT, VALID, Unable, print_findings, run
from scorer.validate import validate_repository
from tools.build import generated, stale


class Target(NamedTuple):
    """A repository of the Hub, and what of the checkout belongs to it."""

    repo_id: str
    repo_type: str
    folder: str
    allowed: re.Pattern[str]


# The Hub gives every repository a .gitattributes of its own, which keeps Parquet in large file storage: ours stays here.
DATASET = Target(
    "ClarusC64/reasoning-drift-onset-detection-v0.2",
    "dataset",
    "",
    re.compile(
        r"README\.md|LICENSE|CITATION\.cff|CHANGELOG\.md|Makefile|requirements\.txt|reasoning_drift_onset_detection\.py"
        r"|(?:schema|manifest|croissant|dataset_infos|audit)\.json|data/(?:expanded/)?[^/]+\.(?:csv|parquet)|annotations/[^/]+\.csv|docs/.+"
        r"|baseline/[^/]+\.(?:py|csv|md)|(?:scorer|tools)/[^/]+\.(?:py|json)|harness/.+|rdod_metric/[^/]+\.(?:py|md|txt|json|csv)"
    ),
)
"""The dataset's repository: the data, and the commands that people run from a clone of it."""

SPACE = Target("ClarusC64/rdod_metric", "space", "rdod_metric/", re.compile(r"rdod_metric/[^/]+\.(?:py|md|txt|json|csv)"))
"""The metric's Space, where `evaluate.load` finds it: the metric's folder alone."""

TAG = f"v{VERSION}"
"""How the version is tagged."""


def _git(root: Path, command: str, *arguments: str) -> list[str]:
    try:
        ended = subprocess.run(["git", command, "-z", *arguments], cwd=root, capture_output=True, encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        raise Unable("publishing needs git, which is not installed") from None
    if ended.returncode:
        raise Unable(f"git {command}: {ended.stderr.strip().splitlines()[0]}")
    return [name for name in ended.stdout.split("\0") if name]


def refuse_dirty(root: Path) -> None:
    """Raise `Unable` if anything in the checkout is changed or not committed."""
    if changed := _git(root, "status", "--porcelain", "--", "."):
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise Unable(f"not everything is committed: {', '.join(entry[3:] for entry in changed[:3])}{more}")


def files_of(target: Target, root: Path) -> list[str]:
    """Return the committed files that belong to a target, relative to its folder."""
    return [name.removeprefix(target.folder) for name in _git(root, "ls-files") if target.allowed.fullmatch(name)]


def describe(target: Target, root: Path) -> str:
    """Say which files go where, with their sizes."""
    folder = root / target.folder
    files = files_of(target, root)
    lines = [f"  {name} ({(folder / name).stat().st_size:,} bytes)" for name in files]
    return "\n".join([f"{target.repo_type} {target.repo_id}, tag {TAG}, {len(files)} files:", *lines])


def push(target: Target, root: Path, api: HfApi) -> str:
    """Upload a target's files, tag them, and say what was done."""
    repo_id, kind = target.repo_id, target.repo_type
    api.create_repo(repo_id, repo_type=kind, exist_ok=True, space_sdk="gradio" if kind == "space" else None)
    if TAG in (tag.name for tag in api.list_repo_refs(repo_id, repo_type=kind).tags):
        return f"{kind} {repo_id}: {TAG} is published already, left as it is"
    message = f"{BENCHMARK_NAME}, release {VERSION}"
    folder, files = root / target.folder, files_of(target, root)
    commit = api.upload_folder(repo_id=repo_id, repo_type=kind, folder_path=folder, allow_patterns=files, commit_message=message)
    api.create_tag(repo_id, repo_type=kind, tag=TAG, revision=commit.oid)
    return f"{kind} {repo_id}: published and tagged {TAG}"


def publish(targets: Sequence[Target], root: Path) -> None:
    """Push every target; raise `Unable` with one sentence for whatever the Hub or the network answers."""
    token = get_token()
    if not token:
        raise Unable("no token for the Hub: log in with `hf auth login`, or set HF_TOKEN")
    for target in targets:
        try:
            print(push(target, root, HfApi(token=token)))
        except Exception as error:  # what the library raises differs with its version and with the HTTP client below it
            reason = " ".join(str(error).split()) or type(error).__name__
            raise Unable(f"{target.repo_type} {target.repo_id}: {reason}".replace(token, "(token)")) from None


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action=argparse.BooleanOptionalAction, default=True, help="say what would go where (the default), or really publish")
    arguments = parser.parse_args()
    refuse_dirty(ROOT)
    if problems := validate_repository(ROOT) or stale(ROOT, generated(ROOT)):
        return print_findings(problems)
    if arguments.dry_run:
        print("\n".join(describe(target, ROOT) for target in (DATASET, SPACE)))
        print("nothing was published; --no-dry-run does it")
    else:
        publish((DATASET, SPACE), ROOT)
    return VALID


if __name__ == "__main__":
    run(main)

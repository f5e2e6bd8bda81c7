"""Publishing: what would go where, refusals, and the upload itself against a server on the loopback."""

import re
import subprocess

import pytest
from conftest import ROOT, project_files
from hub_server import COMMIT, Hub

from rdod_metric.rules import VERSION
from tools.publish import DATASET, SPACE

TOKEN = "hf_" + "TestTokenThatNobodyMaySee" * 2
TAG = f"v{VERSION}"


def git(folder, *arguments):
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", "release")


@pytest.fixture
def release(checkout):
    """Return a checkout of which everything is committed."""
    git(checkout, "init", "--quiet")
    commit(checkout)
    return checkout


@pytest.fixture
def publish(command, tmp_path):
    """Return a function that runs the command with a token and an empty home, and sees to it that the token is not printed."""

    def run(checkout, *arguments, endpoint="http://127.0.0.1:9", token=TOKEN):
        variables = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": token, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        variables |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        ended = command(checkout / "tools/publish.py", *arguments, env=variables)
        assert TOKEN not in ended.out + ended.err
        return ended

    return run


def belongs(target):
    return {name.removeprefix(target.folder) for name in project_files() if target.allowed.fullmatch(name)}


def test_what_belongs_to_each():
    dataset, space = belongs(DATASET), belongs(SPACE)
    assert {
        "README.md",
        "manifest.json",
        "reasoning_drift_onset_detection.py",
        "scorer/score.py",
        "rdod_metric/rules.py",
        "annotations/rationales.csv",
    } <= dataset
    folders, splits = ("data", "data/expanded"), ("train", "dev", "test", "test_blind")
    assert {f"{folder}/{split}.{kind}" for folder in folders for split in splits for kind in ("csv", "parquet")} <= dataset
    assert {"annotations/expanded_rationales.csv", "docs/expanded.md", "scorer/families.py"} <= dataset
    assert {"README.md", "rdod_metric.py", "rules.py", "scoring.py", "app.py", "requirements.txt"} <= space
    assert not any("/" in name or name == "schema.json" for name in space)
    assert not any(name.startswith((".", "tests/", "benchmarks/", "results/")) for name in dataset | space)
    assert not any(
        DATASET.allowed.fullmatch(name) for name in (".gitattributes", ".env", "data/notes.txt", "data/old/train.csv", "scorer/key.pem", "README.md.orig")
    )


def test_a_dry_run_is_the_default_and_says_what_would_go_where(publish, release):
    shown = publish(release)
    assert shown.status == 0 and publish(release, "--dry-run") == shown
    parts = re.split(r"^(?=\w+ ClarusC64/)", shown.out, flags=re.MULTILINE)[1:]
    for target, part in zip((DATASET, SPACE), parts, strict=True):
        assert part.startswith(f"{target.repo_type} {target.repo_id}, tag {TAG}, {len(belongs(target))} files:\n")
        assert set(re.findall(r"^  (\S+) \(", part, flags=re.MULTILINE)) == belongs(target)
    assert "nothing was published" in shown.out


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize("arguments", [(), ("--no-dry-run",)])
def test_a_dirty_tree_is_refused(publish, release, arguments):
    (release / "notes.md").write_text("Not committed.\n", encoding="utf-8")
    refused = publish(release, *arguments)
    assert (refused.status, refused.out, refused.err) == (2, "", "error: not everything is committed: notes.md\n")


def test_a_checkout_without_git_is_refused(publish, checkout):
    refused = publish(checkout)
    assert refused.status == 2 and re.fullmatch(r"error: git status: .*not a git repository.*\n", refused.err)


def test_what_the_validator_finds_is_refused(publish, release):
    path = release / "data/dev.csv"
    path.write_bytes(path.read_bytes().replace(b"RDOD2-017", b"RDOD2-001"))
    commit(release)
    refused = publish(release, "--no-dry-run")
    assert refused.status == 1 and "data/dev.csv:2: scenario_id: " in refused.out and "[split-overlap]" in refused.out


def test_stale_files_are_refused(publish, release):
    path = release / "croissant.json"
    path.write_bytes(path.read_bytes().replace(b'"isLiveDataset": false', b'"isLiveDataset": true'))
    commit(release)
    refused = publish(release, "--no-dry-run")
    assert refused.status == 1 and refused.out.startswith("croissant.json: ") and "[stale-file]" in refused.out


def test_a_missing_token_is_told_in_one_sentence(publish, release):
    refused = publish(release, "--no-dry-run", token="")
    assert refused.status == 2 and refused.err == "error: no token for the Hub: log in with `hf auth login`, or set HF_TOKEN\n"


def test_a_hub_that_is_not_there_is_told_in_one_sentence(publish, release):
    refused = publish(release, "--no-dry-run")
    assert refused.status == 2 and refused.out == ""
    assert re.fullmatch(r"error: dataset ClarusC64/\S+: [^\n]+\n", refused.err.splitlines(keepends=True)[-1])


def test_a_refusal_of_the_hub_is_told_in_one_sentence_without_the_token(publish, release):
    with Hub() as hub:
        hub.refusal = 403, f"the token {TOKEN} has no right to write"
        refused = publish(release, "--no-dry-run", endpoint=hub.endpoint)
    assert refused.status == 2 and refused.out == ""
    assert re.fullmatch(r"error: dataset ClarusC64/\S+: [^\n]*the token \(token\) has no right to write[^\n]*\n", refused.err)


# ---------------------------------------------------------------- the upload
def test_everything_arrives_and_is_tagged_once(publish, release):
    dataset, space = "datasets/" + DATASET.repo_id, "spaces/" + SPACE.repo_id
    with Hub() as hub:
        done = publish(release, "--no-dry-run", endpoint=hub.endpoint)
        assert done.status == 0, done.err
        assert done.out.splitlines() == [f"{target.repo_type} {target.repo_id}: published and tagged {TAG}" for target in (DATASET, SPACE)]
        assert hub.created == [(dataset, None), (space, "gradio")] and hub.tokens - {None} == {f"Bearer {TOKEN}"}
        for repository, target in ((dataset, DATASET), (space, SPACE)):
            assert hub.files[repository] == {name: (ROOT / target.folder / name).read_bytes() for name in belongs(target)}
            assert hub.tags[repository] == {TAG: COMMIT}
        hub.files.clear()
        again = publish(release, "--no-dry-run", endpoint=hub.endpoint)
        assert again.status == 0 and again.out.count("is published already, left as it is") == 2 and not hub.files

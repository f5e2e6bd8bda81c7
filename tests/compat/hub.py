"""Loading by the Hub's id, from a Hub on the loopback that serves what would be published."""

import shutil
import socket
import subprocess
import time

import pytest
from conftest import ROOT, project_files
from environments import OFFLINE, VERSIONS, check_loading, python_of

from tools.publish import DATASET


def git(folder, *arguments):
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a Git repository, below a folder of mirrors, of the files that would be published."""
    repository = tmp_path_factory.mktemp("mirrors") / "datasets" / DATASET.repo_id
    for name in filter(DATASET.allowed.fullmatch, project_files()):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, repository / name)
    git(repository, "init", "--quiet")
    git(repository, "add", "--all", "--force")
    git(repository, "commit", "--quiet", "--message", "release")
    return repository


@pytest.fixture(scope="module")
def endpoint(published, tmp_path_factory):
    """Return the address of a Hub that serves the repository, for as long as the tests of this file run."""
    folder = tmp_path_factory.mktemp("hub")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = [
        "[basic]",
        'host = "127.0.0.1"',
        f"port = {port}",
        'hf-scheme = "http"',
        'hf-netloc = "127.0.0.1:9"',  # the discard port: what the mirror lacks is nowhere
        'ssl-key = ""',
        'ssl-cert = ""',
        f'repos-path = "{folder / "repos"}"',
        f'mirrors-path = ["{published.parents[2]}"]',
        "[accessibility]",
        "offline = true",
    ]
    (folder / "olah.toml").write_text("\n".join(lines), encoding="utf-8")
    command = [python_of("hub").with_name("olah-cli"), "--config", folder / "olah.toml", "--log-path", folder / "logs"]
    with (folder / "output").open("wb") as output, subprocess.Popen(command, cwd=folder, stdout=output, stderr=output) as server:
        try:
            until = time.monotonic() + 60
            while True:
                with socket.socket() as client:
                    if not client.connect_ex(("127.0.0.1", port)):
                        break
                assert server.poll() is None and time.monotonic() < until, (folder / "output").read_text(encoding="utf-8")
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def online(endpoint):
    return {"HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


NOWHERE = {"HF_ENDPOINT": "http://127.0.0.1:9", **OFFLINE}


@pytest.mark.parametrize("version", [version for version in VERSIONS if not version.startswith("2.")])  # olah speaks the protocol of newer clients
def test_every_config_loads_from_the_hub_and_then_from_the_cache(version, published, endpoint, tmp_path):
    check_loading(python_of(version), "hub", published, tmp_path / "home", **online(endpoint))
    check_loading(python_of(version), "cache", published, tmp_path / "home", **NOWHERE)


def test_the_id_alone_loads_from_the_hub_and_then_from_the_cache(published, endpoint, tmp_path):
    check_loading(python_of(VERSIONS[-1]), "default", published, tmp_path / "home", **online(endpoint))
    check_loading(python_of(VERSIONS[-1]), "default", published, tmp_path / "home", **NOWHERE)

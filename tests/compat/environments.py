"""The environments of the version matrix, and how a check runs in one of them."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = os.environ.get("COMPAT_VERSIONS", "3.6 4.0 newest").split()
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}


def python_of(environment: str) -> Path:
    """Return the interpreter of an environment that `make` built."""
    return ROOT / ".venv-compat" / environment / "bin/python"


def check_loading(python: str | Path, what: str, checkout: Path, home: Path, **variables: str) -> None:
    """Run a check of loading.py with an HF_HOME of its own."""
    home.mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    variables = {"HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **variables}
    ended = subprocess.run(
        [python, Path(__file__).with_name("loading.py"), what, checkout], env=inherited | variables, capture_output=True, encoding="utf-8", timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "every config loads as the CSV files say" in ended.stdout

#!/usr/bin/env python3
"""Time loading the default config from a warm cache, beside the same Parquet files with the bare Parquet loader.

Each is a program of its own, as a user runs it: a new interpreter imports `datasets` and loads once. The
call alone is timed too. It costs a few hundredths of a second more than the bare loader's, most of them
for reading the card's YAML: a card that names one config and nothing else costs about 1.3 times the bare call.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 9
"""How often each of the two is timed, in turns."""

LOAD = "import datasets, time; datasets.disable_progress_bars(); start = time.perf_counter(); {}; print(time.perf_counter() - start)"
FILES = {split: str(ROOT / f"data/{split}.parquet") for split in ("train", "dev", "test")}
PROGRAMS = (LOAD.format(f"datasets.load_dataset({str(ROOT)!r})"), LOAD.format(f"datasets.load_dataset('parquet', data_files={FILES!r})"))
"""The default config by its folder, and the bare loader."""


def seconds(program: str, home: str) -> tuple[float, float]:
    """Return how long a program takes, and the call in it."""
    start = time.perf_counter()
    ended = subprocess.run([sys.executable, "-c", program], env={**os.environ, "HF_HOME": home, "HF_HUB_OFFLINE": "1"}, check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - start, float(ended.stdout)


def main() -> None:
    """Print the medians and their ratios."""
    with tempfile.TemporaryDirectory() as home:
        for program in PROGRAMS:
            seconds(program, home)  # fills the cache
        rounds = [[seconds(program, home) for program in PROGRAMS] for _ in range(ROUNDS)]
    for what, place in (("program", 0), ("call alone", 1)):
        default, bare = (statistics.median(times[place] for times in column) for column in zip(*rounds, strict=True))
        limit = " (at most 1.2)" if place == 0 else ""
        print(f"default config, warm, {what}: {default:.3f} s; bare Parquet loader: {bare:.3f} s; ratio {default / bare:.2f}{limit}")


if __name__ == "__main__":
    main()

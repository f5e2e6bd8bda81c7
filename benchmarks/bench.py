#!/usr/bin/env python3
"""Measure the commands side by side with what they are held against, print the ratios and write them to a JSON file.

Every pair is measured in turns in one run, so that a busy machine slows both; a ratio is the median over the
rounds. Without arguments all parts run (some minutes, and 1.2 GB in the temporary folder).
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.generated import write_pair
from scorer.command import VALID, run, write_whole

FOLDER = Path(__file__).resolve().parent
OFFICIAL = (ROOT / "data/test.csv", ROOT / "baseline/example_predictions.csv")
SIZES = (10_000, 100_000, 1_000_000)
"""Sizes over which the growth of validating and scoring is measured."""


class Run(NamedTuple):
    """A process that has ended: its time on the clock and the most memory it held."""

    seconds: float
    peak_mb: float
    out: bytes


class Result(NamedTuple):
    """A figure and what it should be: at most the goal, or at least where `least`."""

    name: str
    value: float
    goal: float
    least: bool
    detail: dict[str, Any]

    @property
    def met(self) -> bool:
        """Tell whether the goal is met."""
        return self.value >= self.goal if self.least else self.value <= self.goal


def measured(*arguments: object) -> Run:
    """Run a Python program to its end, as a user's shell does: offline, and with compiled modules kept; raise where it fails."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"HF_HUB_OFFLINE": "1"}
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return Run(time.perf_counter() - start, usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10), out)


def in_turns(programs: dict[str, Sequence[object]], rounds: int) -> dict[str, list[Run]]:
    """Run programs in turns after one round to warm up, and return their runs by name."""
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, arguments in programs.items():
            ended = measured(*arguments)
            if number:
                runs[name].append(ended)
    return runs


def _ratio(over: Sequence[float], under: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def _seconds(runs: Sequence[Run]) -> list[float]:
    return [ended.seconds for ended in runs]


# ---------------------------------------------------------------- the parts
def start() -> Iterator[Result]:
    """Whole process on the official 12 rows."""
    programs: dict[str, Sequence[object]] = {
        "score.py": [ROOT / "scorer/score.py", *OFFICIAL],
        "import numpy": ["-c", "import numpy"],
        "evaluate": [FOLDER / "references/evaluate_f1.py", *OFFICIAL],
        "scikit-learn": [FOLDER / "references/scikit_learn.py", *OFFICIAL],
    }
    runs = in_turns(programs, 7)
    times = {name: _seconds(found) for name, found in runs.items()}
    detail = {name: statistics.median(found) for name, found in times.items()}
    yield Result("score.py on 12 rows / import numpy", _ratio(times["score.py"], times["import numpy"]), 2, False, detail)
    yield Result("three macro-F1 with evaluate / score.py on 12 rows", _ratio(times["evaluate"], times["score.py"]), 10, True, detail)
    yield Result("three macro-F1 with scikit-learn / score.py on 12 rows", _ratio(times["scikit-learn"], times["score.py"]), 3, True, detail)


def intervals() -> Iterator[Result]:
    """10,000-resample intervals."""
    for n in (12, 60, 600):
        detail = json.loads(measured(FOLDER / "intervals.py", n, 50).out)
        yield Result(f"loop over f1_score / intervals of all aggregates, n = {n}", detail["loop"] / detail["intervals"], 200, True, detail)
    detail = json.loads(measured(FOLDER / "intervals.py", 10_000, 0).out)
    yield Result("peak memory of intervals at n = 10,000, MB", detail["peak_mb"], 300, False, detail)


def million() -> Iterator[Result]:
    """Validate and score large files."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            files = write_pair(Path(folder), n)
            ours, reference = [ROOT / "scorer/score.py", *files], [FOLDER / "references/pyarrow_and_scikit_learn.py", *files]
            runs = {"score.py": [measured(*ours)], "reference": [measured(*reference)]}
            times.append(runs["score.py"][0].seconds)
    over, under = runs["score.py"][0], runs["reference"][0]
    detail = {"score.py": [over.seconds, over.peak_mb], "pyarrow and scikit-learn": [under.seconds, under.peak_mb]}
    yield Result(f"validate and score {SIZES[-1]:,} / pyarrow.csv and scikit-learn, time", over.seconds / under.seconds, 3, False, detail)
    yield Result(f"validate and score {SIZES[-1]:,} / pyarrow.csv and scikit-learn, peak memory", over.peak_mb / under.peak_mb, 2, False, detail)
    x, y = ([math.log(value) for value in values] for values in (SIZES, times))
    slope = statistics.linear_regression(x, y).slope
    yield Result(f"growth of time from {SIZES[0]:,} to {SIZES[-1]:,}: exponent", slope, 1.05, False, dict(zip(map(str, SIZES), times, strict=True)))


def metric() -> Iterator[Result]:
    """The metric on dicts."""
    seconds = json.loads(measured(FOLDER / "metric_floor.py", 100_000).out)
    detail = {name: statistics.median(found[1:]) for name, found in seconds.items()}
    yield Result("metric.compute on 100,000 dicts / a metric that computes nothing", _ratio(seconds["metric"][1:], seconds["floor"][1:]), 1.5, False, detail)


PARTS: dict[str, Callable[[], Iterator[Result]]] = {"start": start, "intervals": intervals, "million": million, "metric": metric}
"""What can be measured, by name."""


def main() -> int:
    """Measure, print and write; a goal that is not met is said, and is no failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)}; everything without it")
    parser.add_argument("--output", type=Path, default=ROOT / "results/benchmarks.json", metavar="FILE", help="where the figures go (default: %(default)s)")
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.parts} - {*PARTS}):
        parser.error(f"no such part: {', '.join(unknown)}")
    results: list[Result] = []
    for part in arguments.parts or PARTS:
        for result in PARTS[part]():
            results.append(result)
            goal = f"goal: {'at least' if result.least else 'at most'} {result.goal:g}"
            print(f"{result.name}: {result.value:.2f} ({goal}{'' if result.met else ', NOT MET'})", flush=True)
    machine = {"python": platform.python_version(), "platform": platform.platform(), "processors": os.cpu_count()}
    figures = [{**result._asdict(), "met": result.met} for result in results]
    write_whole(arguments.output, json.dumps({"machine": machine, "results": figures}, indent=2) + "\n")
    print(f"written to {arguments.output}")
    return VALID


if __name__ == "__main__":
    run(main)

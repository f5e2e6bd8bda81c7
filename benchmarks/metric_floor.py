"""Time `metric.compute` on dicts, beside a metric of the same features that computes nothing; run by bench.py.

Prints JSON: the seconds of each round.
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import datasets
import evaluate

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.generated import random_state
from rdod_metric.rules import TARGETS, State

ROUNDS = 3
"""How often each of the two is timed, in turns; the first round warms up."""


def records(n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return n predictions and references with every field of the metric's features."""
    generator = random.Random(0)

    def answer(name: str, state: State) -> dict[str, Any]:
        return {"scenario_id": name, **{f"predicted_{target}": value for target, value in zip(TARGETS, state, strict=True)}, "confidence": generator.random()}

    gold = [(f"case-{k:06d}", random_state(generator, 6, 4)) for k in range(n)]
    references = [{"scenario_id": name, **state._asdict(), "trajectory_length": 6, "constraint_count": 4, "near_neighbour": False} for name, state in gold]
    predictions = [answer(name, state if generator.random() < 0.6 else random_state(generator, 6, 4)) for name, state in gold]
    return predictions, references


def main(n: int) -> None:
    """Print the figures for n dicts."""
    datasets.disable_progress_bars()
    metric = evaluate.load(str(ROOT / "rdod_metric"))

    class Floor(evaluate.Metric):
        def _info(self) -> evaluate.MetricInfo:
            return evaluate.MetricInfo(description="", citation="", inputs_description="", features=metric.features)

        def _compute(self, predictions: Any, references: Any) -> dict[str, Any]:
            return {}

    floor = Floor()
    predictions, references = records(n)
    seconds: dict[str, list[float]] = {"floor": [], "metric": []}
    for _ in range(ROUNDS):
        for name, module in (("floor", floor), ("metric", metric)):
            start = time.perf_counter()
            module.compute(predictions=predictions, references=references)
            seconds[name].append(time.perf_counter() - start)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(int(sys.argv[1]))

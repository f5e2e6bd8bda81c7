"""Time 10,000-resample intervals of all aggregates on n cases, beside a loop over scikit-learn; run by bench.py.

Prints JSON: seconds of the intervals, of the loop (extrapolated from a few resamples; 0 where none are asked for)
and the peak memory in MB.
"""

import json
import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.generated import random_state
from rdod_metric.rules import Gold, Prediction
from rdod_metric.scoring import LABEL_FIELDS, Resampling, score


def main(n: int, loops: int) -> None:
    """Print the figures for n cases and a loop of so many resamples."""
    generator = random.Random(0)
    gold = [Gold(f"case-{k}", random_state(generator, 6, 4)) for k in range(n)]
    states = [case.state if generator.random() < 0.6 else random_state(generator, 6, 4) for case in gold]
    predictions = {case.scenario_id: Prediction(case.scenario_id, state, generator.random()) for case, state in zip(gold, states, strict=True)}
    plain, resampled = [], []
    for _ in range(3):  # the first round of each warms up
        start = time.perf_counter()
        score(gold, predictions, table=False)
        plain.append(time.perf_counter() - start)
        start = time.perf_counter()
        score(gold, predictions, table=False, resampling=Resampling())
        resampled.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    loop = 0.0
    if loops:
        import numpy as np
        from sklearn.metrics import f1_score

        pairs = [(np.array([getattr(case.state, field) for case in gold]), np.array([getattr(state, field) for state in states])) for field in LABEL_FIELDS]
        draws = np.random.default_rng(0).integers(n, size=(loops, n))
        f1_score(*pairs[0], average="macro", zero_division=0)
        start = time.perf_counter()
        for draw in draws:
            for truth, answers in pairs:
                f1_score(truth[draw], answers[draw], average="macro", zero_division=0)
        loop = (time.perf_counter() - start) / loops * Resampling().resamples
    print(json.dumps({"intervals": min(resampled) - min(plain), "loop": loop, "peak_mb": peak}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

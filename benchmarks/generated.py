"""Labelled files and predictions of any size, valid throughout and the same for the same seed."""

import csv
import json
import random
from pathlib import Path
from typing import Any

from rdod_metric.rules import (
    CONFIDENCE,
    CORRECTION_SOURCES,
    LABELLED_COLUMNS,
    MECHANISM_FAMILIES,
    NONE,
    PREDICTION_COLUMNS,
    RECOMMENDED_REPAIRS,
    SEVERITIES,
    STATE_TABLE,
    State,
)

DOMAINS = ("ecology", "engineering", "legal_reasoning", "operations", "policy_analysis")
"""Domains that generated cases are spread over."""


def random_state(generator: random.Random, steps: int, constraints: int) -> State:
    """Draw a state that may occur in a trajectory of so many steps (two or more) under so many constraints."""
    row = generator.choice(STATE_TABLE)
    if not row.drifts:
        return State(row.outcome_mode, None, NONE, row.repair_outcome, None)
    onset = generator.randint(1, steps - (row.onset == "before the last step"))
    residual = generator.randint(1, constraints) if row.residual else None
    return State(row.outcome_mode, onset, generator.choice(MECHANISM_FAMILIES[1:]), row.repair_outcome, residual)


def _labelled_cells(generator: random.Random, scenario_id: str, state: State, steps: int, constraints: int) -> dict[str, Any]:
    texts = [f"Rule {k} of {scenario_id} holds for every figure in the file." for k in range(1, constraints + 1)]
    trajectory = [{"step": k, "text": f"Entry {k} of {scenario_id} adds reading {generator.randint(100, 999)} to the sheet."} for k in range(1, steps + 1)]
    row = next(row for row in STATE_TABLE if (row.outcome_mode, row.repair_outcome) == (state.outcome_mode, state.repair_outcome))
    onset, residual = state.first_drift_step, state.residual_constraint_id
    return {
        "scenario_id": scenario_id,
        "domain": generator.choice(DOMAINS),
        "task": f"Decide from the sheet whether batch {scenario_id} may be released.",
        "constraints_json": json.dumps(texts),
        "trajectory_json": json.dumps(trajectory),
        "outcome_mode": state.outcome_mode,
        "first_drift_step": onset,
        "mechanism_family": state.mechanism_family,
        "repair_outcome": state.repair_outcome,
        "residual_constraint_failure": texts[residual - 1] if residual else NONE,
        "drift_mechanism": "reading_left_out" if row.drifts else NONE,
        "correction_source": generator.choice(CORRECTION_SOURCES[:3]) if row.corrected else "not_applicable",
        "lost_constraint": generator.choice(texts) if row.drifts else NONE,
        "visible_failure_step": generator.randint(onset, steps) if row.visible and onset else None,
        "severity": generator.choice(SEVERITIES[1:]) if row.drifts else NONE,
        "recommended_repair": generator.choice(RECOMMENDED_REPAIRS[1:]) if row.drifts else NONE,
        "repair_instruction": "Put the reading back." if row.drifts else NONE,
        "trajectory_length": steps,
        "relative_onset_position": round(onset / steps, 4) if onset else None,
        "trajectory_structure": "generated",
        "annotation_confidence": round(generator.uniform(0.7, 1), 2),
    }


def write_pair(folder: Path, n: int, seed: int = 0, accuracy: float = 0.6) -> tuple[Path, Path]:
    """Write `gold.csv` and `predictions.csv` of n cases to a folder and return their paths.

    About `accuracy` of the predictions repeat gold; the others are states drawn at random. All carry a
    confidence.
    """
    generator = random.Random(seed)
    gold_path, path = folder / "gold.csv", folder / "predictions.csv"
    with gold_path.open("w", encoding="utf-8", newline="") as gold_file, path.open("w", encoding="utf-8", newline="") as file:
        gold = csv.DictWriter(gold_file, LABELLED_COLUMNS, lineterminator="\n")
        gold.writeheader()
        predictions = csv.writer(file, lineterminator="\n")
        predictions.writerow([*PREDICTION_COLUMNS, CONFIDENCE])
        for k in range(n):
            scenario_id, steps, constraints = f"GEN-{k:07d}", generator.randint(3, 8), generator.randint(3, 5)
            state = random_state(generator, steps, constraints)
            gold.writerow(_labelled_cells(generator, scenario_id, state, steps, constraints))
            answer = state if generator.random() < accuracy else random_state(generator, steps, constraints)
            cells = ["" if value is None else value for value in answer[:-1]]
            predictions.writerow([scenario_id, *cells, answer.residual_constraint_id or NONE, round(generator.random(), 3)])
    return gold_path, path

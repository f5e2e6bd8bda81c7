"""Typed rows, as `datasets` gives them, turned into the records that prompts, parser and scores work on."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
"""The checkout that holds this file, which is a dataset that `load_dataset` reads."""

sys.path.insert(0, str(ROOT))

from harness.prompt import Example
from rdod_metric.rules import TARGETS, Gold, Scenario, State, check_constraints, check_trajectory, is_near_neighbour

if TYPE_CHECKING:
    from datasets import Dataset


def load_rows(dataset: str, config: str, split: str) -> "Dataset":
    """Return the rows of one split, from a folder or by the Hub's id.

    Raises:
        ValueError: the rows hold no labels, so that nothing can be scored against them.
    """
    from datasets import load_dataset

    path = str(Path(dataset).resolve()) if Path(dataset).is_dir() else dataset
    rows = load_dataset(path, config, split=split)
    if missing := [target for target in TARGETS if target not in rows.column_names]:
        raise ValueError(f"{config}/{split} of {dataset} holds no {', '.join(missing)}: there is nothing to score against")
    return rows


def case_of(row: Mapping[str, Any]) -> tuple[Scenario, Gold]:
    """Return the model inputs and the gold record of a typed row."""
    constraints = check_constraints(row["constraints"], "constraints")
    trajectory = check_trajectory(row["trajectory"], "trajectory")
    state = State(*(row[target] for target in TARGETS))
    gold = Gold(row["scenario_id"], state, len(trajectory), len(constraints), is_near_neighbour(row["trajectory_structure"]))
    return Scenario(row["scenario_id"], row["domain"], row["task"], constraints, trajectory), gold


def example_of(row: Mapping[str, Any]) -> Example:
    """Return a typed row as a solved case of the prompt."""
    scenario, gold = case_of(row)
    return Example(scenario, gold.state)

"""Labelled files made up for the tests: random words under random labels, without any shortcut but those that a test plants."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from samples import csv_bytes

from rdod_metric.rules import LABELLED_COLUMNS, MECHANISM_FAMILIES, STATE_TABLE
from rdod_metric.tables import Case, read_cases

Row = dict[str, Any]

WORDS = [
    "".join(pair) + ending
    for pair in (
        (a, b)
        for a in ("ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "zo")
        for b in ("ran", "sel", "tim", "vor", "dun", "kel", "mos")
    )
    for ending in ("", "a", "er", "ing", "s")
]
SOURCES = ("self_correction", "external_intervention", "mixed")


def sentence(generator: random.Random, words: int = 14) -> str:
    """Return a sentence of random words."""
    return " ".join(generator.choices(WORDS, k=words)).capitalize() + "."


def random_row(generator: random.Random, scenario_id: str, steps: int, constraints: int = 4) -> Row:
    """Return a row with random texts; its labels come later."""
    return {
        "scenario_id": scenario_id,
        "domain": generator.choice(("engineering", "ecology", "law")),
        "task": sentence(generator),
        "constraints": [sentence(generator, 9) for _ in range(constraints)],
        "trajectory": [sentence(generator, generator.randint(10, 25)) for _ in range(steps)],
    }


def labelled(row: Row, generator: random.Random, state: int, onset: int | None = None, lost: int | None = None) -> Row:
    """Return a row with the labels of a row of the state table, the rest at random; `onset` and `lost` count from 1."""
    kind = STATE_TABLE[state]
    length = len(row["trajectory"])
    last = length - (kind.onset == "before the last step")
    step = None if kind.onset == "blank" else min(onset or generator.randint(1, last), last)
    text = row["constraints"][(lost or generator.randint(1, len(row["constraints"]))) - 1]
    return row | {
        "outcome_mode": kind.outcome_mode,
        "first_drift_step": step,
        "mechanism_family": generator.choice(MECHANISM_FAMILIES[1:]) if kind.drifts else "none",
        "repair_outcome": kind.repair_outcome,
        "residual_constraint_failure": text if kind.residual else "none",
        "drift_mechanism": "slip" if kind.drifts else "none",
        "correction_source": generator.choice(SOURCES) if kind.corrected else "not_applicable",
        "lost_constraint": text if kind.drifts else "none",
        "visible_failure_step": generator.randint(step or 1, length) if kind.visible else None,
        "severity": generator.choice(("low", "medium", "high")) if kind.drifts else "none",
        "recommended_repair": "evidence_reset" if kind.drifts else "none",
        "repair_instruction": "Mend it." if kind.drifts else "none",
        "trajectory_length": length,
        "relative_onset_position": None if step is None else round(step / length, 4),
        "trajectory_structure": "made_up",
        "annotation_confidence": 0.9,
    }


def random_rows(number: int, seed: int, prefix: str = "RDOD2") -> Iterator[Row]:
    """Yield rows whose labels nothing tells, the states in turn."""
    generator = random.Random(seed)
    states = [0, 1, 3, 5, 0, 2, 4, 6]
    for place in range(number):
        row = random_row(generator, f"{prefix}-{place + 1:03d}", generator.randint(3, 10))
        yield labelled(row, generator, states[place % len(states)])


def random_families(number: int, seed: int, first: int = 1) -> Iterator[Row]:
    """Yield the members of contrast families: shared inputs and first step, every state once (one of the seven left out)."""
    generator = random.Random(seed)
    for family in range(first, first + number):
        shared = random_row(generator, "", 1)
        states = generator.sample([0, 1, 2, 3, 4, 5], 6) if generator.random() < 0.5 else generator.sample([0, 2, 3, 4, 5, 6], 6)
        for place, state in enumerate(states):
            steps = [*shared["trajectory"], *(sentence(generator, generator.randint(10, 25)) for _ in range(generator.randint(2, 10)))]
            row = shared | {"scenario_id": f"RDOD3-{family:03d}{'abcdef'[place]}", "trajectory": steps}
            yield labelled(row, generator, state, lost=1 + place % 4)


def row_cells(row: Row) -> list[str]:
    """Return a row's cells, in the order of a labelled file."""
    typed = row | {
        "constraints_json": json.dumps(row["constraints"]),
        "trajectory_json": json.dumps([{"step": step, "text": text} for step, text in enumerate(row["trajectory"], 1)]),
    }
    return ["" if typed[column] is None else str(typed[column]) for column in LABELLED_COLUMNS]


def labelled_bytes(rows: list[Row]) -> bytes:
    """Return rows as a labelled file."""
    return csv_bytes([LABELLED_COLUMNS, *map(row_cells, rows)])


def cases_of(rows: list[Row], folder: Path) -> list[Case]:
    """Return rows as the project reads them."""
    path = folder / "made_up.csv"
    path.write_bytes(labelled_bytes(rows))
    cases, problems = read_cases(path)
    assert not problems, problems[:3]
    return cases


def planted(rows: list[Row], change: Callable[[Row], Row]) -> list[Row]:
    """Return rows with something changed in each."""
    return [change(dict(row)) for row in rows]

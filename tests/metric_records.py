"""Dict records for tests of the metric: four cases to change one thing in, and the sample files as people hand them over."""

import csv
import io
import json

from samples import GOLD, PREDICTIONS

TARGETS = ("outcome_mode", "first_drift_step", "mechanism_family", "repair_outcome", "residual_constraint_id")
STATES = {
    "RDOD2-021": ("no_drift", None, "none", "not_applicable", None),
    "RDOD2-024": ("visible_failure", 4, "proxy_substitution", "unrepaired", 1),
    "RDOD2-025": ("visible_failure", 3, "premature_constraint_closure", "unrepaired", 2),
    "RDOD2-022": ("recovered_drift", 3, "proxy_substitution", "full_repair", None),
}
REFERENCES = [{"scenario_id": name, **dict(zip(TARGETS, state, strict=True))} for name, state in STATES.items()]


def answer(reference, **changes):
    """Return the right answer to a reference, with other keys as given; a key that is None here stays."""
    return {"scenario_id": reference["scenario_id"], **{f"predicted_{target}": reference[target] for target in TARGETS}, **changes}


def answers(*, scenario="RDOD2-024", without=(), **changes):
    """Return right answers to `REFERENCES` but for these changes to one scenario's."""
    records = [answer(reference, **(changes if reference["scenario_id"] == scenario else {})) for reference in REFERENCES]
    for record in records:
        if record["scenario_id"] == scenario:
            for key in without:
                del record[key]
    return records


def csv_records(content):
    """Return the rows of a CSV file as dicts of text."""
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def number(cell):
    """Return a cell's whole number, None for a blank or none."""
    return None if cell in ("", "none") else int(cell)


def typed_references(content=GOLD):
    """Return a labelled file's rows as the dataset gives them."""
    rows = []
    for row in csv_records(content):
        constraints, residual = json.loads(row.pop("constraints_json")), row["residual_constraint_failure"]
        row |= {name: number(row[name]) for name in ("first_drift_step", "visible_failure_step", "trajectory_length")}
        row |= {"constraints": constraints, "trajectory": json.loads(row.pop("trajectory_json"))}
        rows.append({**row, "residual_constraint_id": None if residual == "none" else constraints.index(residual) + 1})
    return rows


def typed_predictions(content=PREDICTIONS):
    """Return a prediction file's rows as a program would build them."""
    rows = []
    for row in csv_records(content):
        row |= {name: number(row[name]) for name in ("predicted_first_drift_step", "predicted_residual_constraint_id")}
        rows.append({**row, "confidence": float(row["confidence"]) if row.get("confidence") else None})
    return rows

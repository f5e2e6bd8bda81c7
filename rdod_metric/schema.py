"""The JSON Schema of typed labelled, blind and prediction records, generated from the rules."""

from typing import Any

from .rules import INPUT_COLUMNS, LABELLED_COLUMNS, NONE, STATE_TABLE, TARGETS, VOCABULARIES, StateRow

_TEXT = {"type": "string", "pattern": r"\S"}
_STEP = {"type": ["integer", "null"], "minimum": 1}
_FRACTION = {"type": "number", "minimum": 0, "maximum": 1}
_COLUMNS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("scenario_id", "domain", "task", "drift_mechanism", "repair_instruction", "trajectory_structure"), _TEXT),
    **dict.fromkeys(("residual_constraint_failure", "lost_constraint"), _TEXT),
    **{column: {"enum": list(labels)} for column, labels in VOCABULARIES.items()},
    **dict.fromkeys(("first_drift_step", "visible_failure_step", "residual_constraint_id", "lost_constraint_id"), _STEP),
    "constraints": {
        "type": "array",
        "items": {"type": "string", "pattern": r"\S", "not": {"const": NONE}},
        "minItems": 1,
        "uniqueItems": True,
    },
    "trajectory": {
        "type": "array",
        "description": "Steps in order, numbered from 1 without a gap.",
        "items": {
            "type": "object",
            "properties": {"step": {"type": "integer", "minimum": 1}, "text": _TEXT},
            "required": ["step", "text"],
            "additionalProperties": False,
        },
        "minItems": 1,
    },
    "trajectory_length": {"type": "integer", "minimum": 1},
    "relative_onset_position": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1},
    "annotation_confidence": _FRACTION,
}
_FAMILY = {"contrast_family": {"type": "string", "pattern": "^RDOD[0-9]+-[0-9]{3,}$", "description": "In rows of the expanded release alone."}}
_NULL, _PRESENT = {"type": "null"}, {"not": {"type": "null"}}
_NOT_NONE = {"not": {"const": NONE}}


def _typed(columns: tuple[str, ...]) -> list[str]:
    """Return the names that CSV columns have in typed rows."""
    return [column.removesuffix("_json") for column in columns]


def _targets(row: StateRow, prefix: str = "") -> dict[str, Any]:
    """Return what a row of the state table says of the five targets."""
    return {
        f"{prefix}outcome_mode": {"const": row.outcome_mode},
        f"{prefix}first_drift_step": _NULL if row.onset == "blank" else _PRESENT,
        f"{prefix}mechanism_family": _NOT_NONE if row.drifts else {"const": NONE},
        f"{prefix}repair_outcome": {"const": row.repair_outcome},
        f"{prefix}residual_constraint_id": _PRESENT if row.residual else _NULL,
    }


def _labels(row: StateRow) -> dict[str, Any]:
    """Return what a row of the state table says of a labelled record."""
    return {
        **_targets(row),
        "residual_constraint_failure": _NOT_NONE if row.residual else {"const": NONE},
        "lost_constraint": _NOT_NONE if row.drifts else {"const": NONE},
        "lost_constraint_id": _PRESENT if row.drifts else _NULL,
        "correction_source": {"not": {"const": "not_applicable"}} if row.corrected else {"const": "not_applicable"},
        "visible_failure_step": _PRESENT if row.visible else _NULL,
        "severity": _NOT_NONE if row.drifts else {"const": NONE},
        "relative_onset_position": _PRESENT if row.drifts else _NULL,
        **({} if row.drifts else {column: {"const": NONE} for column in ("drift_mechanism", "recommended_repair", "repair_instruction")}),
    }


def _record(title: str, properties: dict[str, Any], required: list[str], states: list[dict[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {"title": title, "type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if states:
        record["oneOf"] = [{"properties": state} for state in states]
    return record


def build_schema() -> dict[str, Any]:
    """Return the schema (JSON Schema 2020-12) of one typed record of any of the three kinds, of either release.

    What one record can't say by itself (onset before the last step, ids within the constraints, one
    prediction for each scenario) is left to the validator.
    """
    blind = _typed(INPUT_COLUMNS)
    labelled = [*_typed(LABELLED_COLUMNS), "residual_constraint_id", "lost_constraint_id"]
    predicted = {"scenario_id": _TEXT, **{f"predicted_{target}": _COLUMNS[target] for target in TARGETS}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://huggingface.co/datasets/ClarusC64/reasoning-drift-onset-detection-v0.2/resolve/main/schema.json",
        "title": "Reasoning Drift Onset Detection v0.2 records",
        "description": "Typed records: the JSON columns of the CSV files are decoded, blanks are null, ids count from 1.",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in ("labelled", "blind", "prediction")],
        "$defs": {
            "blind": _record("Model inputs", {column: _COLUMNS[column] for column in blind} | _FAMILY, blind, []),
            "labelled": _record("Labelled case", {column: _COLUMNS[column] for column in labelled} | _FAMILY, labelled, [_labels(row) for row in STATE_TABLE]),
            "prediction": _record(
                "Prediction",
                {**predicted, "confidence": {**_FRACTION, "type": ["number", "null"]}},
                list(predicted),
                [_targets(row, "predicted_") for row in STATE_TABLE],
            ),
        },
    }

"""What the card and `dataset_infos.json` say to `datasets` and to the Hub: configs, types, sizes, tags."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import yaml

from rdod_metric.rules import BENCHMARK_NAME
from reasoning_drift_onset_detection import CITATION, CONFIG_DESCRIPTIONS, CONFIGS, DESCRIPTION, HOMEPAGE, ReasoningDriftOnsetDetection, split_of
from tools.typed import Tables, digest

DESCRIBED = {
    "annotations_creators": ["other"],
    "language": ["en"],
    "license": "mit",
    "pretty_name": BENCHMARK_NAME,
    "size_categories": ["n<1K"],
    "source_datasets": ["original"],
    "task_categories": ["text-classification"],
    "tags": ["reasoning", "benchmark", "evaluation", "process-supervision", "error-localization", "reasoning-drift", "synthetic"],
}
"""What the Hub's search and filters know of the dataset."""

_FRONT_MATTER = re.compile(r"---\n.*?^---\n", re.DOTALL | re.MULTILINE)


def front_matter(tables: Tables) -> str:
    """Return the card's YAML, the dashes around it included."""
    described = {**DESCRIBED, "configs": _configs(tables), "dataset_info": [_card_info(config, tables) for config in CONFIGS]}
    return f"---\n{yaml.safe_dump(described, sort_keys=False, allow_unicode=True, width=1000)}---\n"


def with_front_matter(card: str, matter: str) -> str:
    r"""Return a card with other YAML at its head, its text untouched; a card that has none gets it.

    >>> with_front_matter("---\nlicense: other\n---\n# Title\n", "---\nlicense: mit\n---\n")
    '---\nlicense: mit\n---\n# Title\n'
    """
    card = card.replace("\r\n", "\n")
    present = _FRONT_MATTER.match(card)
    return matter + (card[present.end() :] if present else card and f"\n{card}")


def dataset_infos(tables: Tables) -> dict[str, Any]:
    """Return the content of `dataset_infos.json`, which tools read that don't know the card's YAML."""
    versions = {config.name: str(config.version) for config in ReasoningDriftOnsetDetection.BUILDER_CONFIGS}
    return {
        config: {
            "description": DESCRIPTION,
            "citation": CITATION,
            "homepage": HOMEPAGE,
            "license": "MIT",
            "features": {field.name: _typed(field.type) for field in _schema(config, tables)},
            "splits": {split_of(file): _size(file, tables) for file in files},
            "config_name": config,
            "version": versions[config],
        }
        for config, files in CONFIGS.items()
    }


def _configs(tables: Tables) -> list[dict[str, Any]]:
    configs = []
    for config, files in CONFIGS.items():
        entry: dict[str, Any] = {"config_name": config}
        if config == "default":
            entry["default"] = True
        # `datasets` keys its cache of a folder by this YAML, not by the files: the digest makes new data new rows
        entry["description"] = f"{CONFIG_DESCRIPTIONS[config]} Data {digest(tables[file] for file in files)}."
        entry["data_files"] = [{"split": split_of(file), "path": f"data/{file}.parquet"} for file in files]
        configs.append(entry)
    return configs


def _card_info(config: str, tables: Tables) -> dict[str, Any]:
    return {
        "config_name": config,
        "features": [_card_feature(field) for field in _schema(config, tables)],
        "splits": [_size(file, tables) for file in CONFIGS[config]],
    }


def _size(file: str, tables: Tables) -> dict[str, Any]:
    return {"name": split_of(file), "num_bytes": tables[file].nbytes, "num_examples": len(tables[file])}


def _schema(config: str, tables: Mapping[str, pa.Table]) -> pa.Schema:
    return tables[CONFIGS[config][0]].schema


def _dtype(kind: pa.DataType) -> str:
    return str(kind).replace("double", "float64")


def _card_feature(field: pa.Field) -> dict[str, Any]:
    """Return a column as the card spells it, in the words that every version of `datasets` reads."""
    kind = field.type
    if not pa.types.is_list(kind):
        return {"name": field.name, "dtype": _dtype(kind)}
    if pa.types.is_struct(kind.value_type):
        return {"name": field.name, "list": [_card_feature(inner) for inner in kind.value_type]}
    return {"name": field.name, "sequence": _dtype(kind.value_type)}


def _typed(kind: pa.DataType) -> Any:
    """Return a type as `dataset_infos.json` spells it; the newer `List` is unknown before `datasets` 4."""
    if not pa.types.is_list(kind):
        return {"dtype": _dtype(kind), "_type": "Value"}
    if pa.types.is_struct(kind.value_type):
        return [{inner.name: _typed(inner.type) for inner in kind.value_type}]
    return {"feature": _typed(kind.value_type), "_type": "Sequence"}

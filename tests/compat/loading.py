#!/usr/bin/env python3
"""Load a checkout in every documented way and hold what comes against its CSV files.

Usage: loading.py folder|default|hub|cache CHECKOUT, in an environment that has `datasets`, with an HF_HOME of its own. `folder`
loads the checkout itself; `default` the repository's id alone, from the server that HF_ENDPOINT names or from the cache; `hub` all
that the server has; `cache` every config again without a server. It runs on every version of `datasets` from 2.14 and imports
nothing of the project but the builder.
"""

import csv
import itertools
import json
import math
import os
import sys
from pathlib import Path

import datasets

REPO_ID = "ClarusC64/reasoning-drift-onset-detection-v0.2"
CONFIGS = {
    "default": ("train", "dev", "test"),
    "train": ("train",),
    "dev": ("dev",),
    "test": ("test",),
    "test_blind": ("test_blind",),
    "expanded": ("expanded/train", "expanded/dev", "expanded/test"),
    "expanded_test_blind": ("expanded/test_blind",),
}
"""The CSV files of every config, below `data`; the last part of a name is that of the split."""
INPUT_FEATURES = {
    "scenario_id": "string",
    "domain": "string",
    "task": "string",
    "constraints": ["string"],
    "trajectory": [{"step": "int32", "text": "string"}],
}
LABEL_FEATURES = {
    "outcome_mode": "string",
    "first_drift_step": "int32",
    "mechanism_family": "string",
    "repair_outcome": "string",
    "residual_constraint_failure": "string",
    "drift_mechanism": "string",
    "correction_source": "string",
    "lost_constraint": "string",
    "visible_failure_step": "int32",
    "severity": "string",
    "recommended_repair": "string",
    "repair_instruction": "string",
    "trajectory_length": "int32",
    "relative_onset_position": "float64",
    "trajectory_structure": "string",
    "annotation_confidence": "float64",
    "residual_constraint_id": "int32",
    "lost_constraint_id": "int32",
}
MAJOR, MINOR = map(int, datasets.__version__.split(".")[:2])


def spelt(feature):
    """Return a feature in words that are the same for all versions."""
    if isinstance(feature, dict):
        return {name: spelt(inner) for name, inner in feature.items()}
    if isinstance(feature, list):
        return [spelt(feature[0])]
    return feature.dtype if isinstance(feature, datasets.Value) else [spelt(feature.feature)]


def split_of(file):
    """Return the split that a file holds."""
    return file.rpartition("/")[2]


def expected_rows(file, root):
    """Return the typed rows of a CSV file, worked out with the standard library alone."""
    with open(root / f"data/{file}.csv", encoding="utf-8", newline="") as stream:
        records = list(csv.DictReader(stream))
    numbers = {name: float if kind == "float64" else int for name, kind in LABEL_FEATURES.items() if kind != "string"}
    rows = []
    for record in records:
        row = {name: record[name] for name in ("scenario_id", "domain", "task")}
        row |= {name: json.loads(record[f"{name}_json"]) for name in ("constraints", "trajectory")}
        for name in list(record)[5:]:
            row[name] = (numbers[name](record[name]) if record[name] else None) if name in numbers else record[name]
        if "lost_constraint" in record:
            for name, text in (("residual_constraint_id", "residual_constraint_failure"), ("lost_constraint_id", "lost_constraint")):
                row[name] = None if record[text] == "none" else row["constraints"].index(record[text]) + 1
        if file.startswith("expanded/"):
            row["contrast_family"] = record["scenario_id"][:-1]
        rows.append(row)
    return rows


def check_split(file, loaded, root):
    """Compare a split's features and rows, in content, order and Python types, with its CSV file."""
    features = {**INPUT_FEATURES, **({} if file.endswith("test_blind") else LABEL_FEATURES)}
    if file.startswith("expanded/"):
        features["contrast_family"] = "string"
    assert loaded.features is not None and spelt(dict(loaded.features)) == features, (file, loaded.features)
    assert list(loaded.features) == list(features), (file, list(loaded.features))
    rows, expected = list(loaded), expected_rows(file, root)
    assert expected
    for row, wanted in zip(rows, expected, strict=True):
        assert json.dumps(row) == json.dumps(wanted), (file, row, wanted)  # unlike ==, tells 1 from 1.0


def check_all(load, root, largest=math.inf):
    """Check every config that a function of a config's name and the streaming flag loads; files of more bytes than `largest` are not streamed."""
    for (config, files), streaming in itertools.product(CONFIGS.items(), (False, True)):
        if streaming and any((root / f"data/{file}.parquet").stat().st_size > largest for file in files):
            continue
        loaded = load(config, streaming)
        assert list(loaded) == [split_of(file) for file in files], (config, list(loaded))
        for file in files:
            check_split(file, loaded[split_of(file)], root)


def from_repository(path, **options):
    """Return a loader of a folder's or a Hub repository's configs; `default` is loaded without a name."""

    def load(config, streaming):
        return datasets.load_dataset(path, *([config] if config != "default" else []), streaming=streaming, **options)

    return load


def from_builder(builder_class, **options):
    """Return a loader that uses the builder class directly."""

    def load(config, streaming):
        builder = builder_class(config_name=config, **options)
        version = "0.3.0" if config.startswith("expanded") else "0.2.0"
        assert (str(builder.info.version), builder.info.license) == (version, "MIT"), builder.info
        assert builder.info.description and builder.info.citation and builder.info.homepage, builder.info
        if streaming:
            return builder.as_streaming_dataset()
        builder.download_and_prepare()
        return builder.as_dataset()

    return load


def check_repository(path, root, largest=math.inf):
    """Check every config, the default without a name, and single splits asked for."""
    check_all(from_repository(path), root, largest)
    for arguments, options in itertools.product(((), ("test",)), ({}, {"streaming": True})):
        check_split("test", datasets.load_dataset(path, *arguments, split="test", **options), root)


def check_folder(root, builder_class):
    """Check the checkout as a folder, through the builder and, where `datasets` still runs them, as a script."""
    check_repository(str(root), root)
    check_all(from_builder(builder_class), root)
    if MAJOR < 4:
        trusted = {"trust_remote_code": True} if (MAJOR, MINOR) >= (2, 16) else {}
        check_all(from_repository(str(root / "reasoning_drift_onset_detection.py"), **trusted), root)


def check_default(root, builder_class):
    """Check what the id alone gives."""
    for split, loaded in datasets.load_dataset(REPO_ID).items():
        check_split(split, loaded, root)


def check_hub(root, builder_class):
    """Check the repository's id, and the builder on a revision of it."""
    # olah answers a request for a part of a local file with the whole of it: only what is read in one piece can be streamed from it
    check_repository(REPO_ID, root, largest=1 << 16)
    check_all(from_builder(builder_class, base_path=f"hf://datasets/{REPO_ID}@main"), root)


def check_cache(root, builder_class):
    """Check that what was loaded once is there without a server; with several configs in the cache, each has to be named."""
    for config, files in CONFIGS.items():
        loaded = datasets.load_dataset(REPO_ID, config)
        for file in files:
            check_split(file, loaded[split_of(file)], root)


def main():
    """Run the check that the command line names."""
    root = Path(sys.argv[2]).resolve()
    datasets.disable_progress_bar() if MAJOR < 3 else datasets.disable_progress_bars()
    os.chdir(os.environ["HF_HOME"])  # nothing may depend on the working directory
    sys.path.insert(0, str(root))
    from reasoning_drift_onset_detection import ReasoningDriftOnsetDetection

    {"folder": check_folder, "default": check_default, "hub": check_hub, "cache": check_cache}[sys.argv[1]](root, ReasoningDriftOnsetDetection)
    print(f"datasets {datasets.__version__}: every config loads as the CSV files say")


if __name__ == "__main__":
    main()

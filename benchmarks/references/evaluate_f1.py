"""Print the three macro-F1 of two CSV files with `evaluate`, as a script of a few lines would.

`evaluate.load("f1")` fetches its module from the Hub; the folder `f1` beside this file holds one that does the same,
so that no network is timed.
"""

import csv
import sys
from pathlib import Path

import evaluate

f1 = evaluate.load(str(Path(__file__).parent / "f1"))
gold, predictions = ({row["scenario_id"]: row for row in csv.DictReader(open(path, encoding="utf-8", newline=""))} for path in sys.argv[1:])
for field in ("outcome_mode", "mechanism_family", "repair_outcome"):
    truth = [row[field] for row in gold.values()]
    answers = [predictions[name][f"predicted_{field}"] for name in gold]
    number = {label: place for place, label in enumerate(sorted({*truth, *answers}))}
    print(field, f1.compute(references=[number[label] for label in truth], predictions=[number[label] for label in answers], average="macro")["f1"])

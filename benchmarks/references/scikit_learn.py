"""Print the three macro-F1 of two CSV files with scikit-learn, as a script of a few lines would."""

import csv
import sys

from sklearn.metrics import f1_score

gold, predictions = ({row["scenario_id"]: row for row in csv.DictReader(open(path, encoding="utf-8", newline=""))} for path in sys.argv[1:])
for field in ("outcome_mode", "mechanism_family", "repair_outcome"):
    truth = [row[field] for row in gold.values()]
    print(field, f1_score(truth, [predictions[name][f"predicted_{field}"] for name in gold], average="macro", zero_division=0))

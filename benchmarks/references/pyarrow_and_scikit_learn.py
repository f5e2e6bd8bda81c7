"""Read two CSV files in the same order with `pyarrow.csv` and print their three macro-F1 by scikit-learn; nothing is validated."""

import sys

from pyarrow import csv
from sklearn.metrics import f1_score

gold, predictions = (csv.read_csv(path) for path in sys.argv[1:])
for field in ("outcome_mode", "mechanism_family", "repair_outcome"):
    print(field, f1_score(gold[field].to_numpy(), predictions[f"predicted_{field}"].to_numpy(), average="macro", zero_division=0))

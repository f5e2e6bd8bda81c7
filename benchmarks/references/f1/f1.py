"""F1 as the library's metric of that name computes it: integers in, scikit-learn inside."""

from typing import Any

import datasets
import evaluate
from sklearn.metrics import f1_score


class F1(evaluate.Metric):
    """F1 of integer labels."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features({"predictions": datasets.Value("int32"), "references": datasets.Value("int32")})
        return evaluate.MetricInfo(description="F1", citation="", inputs_description="", features=features)

    def _compute(self, predictions: Any, references: Any, average: str = "binary") -> dict[str, float]:
        return {"f1": float(f1_score(references, predictions, average=average))}

"""Score against gold that stays hidden: what may leave, and nothing else.

Aggregates and class supports leave; single cases, per-class values and the bare hash of the labels do
not. Predictions are read against a copy of gold without labels, so that no finding can hold one. What
fails raises `HiddenGoldError`, which carries neither cause nor frames that saw gold.

Every score tells a little of the labels, whatever is left out: who may ask a thousand times learns them.
How often a system may be scored has to be limited where this is served.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .rules import Gold, Problem, State
from .scoring import AGGREGATES, COMPONENTS, DIAGNOSTICS, Resampling, score, signature
from .tables import file_sha256, read_gold, read_predictions

FEWEST_ONSETS = 5
"""Cases with two onsets below which a mean onset error is withheld: over one or two it says where an onset is."""

ONSET_MEANS = ("mean_absolute_onset_error", "mean_onset_shift")
"""Aggregates that are means over the cases with two onsets."""

CONFIDENCE_SCORES = ("expected_calibration_error", "brier_score")
"""Aggregates that confidences go into. Rounded: to the last digit they would spell out which answers are right."""

ROUNDED = 2
"""Decimals of what is rounded."""

_UNLABELLED = State("", None, "", "", None)


class HiddenGoldError(Exception):
    """Raised where hidden gold can't be used; the message is one sentence that tells nothing of it."""


class HiddenResult(NamedTuple):
    """What came of a submission.

    Attributes:
        report: what may leave of the report; None where the predictions are refused.
        problems: why they are refused.
        invalid: what is wrong with answers that counted as wrong.
    """

    report: dict[str, Any] | None
    problems: list[Problem]
    invalid: list[Problem]


class HiddenGold:
    """Labels that can be scored against and not be seen: its text is its size."""

    __slots__ = ("_gold", "_sha256")

    def __init__(self, path: Path) -> None:
        """Read a labelled file.

        Raises:
            HiddenGoldError: the file can't be read, or has findings (they would quote it, and are not told).
        """
        self._gold: dict[str, Gold] = {}
        self._sha256 = ""
        read = _read(path)
        if isinstance(read, str):
            raise HiddenGoldError(read)
        self._gold, self._sha256 = read

    @classmethod
    def from_hub(cls, repository: str, filename: str, token: str) -> "HiddenGold":
        """Read a labelled file of a private dataset repository; no copy of it stays on the disk.

        Raises:
            HiddenGoldError: the file can't be had, or can't be read.
        """
        with tempfile.TemporaryDirectory(prefix="rdod-hidden-") as folder:
            path = _download(repository, filename, token, folder)
            if path is None:
                raise HiddenGoldError("the hidden gold file can't be fetched: check the repository, the file's name and the token")
            return cls(path)

    def __repr__(self) -> str:
        """Return how many cases there are, and nothing else."""
        return f"HiddenGold({len(self._gold)} cases)"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled or copied.

        Raises:
            HiddenGoldError: always.
        """
        raise HiddenGoldError("hidden gold is neither pickled nor copied")

    def score(
        self, predictions: Path, name: str = "", *, invalid: Literal["error", "incorrect"] = "error", resampling: Resampling | None = None
    ) -> HiddenResult:
        """Score a prediction file and return what may leave.

        Args:
            predictions: the prediction file.
            name: how findings call it.
            invalid: what becomes of answers that break a rule.
            resampling: how to draw bootstrap intervals; none are drawn without it.

        Raises:
            HiddenGoldError: the predictions can't be read, or scoring failed.
        """
        result = _score(self._gold, self._sha256, predictions, name, invalid, resampling)
        if isinstance(result, str):
            raise HiddenGoldError(result)
        return result


def label_free(gold: Mapping[str, Gold]) -> dict[str, Gold]:
    """Return gold records without their labels: ids, and the numbers of steps and constraints, which the blind file shows too."""
    return {name: Gold(name, _UNLABELLED, case.steps, case.constraints) for name, case in gold.items()}


def hidden_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may leave of a report. It names what it passes on: whatever a report gains stays inside until it is named here.

    `gold_labels_sha256` and the signature, by which reports on one gold file are told from others, come from
    the hash of the whole file: that of the labels alone could be found by trying labels out.
    """
    benchmark = report["benchmark"]
    a, b = report["leaderboard_a_component_capability"], report["leaderboard_b_complete_reasoning_state"]
    scores = {**a, **b, **report["secondary_diagnostics"]}
    pairs = report["onset_shift_check"]["numeric_cases"]
    shown = {name: _shown(name, scores[name], pairs) for name in AGGREGATES}
    sha256, n = benchmark["gold_sha256"], benchmark["n"]
    resampling = report.get("resampling")
    drawn = Resampling(resampling["resamples"], resampling["seed"], resampling["level"]) if resampling else None
    hidden: dict[str, Any] = {
        "benchmark": {
            **{key: benchmark[key] for key in ("name", "evaluation_type", "n", "invalid_predictions", "scorer_version")},
            "gold_file": None,
            "gold_sha256": sha256,
            "gold_labels_sha256": sha256,
            "hidden": True,
        },
        "signature": signature(sha256, n, drawn),
        "leaderboard_a_component_capability": {
            "primary_ranking_metric": a["primary_ranking_metric"],
            **{name: shown[name] for name in ("component_mean", *COMPONENTS)},
        },
        "leaderboard_b_complete_reasoning_state": {
            "primary_ranking_metric": b["primary_ranking_metric"],
            "complete_primary_accuracy": shown["complete_primary_accuracy"],
            "ladder": dict(b["ladder"]),
        },
        "secondary_diagnostics": {name: shown[name] for name in DIAGNOSTICS},
        "resolution_floor": dict(report["resolution_floor"]),
        "wilson_intervals": report["wilson_intervals"],
        "class_support": report["class_support"],
        "per_class_metrics": {},
        "prediction_table": [],
    }
    if resampling:
        hidden["resampling"] = dict(resampling)
        hidden["intervals"] = {
            name: {"low": _interval_end(name, row["low"], pairs), "high": _interval_end(name, row["high"], pairs), "undefined_resamples": 0}
            for name, row in report["intervals"].items()
            if name in AGGREGATES
        }
    return hidden


def _shown(name: str, value: float | None, pairs: int) -> float | None:
    if value is None or (name in ONSET_MEANS and pairs < FEWEST_ONSETS):
        return None
    return round(value, ROUNDED) if name in CONFIDENCE_SCORES else value


def _interval_end(name: str, value: float | None, pairs: int) -> float | None:
    """Return an end of an interval, rounded: exact ones, under a known seed, tell which cases each resample held."""
    kept = _shown(name, value, pairs)
    return None if kept is None else round(kept, ROUNDED)


# What follows sees gold and never raises: an exception would carry its frames, and they hold gold.
def _read(path: Path) -> tuple[dict[str, Gold], str] | str:
    try:
        gold, _, problems = read_gold(path)
        if problems:
            count = len(problems)
            return f"the hidden gold file has {count} finding{'s' * (count != 1)}: validate it where it is kept"
        return gold, file_sha256(path)
    except Exception:
        return "the hidden gold file can't be read"


def _download(repository: str, filename: str, token: str, folder: str) -> Path | None:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repository, filename, repo_type="dataset", token=token, cache_dir=folder))
    except Exception:
        return None


def _score(
    gold: Mapping[str, Gold], sha256: str, predictions: Path, name: str, invalid: Literal["error", "incorrect"], resampling: Resampling | None
) -> HiddenResult | str:
    try:
        submission = read_predictions(predictions, label_free(gold), name, invalid=invalid)
    except Exception:
        return "the prediction file can't be read"
    if submission.problems:
        return HiddenResult(None, submission.problems, [])
    try:
        report = score(list(gold.values()), submission.predictions, gold_sha256=sha256, table=False, resampling=resampling)
        return HiddenResult(hidden_report(report), [], submission.invalid)
    except Exception:
        return "the predictions could not be scored"

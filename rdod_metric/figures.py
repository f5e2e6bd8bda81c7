"""Figures of a report: confusion, onset error, calibration, risk and intervals, as SVG for a page.

No text that comes from a file is drawn. Text stays text, and every colour is a variable of the page's
style sheet, so that one drawing serves a light, a dark and a printed page.
"""

import io
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .rules import VOCABULARIES
from .scoring import AGGREGATES, BIN_EDGES

Table = Sequence[Mapping[str, Any]]
"""A report's prediction table."""

_INK, _MUTED, _LINE, _CELL, _MARK, _SECOND = (f"#0a0b{number:02x}" for number in range(6))
_VARIABLES = dict(zip((_INK, _MUTED, _LINE, _CELL, _MARK, _SECOND), ("ink", "muted", "line", "cell", "mark", "second"), strict=True))
_SETTINGS: Any = {  # newer stubs list every setting by name, older ones none
    "svg.fonttype": "none",
    "svg.hashsalt": "rdod",
    "font.size": 9.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_DRAWING = threading.Lock()  # matplotlib's settings and caches belong to the whole process
_FAR = 6  # onset errors beyond this share a bar at the end


def _svg(name: str, label: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> str:
    """Return what `draw` draws as an SVG element.

    Args:
        name: word for the ids within the drawing, which must not collide on a page.
        label: what the drawing shows, for those who don't see it.
        size: width and height in inches, 1/96 of which is a CSS pixel where there is room.
        draw: fills the figure.
    """
    text = io.StringIO()
    with _DRAWING, mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    head = f'<svg role="img" aria-label="{label}" style="max-width: {size[0] * 96:.0f}px" stroke-linejoin="round"'
    return re.sub(r'<svg([^>]*?) width="[^"]*" height="[^"]*"', rf"{head}\1", svg, count=1)


def confusion(table: Table, field: str) -> str:
    """Return the confusion matrix of a label field: gold by row, predictions by column, with counts."""
    labels = list(VOCABULARIES[field])
    columns = [*labels, *([None] if any(row[f"predicted_{field}"] is None for row in table) else [])]
    counts = Counter((row[f"gold_{field}"], row[f"predicted_{field}"]) for row in table)
    most = max(counts.values())

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for y, gold in enumerate(labels):
            for x, predicted in enumerate(columns):
                count = counts[gold, predicted]
                same = gold == predicted
                axes.add_patch(Rectangle((x, y), 1, 1, facecolor="none", edgecolor=_INK if same else _LINE, linewidth=1.1 if same else 0.6, zorder=2 + same))
                if count:
                    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=_CELL, alpha=0.15 + 0.75 * count / most, linewidth=0, zorder=1))
                    axes.text(x + 0.5, y + 0.5, str(count), ha="center", va="center", fontweight="bold" if same else "normal", zorder=4)
        axes.set(xlim=(0, len(columns)), ylim=(len(labels), 0), aspect="equal", xlabel="predicted", ylabel="gold")
        axes.set_xticks(np.arange(len(columns)) + 0.5, [label or "no valid answer" for label in columns], rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(np.arange(len(labels)) + 0.5, labels)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    size = 0.42 * len(columns) + 2.6, 0.42 * len(labels) + 1.75
    return _svg(f"confusion-{field}", f"Confusion matrix of {field}: {len(labels)} gold classes by predicted class", size, draw)


def onset_error(table: Table) -> str:
    """Return the histogram of predicted minus gold onset, and beside it the cases where one side or both have none."""
    pairs = [(row["gold_first_drift_step"], row["predicted_first_drift_step"]) for row in table]
    valid = [row["predicted_outcome_mode"] is not None for row in table]
    errors = Counter(max(-_FAR, min(_FAR, predicted - gold)) for gold, predicted in pairs if gold and predicted)
    span = max((abs(error) for error in errors), default=1)
    places = range(-span, span + 1)
    blanks = {
        "both\nblank": sum(gold is None and predicted is None and ok for (gold, predicted), ok in zip(pairs, valid, strict=True)),
        "drift\nmissed": sum(gold is not None and predicted is None and ok for (gold, predicted), ok in zip(pairs, valid, strict=True)),
        "false\nalarm": sum(gold is None and predicted is not None for gold, predicted in pairs),
    }
    if not all(valid):
        blanks["no valid\nanswer"] = valid.count(False)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(max(3, 0.7 * len(places)), len(blanks)))
        heights = [errors[place] for place in places]
        _bars(left, list(places), heights, [_MARK if not place else _SECOND for place in places])
        names = [f"{place:+d}" if place else "0" for place in places]
        if span == _FAR:
            names[0], names[-1] = f"≤ {names[0]}", f"≥ {names[-1]}"
        left.set_xticks(list(places), [name.replace("-", "−") for name in names])
        left.set(xlabel="predicted onset minus gold onset, in steps", ylabel="cases")
        _bars(right, list(range(len(blanks))), list(blanks.values()), [_MARK] + [_SECOND] * (len(blanks) - 1))
        right.set_xticks(range(len(blanks)), list(blanks))
        right.tick_params(left=False, labelleft=False)
        right.spines["left"].set_visible(False)
        top = max([*heights, *blanks.values(), 1])
        left.set_ylim(0, top * 1.15)
        left.yaxis.get_major_locator().set_params(integer=True)

    return _svg("onset-error", "Histogram of the onset error in steps", (max(5.4, 0.36 * len(places) + 2.4), 3.0), draw)


def _bars(axes: Axes, places: Sequence[float], heights: Sequence[int], colours: Sequence[str], width: float = 0.75) -> None:
    """Draw bars with their counts above them."""
    axes.bar(places, heights, width=width, color=colours)
    for place, height in zip(places, heights, strict=True):
        if height:
            axes.text(place, height, str(height), ha="center", va="bottom")
    axes.tick_params(bottom=False)


def _confident(table: Table) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return confidence and correctness of the rows that carry a confidence."""
    rows = [row for row in table if row["confidence"] is not None]
    return np.array([row["confidence"] for row in rows], dtype=np.float64), np.array([row["complete_primary_correct"] for row in rows], dtype=bool)


def reliability(table: Table) -> str:
    """Return the reliability diagram over ten bins, with the number of cases in each; '' where there is no confidence."""
    confidence, correct = _confident(table)
    if not len(confidence):
        return ""
    places = np.searchsorted(BIN_EDGES, confidence, side="left")
    counts = np.bincount(places, minlength=len(BIN_EDGES))
    filled = counts > 0
    accuracy = np.bincount(places, correct, len(BIN_EDGES))[filled] / counts[filled]
    mean = np.bincount(places, confidence, len(BIN_EDGES))[filled] / counts[filled]
    centres = BIN_EDGES - 0.05

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        upper.plot([0, 1], [0, 1], color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
        upper.text(0.045, 0.075, "as confident as right", color=_MUTED, rotation=35, rotation_mode="anchor", fontsize=8.5)
        upper.vlines(mean, np.minimum(mean, accuracy), np.maximum(mean, accuracy), color=_SECOND, linewidth=2)
        upper.plot(mean, accuracy, "o", color=_MARK, markersize=7)
        upper.set(ylim=(-0.04, 1.06), ylabel="share of cases completely right", yticks=np.arange(0, 1.1, 0.25))
        _bars(lower, list(centres), list(counts), [_MARK] * len(centres), width=0.085)
        lower.set(xlim=(-0.02, 1.02), xticks=np.arange(0, 1.1, 0.2), xlabel="confidence, in ten bins", ylabel="cases", ylim=(0, max(counts) * 1.4), yticks=[])

    return _svg("reliability", "Reliability diagram: share of cases completely right by confidence, with counts", (4.8, 4.1), draw)


def risk_coverage(table: Table) -> str:
    """Return the risk-coverage curve: the share of wrong cases among the most confident ones; '' where there is no confidence."""
    confidence, correct = _confident(table)
    if not len(confidence):
        return ""
    order = np.argsort(-confidence, kind="stable")
    last = np.append(np.diff(confidence[order]) != 0, True)  # equal confidences are answered together or not at all
    answered = np.arange(1, len(order) + 1)[last]
    risk = np.cumsum(~correct[order])[last] / answered

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axhline(risk[-1], color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.text(0.01, risk[-1] + 0.015, "wrong over all", color=_MUTED, fontsize=8.5)
        axes.plot(answered / len(order), risk, color=_MARK, linewidth=2, marker="o" if len(answered) <= 40 else "", markersize=5)
        axes.set(xlim=(0, 1.03), ylim=(-0.03, 1.08), xlabel="share of cases answered, the most confident first", ylabel="share of them wrong")
        axes.set_yticks(np.arange(0, 1.1, 0.25))

    return _svg("risk-coverage", "Risk-coverage curve: share of wrong cases among the most confident ones", (4.8, 3.4), draw)


def intervals(report: Mapping[str, Any]) -> str:
    """Return the scores between 0 and 1 with their intervals as dots and whiskers; '' where the report has no interval."""
    sections = [report[name] for name in ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics")]
    scores = {name: section[name] for section in sections for name in AGGREGATES if name in section}
    kinds = {"bootstrap": report.get("intervals", {}), "Wilson": report.get("wilson_intervals", {}).get("intervals", {})}
    names = [name for name in AGGREGATES if scores[name] is not None and not name.startswith("mean_") and any(name in kind for kind in kinds.values())]
    if not names:
        return ""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for kind, colour, below in (("bootstrap", _MARK, 0.0), ("Wilson", _SECOND, 0.26)):
            drawn = [(place, kinds[kind][name]) for place, name in enumerate(names) if kinds[kind].get(name, {}).get("low") is not None]
            if drawn:
                heights = [place + below for place, _ in drawn]
                axes.hlines(heights, [bounds["low"] for _, bounds in drawn], [bounds["high"] for _, bounds in drawn], color=colour, linewidth=2, label=kind)
        axes.plot([scores[name] for name in names], range(len(names)), "o", color=_INK, markersize=6, zorder=3)
        axes.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.4, -0.6), xticks=np.arange(0, 1.1, 0.25))
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=_LINE, linewidth=0.7)
        axes.set_axisbelow(True)
        figure.legend(loc="outside upper right", ncols=2, handlelength=1.4)

    return _svg("intervals", "Scores with their intervals", (7.4, 0.3 * len(names) + 0.9), draw)

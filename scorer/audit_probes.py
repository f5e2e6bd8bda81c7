"""What classifiers reach that see only a part of a case, against what they reach when labels are shuffled.

A probe is a view of the case (its last step, its constraints, ...) under a way to read it (`tfidf`: words
and word pairs; `counts`: lengths, digits, punctuation, hedges). The classifier is ridge regression on class
indicators in its dual form, the largest output winning. It is chosen because its predictions are linear in
the training labels: thousands of shuffled labellings are scored by one solution of the equations.

Shuffling keeps the folds of the cross-validation as they are and deals the labels of each fold out anew,
whole groups among groups of the same size, and the members of a group among themselves. Under the
hypothesis that a view says nothing of the label, that leaves the folds stratified and every dealt labelling
as probable as the real one, so that the permutation test is exact at any n.
"""

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn import config_context
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.preprocessing import KernelCenterer, StandardScaler
from threadpoolctl import threadpool_limits

from rdod_metric.rules import OUTCOME_MODES, Scenario
from scorer.audit_checks import CERTAINTY, HEDGES, TOGETHER, TOKEN, AuditCase, Grid, Measure, Section, drifting, ids
from scorer.strata import third

SEED = 0
"""Seed of all shuffling: the same data give the same audit."""

FOLDS = 10
"""Folds of the cross-validation, fewer where the largest class has fewer rows."""

RIDGE = 1.0
"""Penalty of the regression; texts have TF-IDF norm 1, counts a kernel of 1 on the diagonal."""

LEVEL = 0.95
"""Upper edge of the band of shuffled labels: this share of them scores no higher."""

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


# ---------------------------------------------------------------- what a probe sees
class View(NamedTuple):
    """A part of a case. Its text is read by `tfidf`, its numbers by `counts`; a view may have one of them alone.

    Attributes:
        text: the part as text.
        numbers: the part as numbers, as many for every case.
        whole: whether the text is one name, not words.
    """

    text: Callable[[AuditCase], str] | None
    numbers: Callable[[AuditCase], list[float]] | None
    whole: bool = False


_MARKS = (r"\d+", ",", r"[;:]", r"\?", r"[\"'“”‘’]", r"\b[A-Z]")
_MOST_CONSTRAINTS = 6


def surface(text: str) -> list[float]:
    """Return simple counts of a text: characters, words, mean word length, digits, punctuation, certainty words, hedges."""
    plain = text.split()
    return [
        len(text),
        len(plain),
        len(text) / max(len(plain), 1),
        *(len(re.findall(mark, text)) for mark in _MARKS),
        len(CERTAINTY.findall(text)),
        len(HEDGES.findall(text)),
    ]


def _constraint_numbers(case: AuditCase) -> list[float]:
    """Return the counts of each constraint in its place, so that the place itself can be learnt from."""
    constraints = case.scenario.constraints[:_MOST_CONSTRAINTS]
    padded = [*constraints, *[""] * (_MOST_CONSTRAINTS - len(constraints))]
    return [len(case.scenario.constraints), *itertools.chain(*(surface(text)[:4] for text in padded))]


def _step(choose: Callable[[AuditCase], str]) -> View:
    return View(choose, lambda case: surface(choose(case)))


def _all_steps(case: AuditCase) -> str:
    return "\n".join(case.scenario.trajectory)


def _onset_step(case: AuditCase) -> str:
    return case.scenario.trajectory[(case.state.first_drift_step or 1) - 1]


VIEWS: dict[str, View] = {
    "domain": View(lambda case: case.scenario.domain, None, whole=True),
    "task": _step(lambda case: case.scenario.task),
    "constraints": View(lambda case: "\n".join(case.scenario.constraints), _constraint_numbers),
    "number of steps": View(None, lambda case: [case.steps]),
    "first step": _step(lambda case: case.scenario.trajectory[0]),
    "last step": _step(lambda case: case.scenario.trajectory[-1]),
    "all steps": View(
        _all_steps, lambda case: [case.steps, *surface(_all_steps(case)), *np.mean([surface(step) for step in case.scenario.trajectory], axis=0)]
    ),
    "onset step": _step(_onset_step),
}
"""What probes may see; `onset step` is the gold onset, for the mechanism family alone."""

PARTIAL_VIEWS = ("domain", "task", "constraints", "number of steps", "first step", "last step")
"""Views that must tell nothing: none of them holds the course of the reasoning."""


class Probe(NamedTuple):
    """A view under a way to read it."""

    view: str
    reading: str

    @property
    def name(self) -> str:
        """Return what tables call it."""
        return f"{self.view} ({self.reading})" if VIEWS[self.view].text and VIEWS[self.view].numbers else self.view


def probes(views: Sequence[str]) -> list[Probe]:
    """Return the probes of views."""
    return [Probe(view, reading) for view in views for reading, held in (("tfidf", VIEWS[view].text), ("counts", VIEWS[view].numbers)) if held]


class Features(NamedTuple):
    """What a probe sees of some cases, one row for each: token counts (sparse) or numbers."""

    rows: Any
    tokens: bool


def see(probe: Probe, cases: Sequence[AuditCase]) -> Features:
    """Return what a probe sees of cases."""
    view = VIEWS[probe.view]
    if probe.reading == "counts":
        assert view.numbers is not None
        return Features(np.array([view.numbers(case) for case in cases], dtype=np.float64), tokens=False)
    assert view.text is not None
    reader = CountVectorizer(analyzer=lambda text: [text]) if view.whole else CountVectorizer(token_pattern=TOKEN, ngram_range=(1, 2))
    return Features(reader.fit_transform([view.text(case) for case in cases]).tocsr(), tokens=True)


def kernels(features: Features, train: Codes, test: Codes) -> tuple[Floats, Floats]:
    """Return the similarities of train rows to themselves and of test rows to them; everything that is learnt is learnt from train."""
    rows = features.rows
    if not features.tokens:
        scaler = StandardScaler()
        a, b = scaler.fit_transform(rows[train]), scaler.transform(rows[test])
        return rbf_kernel(a), rbf_kernel(b, a)
    known = rows[train].getnnz(axis=0) > 0
    weights = TfidfTransformer(sublinear_tf=True)
    a, b = weights.fit_transform(rows[train][:, known]), weights.transform(rows[test][:, known])
    return (a @ a.T).toarray(), (b @ a.T).toarray()


def smoother(train_kernel: Floats, test_kernel: Floats) -> Floats:
    """Return the matrix that turns indicators of training labels, centred, into outputs for test rows: shape (test, train)."""
    centerer = KernelCenterer().fit(train_kernel)
    model = KernelRidge(alpha=RIDGE, kernel="precomputed").fit(centerer.transform(train_kernel.copy()), np.eye(len(train_kernel)))
    weights: Floats = model.predict(centerer.transform(test_kernel.copy()))
    return weights


def outputs(weights: Floats, labels: Codes, classes: int) -> Floats:
    """Return the classifier's outputs for one or many labellings of the training rows.

    Args:
        weights: what `smoother` returns, shape (test, train).
        labels: class numbers, shape (labellings, train).
        classes: how many classes there are.

    Returns:
        Shape (test, labellings, classes), rounded to 9 decimals so that ties are ties on every machine.
    """
    indicators = (labels.T[:, :, None] == np.arange(classes)).astype(np.float64).reshape(labels.shape[1], -1)
    means = indicators.mean(axis=0)
    values: Floats = np.round(weights @ (indicators - means) + means, 9)
    return values.reshape(len(weights), len(labels), classes)


# ---------------------------------------------------------------- what it has to tell
class Target(NamedTuple):
    """A label that probes try to tell, and the cases that have it."""

    title: str
    of: Callable[[AuditCase], str | None]


def _onset_third(case: AuditCase) -> str | None:
    return next((third(step, case.steps) for _, step in drifting([case])), None)


def _family(case: AuditCase) -> str | None:
    return case.state.mechanism_family if case.state.first_drift_step else None


def _residual(case: AuditCase) -> str | None:
    return str(case.state.residual_constraint_id) if case.state.residual_constraint_id else None


TARGETS = {
    "outcome_mode": Target("outcome", lambda case: case.state.outcome_mode),
    "repair_outcome": Target("repair", lambda case: case.state.repair_outcome),
    "onset_third": Target("onset third", _onset_third),
    "residual_index": Target("residual index", _residual),
    "mechanism_family": Target("family", _family),
}
"""Third and family are asked of the rows that drift, the residual's index of those that have one."""


class Task(NamedTuple):
    """A target on the cases that have it: what one classification is about.

    Attributes:
        cases: those cases.
        labels: class numbers, shape (labellings, cases): the real labels first, then the shuffled ones.
        classes: names of the classes.
        folds: number of the fold that each case is held out in.
    """

    cases: list[AuditCase]
    labels: Codes
    classes: list[str]
    folds: Codes


def make_folds(labels: Codes, groups: Codes) -> Codes:
    """Return the fold of each case: stratified by label, groups whole.

    Raises:
        ValueError: fewer than two groups, or no label twice.
    """
    number = min(FOLDS, len(set(groups.tolist())), max(Counter(labels.tolist()).values()))
    if number < 2:
        raise ValueError("no two groups to hold against each other")
    folds = np.zeros(len(labels), dtype=np.intp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds is told in the coverage tables
        for fold, (_, held_out) in enumerate(StratifiedGroupKFold(number).split(np.zeros(len(labels)), labels, groups)):
            folds[held_out] = fold
    return folds


def shuffled(labels: Codes, groups: Codes, folds: Codes, number: int) -> Codes:
    """Return labels dealt out anew, shape (number, cases): within folds, groups of a size among each other, members among themselves."""
    generator = np.random.default_rng(SEED)
    dealt = np.tile(labels, (number, 1))
    blocks: dict[tuple[int, int], list[Codes]] = {}
    for group in np.unique(groups):
        for fold in np.unique(folds[groups == group]):
            rows = np.flatnonzero((groups == group) & (folds == fold))
            blocks.setdefault((int(fold), len(rows)), []).append(rows)
    for held in blocks.values():
        places = np.array(held)
        order = np.argsort(generator.random((number, len(places))), axis=1)
        within = np.argsort(generator.random((number, *places.shape)), axis=2)
        sources = np.take_along_axis(places[order], within, axis=2)
        dealt[:, places.ravel()] = labels[sources.reshape(number, -1)]
    return dealt


def make_task(cases: Sequence[AuditCase], of: Callable[[AuditCase], str | None], permutations: int) -> Task | None:
    """Return a target's task with its shuffled labels; None where there are too few cases to learn from."""
    held = [(case, label) for case in cases if (label := of(case)) is not None]
    classes = sorted({label for _, label in held})
    if len(classes) < 2:
        return None
    labels = np.array([classes.index(label) for _, label in held])
    groups = np.array([case.group for case, _ in held])
    try:
        folds = make_folds(labels, groups)
    except ValueError:
        return None
    return Task([case for case, _ in held], np.vstack([labels, shuffled(labels, groups, folds, permutations)]), classes, folds)


def held_out_predictions(task: Task, probe: Probe) -> Codes:
    """Return the predicted classes of every case when it is held out, shape (labellings, cases)."""
    features = see(probe, task.cases)
    predicted = np.zeros_like(task.labels)
    with (
        threadpool_limits(1),
        config_context(assume_finite=True, skip_parameter_validation=True),
    ):  # the matrices are small: a second thread costs ten times what it saves
        for fold in np.unique(task.folds):
            train, test = np.flatnonzero(task.folds != fold), np.flatnonzero(task.folds == fold)
            weights = smoother(*kernels(features, train, test))
            predicted[:, test] = outputs(weights, task.labels[:, train], len(task.classes)).argmax(axis=2).T
    return predicted


def macro_f1(labels: Codes, predicted: Codes, classes: int) -> Floats:
    """Return macro-F1 over the classes of the labels, for each of many labellings, shape (labellings,)."""
    scores = []
    for name in range(classes):
        gold, said = labels == name, predicted == name
        scores.append(2 * (gold & said).sum(axis=1) / np.maximum(gold.sum(axis=1) + said.sum(axis=1), 1))
    mean: Floats = np.mean(scores, axis=0)
    return mean


def tail_p(values: Floats) -> Floats:
    """Return for each labelling the share of all labellings that score as high or higher; shape as given, along the last axis."""
    ranks = stats.rankdata(-np.round(values, 12), method="max", axis=-1)  # equal scores may differ in the last bit
    p: Floats = ranks / values.shape[-1]
    return p


def family_wise(values: Floats) -> Floats:
    """Return the real labels' p-values corrected for taking the best of several tests (Westfall and Young's maximum).

    Each test's scores are standardised over all labellings, and the real score is held against the
    largest of all tests in each labelling. Tests that depend on each other cost no power.

    Args:
        values: scores, shape (tests, labellings), the real labels first; the shuffled ones are the same in every test.

    Returns:
        Shape (tests,). Where no test has anything to find, the smallest is 0.05 or less one time in twenty.
    """
    centred = values - values.mean(axis=1, keepdims=True)
    spread = values.std(axis=1, keepdims=True)
    standard = np.round(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12), 9)
    corrected: Floats = (standard.max(axis=0)[None, :] >= standard[:, :1]).mean(axis=1)
    return corrected


# ---------------------------------------------------------------- sections
class Result(NamedTuple):
    """What one probe reached for one target."""

    probe: Probe
    score: float
    mean: float
    edge: float
    p: float
    corrected: float | None
    right: tuple[str, ...]


class Outcome(NamedTuple):
    """What all probes reached for one target. `corrected` counts `PARTIAL_VIEWS` alone."""

    target: str
    rows: int
    classes: int
    results: list[Result]


def run_probes(cases: Sequence[AuditCase], target: str, permutations: int) -> Outcome | None:
    """Cross-validate every probe of a target on the real and the shuffled labels; None where there is too little to learn from."""
    task = make_task(cases, TARGETS[target].of, permutations)
    if task is None:
        return None
    chosen = probes([*PARTIAL_VIEWS, "all steps", *(["onset step"] if target == "mechanism_family" else [])])
    predictions = [held_out_predictions(task, probe) for probe in chosen]
    scores = np.array([macro_f1(task.labels, predicted, len(task.classes)) for predicted in predictions])
    p = tail_p(scores)[:, 0]
    partial = [k for k, probe in enumerate(chosen) if probe.view in PARTIAL_VIEWS]
    corrected = dict(zip(partial, family_wise(scores[partial]).tolist(), strict=True))
    results = [
        Result(
            probe,
            float(scores[k, 0]),
            float(scores[k, 1:].mean()),
            float(np.quantile(scores[k, 1:], LEVEL, method="higher")),
            float(p[k]),
            corrected.get(k),
            ids(case for case, right in zip(task.cases, predictions[k][0] == task.labels[0], strict=True) if right),
        )
        for k, probe in enumerate(chosen)
    ]
    return Outcome(target, len(task.cases), len(task.classes), results)


def partial_inputs(outcomes: Mapping[str, Outcome]) -> Section:
    """Show what each probe reaches, and how far shuffled labels reach."""
    grids, measures = [], []
    for outcome in outcomes.values():
        rows = tuple((result.probe.name, result.score, result.mean, result.edge, result.p, result.corrected) for result in outcome.results)
        above = sum(result.score > result.edge for result in outcome.results)
        note = (
            f"{outcome.rows} rows, {outcome.classes} classes. {above} of {len(rows)} probes lie above the band of their own shuffled labels; "
            f"{(1 - LEVEL) * len(rows):.1f} would by chance alone. The corrected p allows for taking the best of the partial views."
        )
        title = f"{TARGETS[outcome.target].title}: macro-F1 of held-out rows"
        grids.append(Grid(title, ("sees only", "macro-F1", "shuffled mean", "shuffled 95 %", "p", "corrected p"), rows, note))
        best = min((result for result in outcome.results if result.corrected is not None), key=lambda result: (result.corrected, result.p, -result.score))
        detail = f"{best.probe.name}: {best.score:.2f}, shuffled labels to {best.edge:.2f}"
        measures.append(Measure(f"partial.{outcome.target}_p", TOGETHER, best.corrected, best.right, detail=detail))
        steps = max((result for result in outcome.results if result.probe.view == "all steps"), key=lambda result: result.score)
        detail = f"{steps.probe.name}: shuffled labels to {steps.edge:.2f}"
        measures.append(Measure(f"partial.all_steps_{outcome.target}_f1", TOGETHER, steps.score, steps.right, detail=detail))
    return Section("Partial inputs", tuple(grids), tuple(measures))


_CONTRASTS = {"drift against none": OUTCOME_MODES[1:], **{f"{outcome} against the rest": (outcome,) for outcome in OUTCOME_MODES}}
_SIZES: dict[str, Callable[[Scenario], float]] = {
    "steps": lambda scenario: len(scenario.trajectory),
    "characters": lambda scenario: sum(map(len, scenario.trajectory)),
    "characters per step": lambda scenario: sum(map(len, scenario.trajectory)) / len(scenario.trajectory),
}


def lengths(cases: Sequence[AuditCase], permutations: int) -> Section:
    """Show how well a length alone ranks an outcome before the rest: AUC, 0.5 where it tells nothing."""
    groups = np.array([case.group for case in cases])
    outcomes = np.array([OUTCOME_MODES.index(case.state.outcome_mode) for case in cases])
    dealt = np.vstack([outcomes, shuffled(outcomes, groups, np.zeros(len(cases), dtype=np.intp), permutations)])
    tests = list(_auc_tests(cases, dealt))
    if not tests:
        return Section("Length as a cue", (), ())
    values = np.array([auc for _, _, auc in tests])
    distance = np.abs(values - 0.5)
    p, corrected = tail_p(distance)[:, 0], family_wise(distance)
    low, high = np.quantile(values[:, 1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    rows = tuple(
        (contrast, size, float(values[k, 0]), f"{low[k]:.2f} to {high[k]:.2f}", float(p[k]), float(corrected[k])) for k, (contrast, size, _) in enumerate(tests)
    )
    worst = min(range(len(tests)), key=lambda k: (corrected[k], p[k]))
    detail = f"{tests[worst][1]}, {tests[worst][0]}: AUC {values[worst, 0]:.2f}"
    note = "The band holds 95 % of shuffled labels. The corrected p allows for taking the most telling of all rows."
    grid = Grid("AUC of a length for an outcome", ("contrast", "length", "AUC", "shuffled 95 %", "p", "corrected p"), rows, note)
    rows_of_it = ids(case for case in cases if case.state.outcome_mode in _CONTRASTS[tests[worst][0]])
    return Section("Length as a cue", (grid,), (Measure("length.auc_p", TOGETHER, float(corrected[worst]), rows_of_it, detail=detail),))


def _auc_tests(cases: Sequence[AuditCase], dealt: Codes) -> Iterator[tuple[str, str, Floats]]:
    for contrast, outcomes in _CONTRASTS.items():
        chosen = np.isin(dealt, [OUTCOME_MODES.index(outcome) for outcome in outcomes])
        positives = int(chosen[0].sum())
        if not 0 < positives < len(cases):
            continue
        for size, of in _SIZES.items():
            ranks = stats.rankdata([of(case.scenario) for case in cases])
            yield contrast, size, (chosen @ ranks - positives * (positives + 1) / 2) / (positives * (len(cases) - positives))


def lost_index_by_family(cases: Sequence[AuditCase], permutations: int) -> Measure | None:
    """Test whether the position of the lost constraint goes with the mechanism family: chi-square of the table, under shuffled families."""
    held = [case for case in cases if case.lost_constraint_id is not None]
    families = sorted({case.state.mechanism_family for case in held})
    places = sorted({case.lost_constraint_id for case in held if case.lost_constraint_id})
    if len(families) < 2 or len(places) < 2:
        return None
    labels = np.array([families.index(case.state.mechanism_family) for case in held])
    groups = np.array([case.group for case in held])
    dealt = np.vstack([labels, shuffled(labels, groups, np.zeros(len(held), dtype=np.intp), permutations)])
    rows = np.array([[case.lost_constraint_id == place for place in places] for case in held], dtype=np.float64)
    indicators = (dealt[:, :, None] == np.arange(len(families))).astype(np.float64)
    tables = np.einsum("pnf,nk->pfk", indicators, rows)
    expected = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True) / len(held)
    values: Any = np.round(((tables - expected) ** 2 / expected).sum(axis=(1, 2)), 9)
    return Measure("position.lost_index_by_family_p", TOGETHER, float(tail_p(values[None, :])[0, 0]), detail="chi-square of lost position x family")

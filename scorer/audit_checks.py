"""What the audit measures directly: coverage, positions, lengths, words and twins.

Each function takes the cases and returns a `Section`: tables for the reader, and `Measure`s that the
thresholds are held against. Nothing here decides what passes.
"""

import itertools
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from statsmodels.stats.multitest import multipletests

from rdod_metric.rules import NONE, OUTCOME_MODES, VOCABULARIES, Scenario, State, contrast_family, parse_constraint_text, parse_whole_number
from rdod_metric.tables import Case
from scorer.strata import THIRDS, third

TOGETHER = "together"
"""Name of the scope that holds all files."""

TARGET_VOCABULARIES = ("outcome_mode", "mechanism_family", "repair_outcome", "correction_source", "severity")
"""Vocabularies of which a release has to show every label."""

LENGTHS = {"short (to 4)": (1, 4), "medium (5 to 7)": (5, 7), "long (from 8)": (8, 10**9)}
"""Classes of trajectory length, in steps."""

CERTAINTY = re.compile(
    r"\b(clear(?:ly)?|therefore|hence|must|certain(?:ly)?|definite(?:ly)?|obvious(?:ly)?|plainly|confirm(?:s|ed)?|prove[sdn]?|undoubtedly"
    r"|conclusive(?:ly)?|no doubt)\b",
    re.IGNORECASE,
)
HEDGES = re.compile(
    r"\b(may|might|could|perhaps|possibl[ey]|probabl[ey]|likely|suggest(?:s|ed)?|seems?|appears?|apparently|presumably|tentative(?:ly)?|unclear|uncertain)\b",
    re.IGNORECASE,
)
SECOND_LOOKS = re.compile(
    r"\b(review(?:s|ed|er|ers)?|re-?(?:check|read|count|work|run|ran|weigh|test|measure)(?:s|ed|ing)?|on reflection|second (?:look|reading|count)"
    r"|look(?:s|ed)? (?:back|again)|went back|goes back|asks?|asked|quer(?:y|ies|ied)|objects|objected|challenge[sd]?)\b",
    re.IGNORECASE,
)
"""Words by which a reader may feel sure, unsure, or that something is looked at a second time."""

SHARED_RUN = 8
"""Words in a row that two rows may have in common only by copying."""

TOKEN = r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]"
"""A word, or a single mark of punctuation."""

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+")
_SENTENCE_WORDS = 3  # shorter sentences ("No.", "It held.") are common property
_ROWS_FOR_A_WORD = 4  # a rarer token can't be told from chance
_SHOWN_PAIRS = 8
_SHOWN_TOKENS = 12

Floats = npt.NDArray[np.float64]


class AuditCase(NamedTuple):
    """A labelled case as the audit sees it.

    Attributes:
        split: name of the file that holds it, without folder and ending.
        group: number of the set of cases that share a contrast family or a task.
        labels: the cells of the closed columns, by column.
    """

    split: str
    scenario: Scenario
    state: State
    lost_constraint_id: int | None
    visible_failure_step: int | None
    labels: Mapping[str, str]
    group: int

    @property
    def id(self) -> str:
        """Return the scenario's id."""
        return self.scenario.scenario_id

    @property
    def steps(self) -> int:
        """Return the length of the trajectory."""
        return len(self.scenario.trajectory)


class Measure(NamedTuple):
    """A figure that a threshold may be set for.

    Attributes:
        name: what thresholds call it.
        scope: the split that it was measured on, or `TOGETHER`.
        value: None where there is nothing to measure.
        rows: ids of the rows that make the figure what it is.
        of: where the value is a share of rows, of how many.
        detail: what the figure stands for in this case.
    """

    name: str
    scope: str
    value: float | None
    rows: tuple[str, ...] = ()
    of: int | None = None
    detail: str = ""


class Grid(NamedTuple):
    """A table of the report: cells are text, numbers or None."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


class Section(NamedTuple):
    """One part of the audit."""

    title: str
    grids: tuple[Grid, ...]
    measures: tuple[Measure, ...]


def audit_cases(files: Mapping[str, Sequence[Case]]) -> list[AuditCase]:
    """Return the cases of valid labelled files, by split name, as the audit sees them."""
    rows = [(split, case) for split, cases in files.items() for case in cases]
    groups = _groups([case.scenario for _, case in rows])
    return [
        AuditCase(
            split,
            case.scenario,
            case.gold.state,
            parse_constraint_text(case.row.cells["lost_constraint"], "lost_constraint", case.scenario.constraints),
            parse_whole_number(case.row.cells["visible_failure_step"], "visible_failure_step"),
            {column: case.row.cells[column].strip() for column in VOCABULARIES},
            int(group),
        )
        for (split, case), group in zip(rows, groups, strict=True)
    ]


def _groups(scenarios: Sequence[Scenario]) -> npt.NDArray[np.int32]:
    """Number the sets of scenarios that a family or a task ties together, directly or through others."""
    ties = [(f"task {_folded(scenario.task)}", f"family {contrast_family(scenario.scenario_id) or scenario.scenario_id}") for scenario in scenarios]
    names = {name: place for place, name in enumerate(dict.fromkeys(itertools.chain(*ties)))}
    rows = np.repeat(np.arange(len(ties)), 2)
    columns = np.array([names[name] for pair in ties for name in pair])
    shape = (len(ties) + len(names),) * 2
    graph = sparse.coo_matrix((np.ones(len(rows)), (rows, columns + len(ties))), shape=shape)
    labels: npt.NDArray[np.int32] = connected_components(graph, directed=False)[1][: len(ties)]
    return labels


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def scopes(cases: Sequence[AuditCase]) -> dict[str, list[AuditCase]]:
    """Return the cases of every split and, first, all together."""
    found: dict[str, list[AuditCase]] = {TOGETHER: list(cases)}
    for case in cases:
        found.setdefault(case.split, []).append(case)
    return found


def drifting(cases: Iterable[AuditCase]) -> list[tuple[AuditCase, int]]:
    """Return the cases with an onset, and the onset."""
    return [(case, case.state.first_drift_step) for case in cases if case.state.first_drift_step is not None]


def length_class(steps: int) -> str:
    """Return the class of a trajectory's length."""
    return next(name for name, (low, high) in LENGTHS.items() if low <= steps <= high)


def ids(cases: Iterable[AuditCase]) -> tuple[str, ...]:
    """Return the ids of cases."""
    return tuple(case.id for case in cases)


# ---------------------------------------------------------------- coverage
def coverage(cases: Sequence[AuditCase]) -> Section:
    """Count every label of every vocabulary, and say what is absent."""
    places = scopes(cases)
    names = ("label", *places)
    grids = [
        Grid(
            column,
            names,
            tuple((label, *(sum(case.labels[column] == label for case in part) for part in places.values())) for label in vocabulary),
        )
        for column, vocabulary in VOCABULARIES.items()
    ]
    combinations = Counter((case.state.outcome_mode, case.state.repair_outcome, case.labels["correction_source"]) for case in cases)
    order = [VOCABULARIES[column] for column in ("outcome_mode", "repair_outcome", "correction_source")]
    rows = tuple(
        (*key, combinations[key]) for key in sorted(combinations, key=lambda key: tuple(labels.index(label) for labels, label in zip(order, key, strict=True)))
    )
    grids.append(
        Grid("outcome x repair x correction source", ("outcome_mode", "repair_outcome", "correction_source", "rows"), rows, _absent_combinations(combinations))
    )
    measures: list[Measure] = []
    for scope, part in places.items():
        absent = [label for column in TARGET_VOCABULARIES for label in VOCABULARIES[column] if not any(case.labels[column] == label for case in part)]
        measures.append(Measure("coverage.absent_labels", scope, len(absent), detail=", ".join(absent)))
        measures += [*_outcome_shares(scope, part), *_rarest(scope, part)]
    return Section("Coverage", tuple(grids), tuple(measures))


def _absent_combinations(present: Mapping[tuple[str, str, str], int]) -> str:
    real = [source for source in VOCABULARIES["correction_source"] if source != "not_applicable"]
    outcomes = (
        ("latent_drift", "failed_repair"),
        ("recovered_drift", "full_repair"),
        ("recovered_drift", "partial_repair"),
        ("visible_failure", "failed_repair"),
    )
    absent = [f"{outcome} / {repair} / {source}" for outcome, repair in outcomes for source in real if not present.get((outcome, repair, source))]
    return "Absent among the allowed combinations: " + ("; ".join(absent) or "none") + "."


def _outcome_shares(scope: str, part: Sequence[AuditCase]) -> Iterator[Measure]:
    counts = Counter(case.state.outcome_mode for case in part)
    for name, choose in (("smallest", min), ("largest", max)):
        outcome = choose(OUTCOME_MODES, key=lambda label: counts[label])
        rows = ids(case for case in part if case.state.outcome_mode == outcome)
        yield Measure(f"coverage.{name}_outcome_share", scope, counts[outcome] / len(part), rows, len(part), outcome)


def _rarest(scope: str, part: Sequence[AuditCase]) -> Iterator[Measure]:
    for name, column, without in (
        ("family", "mechanism_family", NONE),
        ("repair", "repair_outcome", ""),
        ("source", "correction_source", ""),
    ):
        counts = Counter(case.labels[column] for case in part)
        label = min((label for label in VOCABULARIES[column] if label != without), key=lambda label: counts[label])
        yield Measure(f"coverage.rarest_{name}", scope, counts[label], ids(case for case in part if case.labels[column] == label), detail=label)


# ---------------------------------------------------------------- positions
def entropy_ratio(places: Sequence[int], choices: Sequence[int]) -> float:
    """Return the entropy of places over that of places drawn uniformly from each case's own choices.

    1 means as spread as blind drawing; a fixed place gives 0. A plain division by the logarithm of the
    largest place would never reach 1 here, since late steps exist in long trajectories only.

    >>> round(entropy_ratio([1, 2, 3, 4], [4, 4, 4, 4]), 3), entropy_ratio([2, 2, 2], [4, 4, 4])
    (1.0, 0.0)
    """
    blind = uniform_expectation(choices)
    counts = np.bincount(places)[1:]
    reference = float(stats.entropy(blind))
    return float(stats.entropy(counts)) / reference if reference else 1.0


def uniform_expectation(choices: Sequence[int]) -> Floats:
    """Return how often each place is expected when it is drawn uniformly from 1 to each case's own number of choices."""
    expected = np.zeros(max(choices))
    for number in choices:
        expected[:number] += 1 / number
    return expected


def uniform_p(places: Sequence[int], choices: Sequence[int]) -> float:
    """Return the chi-square p-value of places against uniform drawing from each case's own choices."""
    expected = uniform_expectation(choices)
    observed = np.bincount(places, minlength=len(expected) + 1)[1:]
    return float(stats.chisquare(observed, expected).pvalue)


class _Position(NamedTuple):
    """Something that is chosen among numbered places: for each case the place, and how many there were."""

    name: str
    title: str
    where: str
    of: Callable[[AuditCase], int | None]
    choices: Callable[[AuditCase], int]


_POSITIONS = (
    _Position("onset", "onset step", "step", lambda case: case.state.first_drift_step, lambda case: case.steps),
    _Position(
        "onset_from_end",
        "onset counted from the last step (1 = the last)",
        "step from the end",
        lambda case: None if case.state.first_drift_step is None else case.steps + 1 - case.state.first_drift_step,
        lambda case: case.steps,
    ),
    _Position("lost_index", "position of the lost constraint", "constraint", lambda case: case.lost_constraint_id, lambda case: len(case.scenario.constraints)),
    _Position(
        "residual_index",
        "position of the residual constraint",
        "constraint",
        lambda case: case.state.residual_constraint_id,
        lambda case: len(case.scenario.constraints),
    ),
)


def position(cases: Sequence[AuditCase]) -> Section:
    """Show where onsets, lost and residual constraints stand, and what a constant answer earns."""
    places = scopes(cases)
    grids: list[Grid] = []
    measures: list[Measure] = []
    for kind in _POSITIONS:
        held = {scope: [(case, place) for case in part if (place := kind.of(case)) is not None] for scope, part in places.items()}
        if not held[TOGETHER]:
            continue
        highest = max(place for _, place in held[TOGETHER])
        counts = {scope: Counter(place for _, place in pairs) for scope, pairs in held.items()}
        rows = tuple((place, *(counts[scope][place] for scope in places)) for place in range(1, highest + 1))
        summary = []
        for scope, pairs in held.items():
            if pairs:
                found = list(_position_measures(kind, scope, pairs))
                measures += found
                summary.append((scope, len(pairs), *(measure.value for measure in found[:4])))
        grids.append(Grid(f"{kind.title}: rows", (kind.where, *places), rows))
        grids.append(
            Grid(f"{kind.title}: spread", ("scope", "rows", "entropy / uniform", "best constant", "uniform guess", "best / uniform"), tuple(_spread(summary)))
        )
    grids += [_thirds_grid(places), *_gap_grids(places)]
    for scope, part in places.items():
        measures += [*_third_measures(scope, part), *_gap_measures(scope, part)]
    return Section("Position", tuple(grids), tuple(measures))


def _spread(summary: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for scope, rows, entropy, best, ratio, _ in summary:
        yield scope, rows, entropy, best, best / ratio if ratio else None, ratio


def _position_measures(kind: _Position, scope: str, pairs: Sequence[tuple[AuditCase, int]]) -> Iterator[Measure]:
    at = [place for _, place in pairs]
    choices = [kind.choices(case) for case, _ in pairs]
    best, hits = Counter(at).most_common(1)[0]
    rows = ids(case for case, place in pairs if place == best)
    guess = float(np.mean([1 / number for number in choices]))
    share = hits / len(pairs)
    detail = f"{kind.where} {best}"
    yield Measure(f"position.{kind.name}_entropy", scope, entropy_ratio(at, choices), rows, detail=f"most often {detail}")
    yield Measure(f"position.{kind.name}_largest_share", scope, share, rows, len(pairs), detail)
    yield Measure(
        f"position.{kind.name}_best_constant_ratio", scope, share / guess, rows, detail=f"{detail}: {share:.2f} against {guess:.2f} by uniform guessing"
    )
    yield Measure(f"position.{kind.name}_uniform_p", scope, uniform_p(at, choices), rows, detail=f"most often {detail}")


def _thirds_grid(places: Mapping[str, Sequence[AuditCase]]) -> Grid:
    rows = []
    for scope, part in places.items():
        counts = Counter(third(step, case.steps) for case, step in drifting(part))
        rows.append((scope, sum(counts.values()), *(counts[name] for name in THIRDS)))
    return Grid("onset by third of the trajectory", ("scope", "drift rows", *THIRDS), tuple(rows))


def _third_measures(scope: str, part: Sequence[AuditCase]) -> Iterator[Measure]:
    drift = drifting(part)
    if not drift:
        return
    for name in THIRDS:
        rows = ids(case for case, step in drift if third(step, case.steps) == name)
        yield Measure(f"position.{name}_share", scope, len(rows) / len(drift), rows, len(drift))
    first = ids(case for case, step in drift if step <= 2)
    last = ids(case for case, step in drift if step == case.steps)
    yield Measure("position.onsets_at_step_1_or_2", scope, len(first), first)
    yield Measure("position.onsets_at_last_step", scope, len(last), last)


def _gaps(part: Iterable[AuditCase]) -> list[tuple[AuditCase, int]]:
    return [(case, case.visible_failure_step - step) for case, step in drifting(part) if case.visible_failure_step is not None]


def _gap_grids(places: Mapping[str, Sequence[AuditCase]]) -> Iterator[Grid]:
    counts = {scope: Counter(gap for _, gap in _gaps(part)) for scope, part in places.items()}
    if counts[TOGETHER]:
        rows = tuple((gap, *(count[gap] for count in counts.values())) for gap in range(max(counts[TOGETHER]) + 1))
        yield Grid("steps from the onset to the visible failure: rows", ("gap", *places), rows)


def _gap_measures(scope: str, part: Sequence[AuditCase]) -> Iterator[Measure]:
    gaps = _gaps(part)
    if not gaps:
        return
    later = ids(case for case, gap in gaps if gap)
    common, hits = Counter(gap for _, gap in gaps).most_common(1)[0]
    yield Measure("position.failure_later_share", scope, len(later) / len(gaps), later, len(gaps))
    yield Measure("position.gap_largest_share", scope, hits / len(gaps), ids(case for case, gap in gaps if gap == common), len(gaps), f"gap {common}")


# ---------------------------------------------------------------- lengths
def length(cases: Sequence[AuditCase]) -> Section:
    """Show how long the trajectories of each outcome are."""
    places = scopes(cases)
    rows, measures = [], []
    for scope, part in places.items():
        means = {outcome: float(np.mean(held)) for outcome in OUTCOME_MODES if (held := [case.steps for case in part if case.state.outcome_mode == outcome])}
        rows.append((scope, *(means.get(outcome) for outcome in OUTCOME_MODES)))
        longest, shortest = max(means, key=lambda outcome: means[outcome]), min(means, key=lambda outcome: means[outcome])
        apart = ids(case for case in part if case.state.outcome_mode in (longest, shortest))
        detail = f"{longest} {means[longest]:.2f}, {shortest} {means[shortest]:.2f}"
        measures.append(Measure("length.mean_difference", scope, means[longest] - means[shortest], apart, detail=detail))
        kinds = Counter(length_class(case.steps) for case in part)
        cells = {(case.state.outcome_mode, length_class(case.steps)) for case in part}
        empty = [f"{outcome} {name}" for outcome in OUTCOME_MODES for name in LENGTHS if (outcome, name) not in cells]
        measures.append(Measure("length.empty_cells", scope, len(empty), detail=", ".join(empty)))
        rarest = min(LENGTHS, key=lambda name: kinds[name])
        held_rows = ids(case for case in part if length_class(case.steps) == rarest)
        measures.append(Measure("length.rarest_class_share", scope, kinds[rarest] / len(part), held_rows, len(part), rarest))
    counted = Counter((case.state.outcome_mode, length_class(case.steps)) for case in cases)
    classes = tuple((outcome, *(counted[outcome, name] for name in LENGTHS)) for outcome in OUTCOME_MODES)
    grids = (
        Grid("mean number of steps by outcome", ("scope", *OUTCOME_MODES), tuple(rows)),
        Grid("rows by outcome and length", ("outcome", *LENGTHS), classes),
    )
    return Section("Length", grids, tuple(measures))


# ---------------------------------------------------------------- words
class Association(NamedTuple):
    """How a token goes with an outcome: rows that hold it there and elsewhere, the p-value alone and among all that were tried."""

    token: str
    outcome: str
    there: int
    elsewhere: int
    p: float
    corrected: float


def associations(texts: Sequence[str], outcomes: Sequence[str]) -> list[Association]:
    """Test every token of some frequency for every outcome; the most telling first.

    The test is the rank-sum test of the token's rate per row, in the outcome against the rest, so that
    a comma that stands in every row counts as much as a rare word. Holm's correction runs over all tests.
    """
    counter = CountVectorizer(token_pattern=TOKEN, min_df=min(_ROWS_FOR_A_WORD, len(texts)))
    counts = counter.fit_transform(texts).toarray()
    rates = counts / counts.sum(axis=1, keepdims=True)
    found: list[Association] = []
    for outcome in OUTCOME_MODES:
        inside = np.array([label == outcome for label in outcomes])
        if not 0 < inside.sum() < len(texts):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a token with one rate everywhere has no variance: its p is NaN, read as 1
            p = np.nan_to_num(stats.mannwhitneyu(rates[inside], rates[~inside], axis=0, method="asymptotic").pvalue, nan=1.0)
        there, elsewhere = (counts[part] > 0 for part in (inside, ~inside))
        columns = (counter.get_feature_names_out(), there.sum(axis=0), elsewhere.sum(axis=0), p)
        found += [Association(str(token), outcome, int(a), int(b), float(value), 1.0) for token, a, b, value in zip(*columns, strict=True)]
    if not found:
        return []
    corrected = multipletests([row.p for row in found], method="holm")[1].tolist()
    return sorted((row._replace(corrected=value) for row, value in zip(found, corrected, strict=True)), key=lambda row: (row.p, row.token, row.outcome))


def words(cases: Sequence[AuditCase]) -> Section:
    """Find the tokens that go with an outcome, and count certainty words, hedges and second looks."""
    texts = [" ".join(case.scenario.trajectory) for case in cases]
    grids: list[Grid] = []
    measures: list[Measure] = []
    if found := associations(texts, [case.state.outcome_mode for case in cases]):
        sizes = Counter(case.state.outcome_mode for case in cases)
        rows = tuple(
            (row.token, row.outcome, f"{row.there} of {sizes[row.outcome]}", f"{row.elsewhere} of {len(cases) - sizes[row.outcome]}", row.p, row.corrected)
            for row in found[:_SHOWN_TOKENS]
        )
        note = f"{len(found)} rank-sum tests of a token's rate in one outcome against the rest; with so many, only the corrected p (Holm) counts."
        grids.append(Grid("tokens most associated with an outcome", ("token", "outcome", "rows there", "rows elsewhere", "p", "corrected p"), rows, note))
        best = found[0]
        holders = ids(case for case, text in zip(cases, texts, strict=True) if case.state.outcome_mode == best.outcome and best.token in _tokens(text))
        measures.append(Measure("words.smallest_p", TOGETHER, best.corrected, holders, detail=f"{best.token!r} in {best.outcome}"))
    lines: list[tuple[Any, ...]] = []
    for name, pattern in (("certainty", CERTAINTY), ("hedges", HEDGES), ("second_looks", SECOND_LOOKS)):
        hits = {
            outcome: [(case, len(pattern.findall(text))) for case, text in zip(cases, texts, strict=True) if case.state.outcome_mode == outcome]
            for outcome in OUTCOME_MODES
        }
        holding = {outcome: ids(case for case, number in held if number) for outcome, held in hits.items() if held}
        lines.append((name.replace("_", " "), *(f"{len(holding.get(outcome, ()))} of {len(hits[outcome])}" for outcome in OUTCOME_MODES)))
        lines.append((f"{name.replace('_', ' ')} per row", *(float(np.mean([number for _, number in held])) if held else None for held in hits.values())))
        fewest = min(holding, key=lambda outcome: len(holding[outcome]))
        measures.append(Measure(f"words.{name}_fewest_rows", TOGETHER, len(holding[fewest]), holding[fewest], detail=fewest))
    grids.append(Grid("rows with certainty words, hedges, second looks", ("words", *OUTCOME_MODES), tuple(lines)))
    return Section("Words", tuple(grids), tuple(measures))


def _tokens(text: str) -> set[str]:
    return set(re.findall(TOKEN, text.lower()))


# ---------------------------------------------------------------- twins
class _Unit(NamedTuple):
    case: AuditCase
    place: str
    text: str


def _units(cases: Iterable[AuditCase]) -> dict[str, list[_Unit]]:
    """Return steps, tasks and constraints; what members of one group share counts once."""
    units: dict[str, list[_Unit]] = {"step": [], "task": [], "constraint": []}
    seen: set[tuple[int, str, str]] = set()
    for case in cases:
        texts = [("task", "task", case.scenario.task)]
        texts += [("constraint", f"constraint {k}", text) for k, text in enumerate(case.scenario.constraints, 1)]
        texts += [("step", f"step {k}", text) for k, text in enumerate(case.scenario.trajectory, 1)]
        for kind, place, text in texts:
            if (key := (case.group, kind, _folded(text))) not in seen:
                seen.add(key)
                units[kind].append(_Unit(case, place, text))
    return units


def twins(cases: Sequence[AuditCase]) -> Section:
    """Find near-duplicates and shared text between rows that belong to different groups."""
    grids: list[Grid] = []
    measures: list[Measure] = []
    units = _units(cases)
    for kind, held in units.items():
        pairs = nearest_pairs([unit.text for unit in held], [unit.case.group for unit in held])
        rows = tuple(
            (score, f"{held[a].case.id} {held[a].place}", f"{held[b].case.id} {held[b].place}", _cut(held[a].text), _cut(held[b].text)) for score, a, b in pairs
        )
        grids.append(Grid(f"most similar {kind}s", ("similarity", "one", "other", "text of one", "text of the other"), rows))
        if pairs:
            score, a, b = pairs[0]
            measures.append(
                Measure(f"twins.{kind}_similarity", TOGETHER, score, (held[a].case.id, held[b].case.id), detail=f"{held[a].place}, {held[b].place}")
            )
    for name, title, shared in (
        ("shared_sentences", "sentences that rows share", _shared(units, _sentences)),
        ("shared_runs", f"runs of {SHARED_RUN} words that rows share", _shared(units, _runs)),
    ):
        if shared:
            listed = tuple((_cut(text), ", ".join(holders)) for text, holders in itertools.islice(shared.items(), _SHOWN_PAIRS))
            grids.append(Grid(title, ("text", "rows"), listed, f"{len(shared)} in all."))
        measures.append(
            Measure(f"twins.{name}", TOGETHER, len(shared), tuple(dict.fromkeys(itertools.chain(*shared.values()))), detail=_cut(next(iter(shared), "")))
        )
    return Section("Twins", tuple(grids), tuple(measures))


def nearest_pairs(texts: Sequence[str], groups: Sequence[int]) -> list[tuple[float, int, int]]:
    """Return the most similar pairs of texts of different groups, best first: cosine of character 3- to 5-grams in [0, 1], places."""
    if len(set(groups)) < 2:
        return []
    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)).fit_transform(texts)
    similarity = (grams @ grams.T).toarray()
    labels = np.asarray(groups)
    similarity[labels[:, None] == labels[None, :]] = -1
    similarity[np.tril_indices(len(texts))] = -1
    best = np.argsort(-similarity, axis=None, kind="stable")[:_SHOWN_PAIRS]
    pairs = [(float(similarity.flat[k]), *divmod(int(k), len(texts))) for k in best]
    return [(min(score, 1.0), a, b) for score, a, b in pairs if score >= 0]


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        if len(plain := re.findall(r"\w+", sentence.casefold())) >= _SENTENCE_WORDS:
            yield " ".join(plain)


def _runs(text: str) -> Iterator[str]:
    plain = re.findall(r"\w+", text.casefold())
    return (" ".join(plain[k : k + SHARED_RUN]) for k in range(len(plain) - SHARED_RUN + 1))


def _shared(units: Mapping[str, Sequence[_Unit]], parts: Callable[[str], Iterator[str]]) -> dict[str, list[str]]:
    holders: dict[str, dict[int, str]] = defaultdict(dict)
    for unit in itertools.chain(*units.values()):
        for part in parts(unit.text):
            holders[part].setdefault(unit.case.group, unit.case.id)
    return {text: list(rows.values()) for text, rows in holders.items() if len(rows) > 1}


def _cut(text: str) -> str:
    return text if len(text) <= 90 else text[:87] + "..."

#!/usr/bin/env python3
"""Write predictions for a blind file from a classical text model that is fitted to the train split.

TF-IDF over the texts of steps and constraints feeds logistic regressions: one tells the outcome and,
within it, the repair, from the steps on the whole and the last one; one scores every step as the
onset; one tells the family from the onset step. The residual constraint is the one nearest to the
onset step. The length of the n-grams and the strength of the regularisation are chosen by
cross-validation within train. Exit status: 0 written, 1 findings in an input, 2 the command could
not do its work.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_OWN = str(Path(__file__).resolve().parent)
# the script's own folder holds a baseline.py, which would hide the folder baseline/
sys.path[:] = [str(Path(_OWN).parent), *(path for path in sys.path if path != _OWN)]

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from baseline.baseline import NO_DRIFT, prediction_csv
from rdod_metric.rules import STATE_TABLE, Gold, Prediction, Scenario, State
from rdod_metric.scoring import score
from rdod_metric.tables import read_blind, read_cases
from scorer.command import ROOT, VALID, Unable, existing_file, print_findings, run, write_whole

SEED = 0
"""Seed of the folds; everything else is deterministic."""

FOLDS = 4
"""Folds of the cross-validation within train: as many as each outcome has cases there."""

Case = tuple[Scenario, Gold]
Features = Any  # a sparse matrix; scikit-learn and scipy come without types


class Settings(NamedTuple):
    """What is chosen within train."""

    longest: int  # words of an n-gram
    strength: float  # inverse of the regularisation


GRID = tuple(Settings(longest, strength) for longest in (1, 2) for strength in (1.0, 10.0, 100.0))
"""The settings that are tried, the first of equals being taken."""


def _classifier(settings: Settings, features: Features, labels: Sequence[object]) -> Any:
    """Fit a classifier, or return None where there is only one label to tell."""
    if len(set(labels)) < 2:
        return None
    with threadpool_limits(1):  # matrices this small are slower on several threads
        return LogisticRegression(C=settings.strength, class_weight="balanced", max_iter=5000, random_state=SEED).fit(features, labels)


def _best(classifier: Any, features: Features, allowed: Sequence[str]) -> tuple[str, float]:
    """Return the most probable of the allowed labels and its share among them."""
    shares = dict.fromkeys(allowed, 0.0)
    if classifier is not None:
        known = dict(zip(classifier.classes_, classifier.predict_proba(features)[0], strict=True))
        shares = {label: float(known.get(label, 0.0)) for label in allowed}
    total = sum(shares.values())
    if not total:  # train shows none of them
        return allowed[0], 1 / len(allowed)
    label = max(allowed, key=lambda name: shares[name])
    return label, shares[label] / total


def _softmax(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())


class Model:
    """The fitted model."""

    def __init__(self, train: Sequence[Case], settings: Settings) -> None:
        """Fit every part to the labelled cases, at least one of which drifts."""
        self.vectorizer = TfidfVectorizer(ngram_range=(1, settings.longest), sublinear_tf=True)
        self.vectorizer.fit([text for scenario, _ in train for text in (*scenario.trajectory, *scenario.constraints)])
        wholes = sparse.vstack([self._whole(scenario) for scenario, _ in train])
        states = [gold.state for _, gold in train]
        self.outcome = _classifier(settings, wholes, [state.outcome_mode for state in states])
        self.repair = _classifier(settings, wholes, [state.repair_outcome for state in states])
        steps = sparse.vstack([self._steps(scenario) for scenario, _ in train])
        onsets = [gold.state.first_drift_step == number for scenario, gold in train for number in range(1, len(scenario.trajectory) + 1)]
        self.onset = _classifier(settings, steps, onsets)
        drifting = [(scenario.trajectory[state.first_drift_step - 1], state.mechanism_family) for (scenario, _), state in self._drifting(train)]
        self.family = _classifier(settings, self.vectorizer.transform([text for text, _ in drifting]), [family for _, family in drifting])
        self.families = sorted({family for _, family in drifting})

    @staticmethod
    def _drifting(train: Sequence[Case]) -> list[tuple[Case, Any]]:
        return [(case, case[1].state) for case in train if case[1].state.first_drift_step is not None]

    def _whole(self, scenario: Scenario) -> Features:
        """Describe a trajectory: the mean of its steps, and its last step."""
        steps = self.vectorizer.transform(scenario.trajectory)
        return sparse.hstack([sparse.csr_matrix(steps.mean(axis=0)), steps[-1]]).tocsr()

    def _likeness(self, scenario: Scenario) -> npt.NDArray[np.float64]:
        """Return the cosine of every step with every constraint, shape (steps, constraints)."""
        cosines = self.vectorizer.transform(scenario.trajectory) @ self.vectorizer.transform(scenario.constraints).T
        return np.asarray(cosines.toarray())

    def _steps(self, scenario: Scenario) -> Features:
        """Describe every step: its words, and how near it is to the constraints."""
        likeness = self._likeness(scenario)
        near = np.column_stack([likeness.max(axis=1), likeness.mean(axis=1)])
        return sparse.hstack([self.vectorizer.transform(scenario.trajectory), sparse.csr_matrix(near)]).tocsr()

    def predict(self, scenario: Scenario) -> Prediction:
        """Return a state that the table allows; its confidence is the product of the parts' probabilities."""
        last = len(scenario.trajectory)
        rows = [row for row in STATE_TABLE if row.onset != "before the last step" or last > 1]
        whole = self._whole(scenario)
        outcome, sure = _best(self.outcome, whole, sorted({row.outcome_mode for row in rows}))
        if outcome == NO_DRIFT.outcome_mode:
            return Prediction(scenario.scenario_id, NO_DRIFT, round(sure, 4))
        repair, share = _best(self.repair, whole, [row.repair_outcome for row in rows if row.outcome_mode == outcome])
        sure *= share
        row = next(row for row in rows if (row.outcome_mode, row.repair_outcome) == (outcome, repair))
        allowed = last - (row.onset == "before the last step")
        onsets = _softmax(self.onset.decision_function(self._steps(scenario)[:allowed]))
        step = int(onsets.argmax())
        sure *= float(onsets[step])
        family, share = _best(self.family, self.vectorizer.transform([scenario.trajectory[step]]), self.families)
        sure *= share
        residual = None
        if row.residual:
            constraints = _softmax(self._likeness(scenario)[step])
            residual = int(constraints.argmax()) + 1
            sure *= float(constraints[residual - 1])
        return Prediction(scenario.scenario_id, State(outcome, step + 1, family, repair, residual), round(sure, 4))


def cross_validated(train: Sequence[Case], settings: Settings) -> float:
    """Return the component mean over train when every case is answered by a model that has not seen it."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    answers: dict[str, Prediction] = {}
    for seen, unseen in folds.split(train, [gold.state.outcome_mode for _, gold in train]):
        model = Model([train[place] for place in seen], settings)
        answers |= {train[place][0].scenario_id: model.predict(train[place][0]) for place in unseen}
    value: float = score([gold for _, gold in train], answers, table=False)["leaderboard_a_component_capability"]["component_mean"]
    return value


def fitted_model(train: Sequence[Case]) -> tuple[Model, Settings, float]:
    """Return the model with the settings that do best within train, the settings, and their cross-validated component mean."""
    values = [cross_validated(train, settings) for settings in GRID]
    best = max(range(len(GRID)), key=lambda place: values[place])
    return Model(train, GRID[best]), GRID[best], values[best]


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blind", help="the file of model inputs")
    parser.add_argument("predictions", type=Path, help="the prediction file to write")
    parser.add_argument("--train", default=str(ROOT / "data/train.csv"), metavar="FILE", help="labelled file to learn from (default: data/train.csv)")
    arguments = parser.parse_args()
    rows, problems = read_blind(existing_file(arguments.blind))
    cases, found = read_cases(existing_file(arguments.train))
    if problems + found:
        return print_findings(problems + found)
    if arguments.predictions.resolve() in (Path(arguments.blind).resolve(), Path(arguments.train).resolve()):
        raise Unable("the output would overwrite an input")
    train = [(case.scenario, case.gold) for case in cases]
    outcomes = [gold.state.outcome_mode for _, gold in train]
    if len(set(outcomes)) < 2 or min(map(outcomes.count, outcomes)) < FOLDS:
        raise Unable(f"{arguments.train} is too small to learn from: it takes two outcomes or more, and {FOLDS} cases of each")
    model, settings, value = fitted_model(train)
    write_whole(arguments.predictions, prediction_csv([model.predict(scenario) for _, scenario in rows]))
    print(f"chosen within train (component mean {value:.4f}): n-grams of {settings.longest} word(s) at most, C = {settings.strength:g}")
    print(f"{len(rows)} predictions written to {arguments.predictions}")
    return VALID


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Write predictions for a blind file from surface cues alone: floors to measure against, not models.

Strategies:
  heuristic       cue words on the text of the steps (default)
  majority        the most frequent complete state of --train
  random          a state drawn from all allowed ones, with --seed
  no-drift        no_drift everywhere
  constant-step   drift at one and the same step everywhere, given as --step K

Standard library only. Exit status: 0 written, 1 findings in an input, 2 the command could not do its work.
"""

import argparse
import csv
import io
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rdod_metric.rules import CONFIDENCE, MECHANISM_FAMILIES, NONE, PREDICTION_COLUMNS, STATE_TABLE, Gold, Prediction, Scenario, State
from rdod_metric.tables import read_blind, read_cases
from scorer.command import VALID, Unable, existing_file, print_findings, run, write_whole

Strategy = Callable[[Scenario], Prediction]

NO_DRIFT = State("no_drift", None, NONE, "not_applicable", None)
"""The one state without drift."""

_SETTLING = re.compile(r"\b(therefore|so|hence|clearly|thus|means|shows|proves|must|only|all|every|never|alone|settles?)\b", re.IGNORECASE)
_MENDING = re.compile(r"\b(again|back|instead|restored?|revised?|withdraw\w*|corrected|too strong|comes? off|replac\w+)\b", re.IGNORECASE)
_ACTING = re.compile(r"\b(recommend\w*|decided?|order(?:ed|s)?|approved?|submitted|sent|issued?|signed|award\w*|goes? out|adopt\w*)\b", re.IGNORECASE)
_FAMILY_CUES = {
    "evaluation_scope_collapse": r"pilot|trial|test(?:ed|s|ing)?\b|benchmark|accuracy|model|tool",
    "proxy_substitution": r"score|index|rate|marked|rating|count",
    "multi_objective_collapse": r"cost|rank\w*|order|points|objective|priorit\w+",
    "multi_causal_collapse": r"cause[sd]?|because|together|both|driver",
    "causal_scope_collapse": r"since|after|before|effect|saved|driv\w+|owed to",
    "evidence_suppression": r"record|log|report|sheet|evidence|left out|struck",
    "premature_constraint_closure": r"explanation|branch|diagnosis|pending|possib\w+|until",
    "scope_collapse": r"district|elsewhere|region|all|every|years|rule",
}


def _overlap(constraint: str, step: str) -> int:
    words = set(re.findall(r"[a-z]{4,}", constraint.lower()))
    return len(words & set(re.findall(r"[a-z]{4,}", step.lower())))


def heuristic(scenario: Scenario) -> Prediction:
    """Guess from cue words: settling words mark an onset, mending words a repair, acting words a failure."""
    steps = scenario.trajectory
    marks = [len(_SETTLING.findall(text)) / (1 + len(text.split()) / 40) for text in steps]
    onset = max(range(len(steps)), key=lambda k: (marks[k], k))
    if marks[onset] < 1:
        return Prediction(scenario.scenario_id, NO_DRIFT, 0.3)
    text = steps[onset].lower()
    family = max(MECHANISM_FAMILIES[1:], key=lambda name: len(re.findall(_FAMILY_CUES[name], text)))
    residual = 1 + max(range(len(scenario.constraints)), key=lambda k: (_overlap(scenario.constraints[k], text), -k))
    after = " ".join(steps[onset + 1 :])
    if _MENDING.search(after):
        state = State("recovered_drift", onset + 1, family, "full_repair", None)
    elif _ACTING.search(" ".join(steps[onset:])):
        state = State("visible_failure", onset + 1, family, "unrepaired", residual)
    else:
        state = State("latent_drift", onset + 1, family, "unrepaired", residual)
    return Prediction(scenario.scenario_id, state, round(min(0.1 + 0.05 * marks[onset], 0.5), 2))


def fitted(wish: State, scenario: Scenario) -> State:
    """Return the wish made valid for a scenario: onset and residual inside its bounds, the table kept."""
    if wish.outcome_mode == "no_drift":
        return NO_DRIFT
    row = next(row for row in STATE_TABLE if (row.outcome_mode, row.repair_outcome) == (wish.outcome_mode, wish.repair_outcome))
    last = len(scenario.trajectory) - (row.onset == "before the last step")
    if last < 1:
        return NO_DRIFT
    residual = min(wish.residual_constraint_id or 1, len(scenario.constraints)) if row.residual else None
    return wish._replace(first_drift_step=min(wish.first_drift_step or 1, last), residual_constraint_id=residual)


def majority(train: Sequence[Gold]) -> Strategy:
    """Return the strategy that always answers the most frequent complete state of train (of equals, the first).

    Its confidence is that state's share of train.
    """
    wish, count = Counter(case.state for case in train).most_common(1)[0]
    return lambda scenario: Prediction(scenario.scenario_id, fitted(wish, scenario), round(count / len(train), 4))


def random_states(seed: int) -> Strategy:
    """Return the strategy that draws outcome, repair, onset, family and residual uniformly among what may occur."""
    generator = random.Random(seed)

    def draw(scenario: Scenario) -> Prediction:
        outcome = generator.choice(sorted({row.outcome_mode for row in STATE_TABLE}))
        row = generator.choice([row for row in STATE_TABLE if row.outcome_mode == outcome])
        wish = State(
            outcome,
            generator.randint(1, len(scenario.trajectory)),
            generator.choice(MECHANISM_FAMILIES[1:]),
            row.repair_outcome,
            generator.randint(1, len(scenario.constraints)),
        )
        return Prediction(scenario.scenario_id, fitted(wish, scenario), 0.0)

    return draw


def constant_step(step: int) -> Strategy:
    """Return the strategy that puts an unrepaired visible failure at one step, or at the last one of a shorter trajectory."""
    wish = State("visible_failure", step, MECHANISM_FAMILIES[1], "unrepaired", 1)
    return lambda scenario: Prediction(scenario.scenario_id, fitted(wish, scenario), 0.0)


def prediction_csv(predictions: Sequence[Prediction]) -> str:
    """Return predictions as the text of a prediction file; every state is given."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*PREDICTION_COLUMNS, CONFIDENCE])
    for scenario_id, state, confidence in predictions:
        assert state is not None  # strategies always answer
        cells = ["" if value is None else value for value in state[:-1]]
        writer.writerow([scenario_id, *cells, state.residual_constraint_id or NONE, "" if confidence is None else confidence])
    return text.getvalue()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blind", help="the file of model inputs")
    parser.add_argument("predictions", type=Path, help="the prediction file to write")
    parser.add_argument("--strategy", choices=("heuristic", "majority", "random", "no-drift", "constant-step"), default="heuristic")
    parser.add_argument("--train", metavar="FILE", help="labelled file that majority learns from")
    parser.add_argument("--seed", type=int, default=0, help="seed of random (default: 0)")
    parser.add_argument("--step", type=int, metavar="K", help="step of constant-step, from 1")
    return parser


def main() -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    rows, problems = read_blind(existing_file(arguments.blind))
    strategies: dict[str, Strategy] = {"heuristic": heuristic, "no-drift": lambda scenario: Prediction(scenario.scenario_id, NO_DRIFT, 0.0)}
    if arguments.strategy == "majority":
        if arguments.train is None:
            parser.error("--strategy majority needs --train FILE")
        cases, found = read_cases(existing_file(arguments.train))
        problems += found
    if problems:
        return print_findings(problems)
    if arguments.strategy == "majority":
        strategies["majority"] = majority([case.gold for case in cases])
    elif arguments.strategy == "random":
        strategies["random"] = random_states(arguments.seed)
    elif arguments.strategy == "constant-step":
        if arguments.step is None or arguments.step < 1:
            parser.error("--strategy constant-step needs --step K, from 1")
        strategies["constant-step"] = constant_step(arguments.step)
    if arguments.predictions.resolve() == Path(arguments.blind).resolve():
        raise Unable("the output would overwrite the input")
    predictions = [strategies[arguments.strategy](scenario) for _, scenario in rows]
    write_whole(arguments.predictions, prediction_csv(predictions))
    print(f"{len(predictions)} predictions written to {arguments.predictions}")
    return VALID


if __name__ == "__main__":
    run(main)

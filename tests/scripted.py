"""Answers of many kinds to the cases of a split, and the project's own scores of them: what every harness is held against."""

from conftest import ROOT

from harness.parse import parse
from harness.prompt import answer_text
from rdod_metric.rules import Prediction
from rdod_metric.scoring import score
from rdod_metric.tables import read_cases

FILES = ("train", "dev", "test", "expanded/test")
CASES = {split: [(case.scenario, case.gold) for case in read_cases(ROOT / f"data/{split}.csv")[0]] for split in FILES}
MALFORMED = ("I can't tell.", '{"outcome_mode": "latent_dr', "")


def mixed_answers(split: str = "test") -> dict[str, str]:
    """Return right, wrong, repaired and unusable answers, by scenario id."""
    cases = CASES[split]
    texts = {}
    for place, (scenario, gold) in enumerate(cases):
        right, wrong = answer_text(gold.state), answer_text(cases[(place + 1) % len(cases)][1].state, 0.4)
        texts[scenario.scenario_id] = (right, wrong, f"```json\n{right}\n```", MALFORMED[place % 3])[place % 4]
    return texts


def own_report(texts: dict[str, str], split: str = "test") -> dict:
    """Score answers with the project's own core, unusable ones counted wrong."""
    predictions = {}
    for scenario, gold in CASES[split]:
        answer = parse(texts[gold.scenario_id], scenario)
        predictions[gold.scenario_id] = Prediction(gold.scenario_id, answer.state, answer.confidence)
    return score([gold for _, gold in CASES[split]], predictions, table=False)

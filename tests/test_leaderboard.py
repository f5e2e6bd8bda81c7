"""The two leaderboards: ranks, what compares, floors, bad reports and the three kinds of output."""

import json
import random
from html.parser import HTMLParser

import pytest
from conftest import ROOT
from samples import GOLD, PREDICTIONS, columns, csv_bytes, edited, read_rows

from baseline.baseline import random_states
from rdod_metric import scoring
from rdod_metric.rules import EXPANDED_NAME
from rdod_metric.scoring import score
from rdod_metric.tables import read_cases, read_gold, read_predictions
from scorer import leaderboard

A, B = leaderboard.A, leaderboard.B
BETTER = edited(PREDICTIONS, 23, predicted_first_drift_step="2")
WORSE = edited(
    PREDICTIONS,
    22,
    predicted_outcome_mode="no_drift",
    predicted_first_drift_step="",
    predicted_mechanism_family="none",
    predicted_repair_outcome="not_applicable",
)
SILENT = columns(PREDICTIONS, *PREDICTIONS.decode().splitlines()[0].split(",")[:-1])
SYSTEMS = {"alpha": BETTER, "beta": PREDICTIONS, "gamma": SILENT, "delta": WORSE}


def report_of(folder, predictions, gold=GOLD, table=True):
    """Return the score report of predictions for a gold file."""
    (folder / "g.csv").write_bytes(gold)
    (folder / "p.csv").write_bytes(predictions)
    known, _, problems = read_gold(folder / "g.csv")
    submission = read_predictions(folder / "p.csv", known)
    assert not problems and not submission.problems
    return scoring.score(list(known.values()), submission.predictions, table=table)


@pytest.fixture
def reports(tmp_path):
    """Write the reports of four systems on the sample file and return their paths by system."""
    paths = {}
    for name, predictions in SYSTEMS.items():
        paths[name] = tmp_path / f"{name}.json"
        paths[name].write_text(json.dumps(report_of(tmp_path, predictions)))
    return paths


def changed(path, change):
    """Change a report in place."""
    report = json.loads(path.read_text())
    change(report)
    path.write_text(json.dumps(report))


def board_of(command, *paths):
    """Return the leaderboards of reports as the command writes them."""
    run = command("scorer/leaderboard.py", *paths, "--output", "board.json")
    assert run.status == 0, run.err + run.out
    return json.loads((paths[0].parent / "board.json").read_text())


def ranks(board, section=A):
    return [(row["rank"], row["system"]) for row in board[section]["rows"]]


# ---------------------------------------------------------------- ranks
def test_equal_scores_share_a_rank(reports, command):
    board = board_of(command, *reports.values())
    assert ranks(board, A) == ranks(board, B) == [(1, "alpha"), (2, "beta"), (2, "gamma"), (4, "delta")]


def test_the_order_of_the_files_does_not_show(reports, command, tmp_path):
    seen = {}
    for seed in range(3):
        paths = random.Random(seed).sample(list(reports.values()), 4)
        for kind in ("md", "html", "json"):
            out = tmp_path / f"board{seed}.{kind}"
            run = command("scorer/leaderboard.py", *paths, "--output", out)
            assert run.status == 0
            assert seen.setdefault(kind, out.read_text()) == out.read_text()
            assert seen.setdefault("text", run.out) == run.out
    assert len(set(seen.values())) == 4


def test_a_null_score_comes_last(reports, command):
    def forget(report):
        report[A]["component_mean"] = None

    changed(reports["alpha"], forget)
    board = board_of(command, *reports.values())
    assert ranks(board, A) == [(1, "beta"), (1, "gamma"), (3, "delta"), (4, "alpha")]
    assert ranks(board, B)[0] == (1, "alpha")


def test_scores_that_differ_in_the_last_digit_are_equal():
    report = leaderboard.Report("", "", ("", ""), 1, 0, {"component_mean": 0.3}, {}, {}, None)
    rows = [
        report._replace(name="b", scores={"component_mean": 0.1 + 0.2}),
        report._replace(name="a"),
        report._replace(name="c", scores={"component_mean": 0.1}),
    ]
    assert [(rank, row.name) for rank, row in leaderboard.ranked(rows, "component_mean")] == [(1, "a"), (1, "b"), (3, "c")]


def test_a_row_says_everything(reports, command):
    report = json.loads(reports["alpha"].read_text())
    board = board_of(command, *reports.values())
    for section in (A, B):
        [row] = [row for row in board[section]["rows"] if row["system"] == "alpha"]
        for name in ("component_mean", *scoring.COMPONENTS):
            assert row[name] == report[A][name]
        assert row["complete_primary_accuracy"] == report[B]["complete_primary_accuracy"] == 0.5
        assert (row["n"], row["invalid_predictions"], row["tie_group"]) == (8, 0, "a")
        assert set(row["intervals"]) == set(scoring.AGGREGATES)
        assert row["wilson_interval"] == scoring.wilson_interval(0.5, 8)._asdict()
    assert board["class_support"] == report["class_support"]
    assert board["resolution_floor"] == report["resolution_floor"]


def test_intervals_are_those_of_the_scorer(reports, command):
    gold, _, _ = read_gold(reports["alpha"].parent / "g.csv")
    predictions = read_predictions(reports["alpha"].parent / "p.csv", gold).predictions  # those of delta, written last
    expected = scoring.score(list(gold.values()), predictions, resampling=scoring.Resampling())["intervals"]
    [row] = [row for row in board_of(command, *reports.values())[A]["rows"] if row["system"] == "delta"]
    assert row["intervals"] == expected


def test_systems_that_differ_clearly_stand_in_groups_of_their_own(tmp_path, command):
    header, *rows = read_rows(GOLD)
    gold = csv_bytes([header, *([f"{row[0]}-{copy}", *row[1:]] for copy in range(5) for row in rows)])
    first, *answers = read_rows(PREDICTIONS)
    middling = [[f"{row[0]}-{copy}", *row[1:]] for copy in range(5) for row in answers]
    blank = [[row[0], "no_drift", "", "none", "not_applicable", "none", "0.5"] for row in middling]
    paths = [tmp_path / "middling.json", tmp_path / "blank.json"]
    for path, answer in zip(paths, (middling, blank), strict=True):
        path.write_text(json.dumps(report_of(tmp_path, csv_bytes([first, *answer]), gold)))
    board = board_of(command, *paths)
    assert [(row["system"], row["tie_group"]) for row in board[A]["rows"]] == [("middling", "a"), ("blank", "b")]
    assert [(row["system"], row["tie_group"]) for row in board[B]["rows"]] == [("middling", "a"), ("blank", "a")]  # 5 cases apart: no McNemar test tells


# ---------------------------------------------------------------- what compares
def test_other_gold_and_other_versions_are_named_with_the_reason(reports, command, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(report_of(tmp_path, PREDICTIONS, edited(GOLD, 23, first_drift_step="3", relative_onset_position="0.5"))))
    changed(reports["delta"], lambda report: report["benchmark"].update(scorer_version="0.1.0"))
    changed(reports["gamma"], lambda report: report["benchmark"].pop("gold_labels_sha256"))
    board = board_of(command, other, *reports.values())
    assert ranks(board) == [(1, "alpha"), (2, "beta")]
    assert [row["system"] for row in board["not_comparable"]] == ["delta", "gamma", "other"]
    reasons = {row["system"]: row["reason"] for row in board["not_comparable"]}
    assert reasons["delta"] == f"another scorer version (0.1.0, not {scoring.SCORER_VERSION})"
    assert "doesn't name" in reasons["gamma"]
    assert reasons["other"].startswith("other gold labels (")


def test_the_largest_set_is_ranked_and_of_equal_ones_always_the_same(reports, command, tmp_path):
    gold = edited(GOLD, 23, first_drift_step="3", relative_onset_position="0.5")
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for path, predictions in zip(paths, (PREDICTIONS, BETTER), strict=True):
        path.write_text(json.dumps(report_of(tmp_path, predictions, gold)))
    assert {name for _, name in ranks(board_of(command, *paths, *list(reports.values())[:3]))} == {"alpha", "beta", "gamma"}
    equal = [*paths, *list(reports.values())[:2]]
    assert ranks(board_of(command, *equal)) == ranks(board_of(command, *equal[::-1]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda report: report[A].update(component_mean=0.99), "another component_mean than it states"),
        (lambda report: report[B].update(complete_primary_accuracy=1), "another complete_primary_accuracy than it states"),
        (lambda report: report["benchmark"].update(invalid_predictions=1), "another invalid_predictions than it states"),
        (lambda report: report["class_support"]["outcome_mode"].update(no_drift=3), "another class_support than it states"),
        (lambda report: report["prediction_table"].pop(), "not of the gold labels"),
        (lambda report: report["benchmark"].update(n=9), "not of the gold labels"),
        (lambda report: report["prediction_table"][2].update(gold_first_drift_step=3), "not of the gold labels"),
        (lambda report: report["prediction_table"][4].update(predicted_first_drift_step=5), "than it states"),
    ],
)
def test_scores_that_the_table_of_cases_contradicts_are_left_out(reports, command, change, words):
    changed(reports["delta"], change)
    [left_out] = board_of(command, *reports.values())["not_comparable"]
    assert left_out["system"] == "delta" and words in left_out["reason"]


def test_a_report_without_a_table_is_ranked_and_marked(reports, command, tmp_path):
    (tmp_path / "short.json").write_text(json.dumps(report_of(tmp_path, BETTER, table=False)))
    board = board_of(command, tmp_path / "short.json", *reports.values())
    assert ranks(board)[:2] == [(1, "alpha"), (1, "short")]
    assert board["unverified"] == ["short"]
    row = board[A]["rows"][1]
    assert row["tie_group"] is None and row["intervals"] == {} and row["wilson_interval"]["low"] > 0


def test_stated_intervals_stand_in_for_a_missing_table(reports, command, tmp_path):
    report_of(tmp_path, BETTER)
    for level, kept in ((0.95, True), (0.5, False)):
        command("scorer/score.py", "g.csv", "p.csv", "--ci", "--level", level, "--output", "stated.json")
        changed(tmp_path / "stated.json", lambda report: report.update(prediction_table=[]))
        board = board_of(command, tmp_path / "stated.json")
        assert bool(board[A]["rows"][0]["intervals"]) is kept


def test_invalid_answers_are_counted_in_the_row(tmp_path, command):
    (tmp_path / "g.csv").write_bytes(GOLD)
    (tmp_path / "p.csv").write_bytes(edited(PREDICTIONS, 22, predicted_outcome_mode="fine"))
    assert command("scorer/score.py", "g.csv", "p.csv", "--invalid", "incorrect", "--output", "bad.json").status == 0
    board = board_of(command, tmp_path / "bad.json")
    assert (board["not_comparable"], board[A]["rows"][0]["invalid_predictions"]) == ([], 1)


# ---------------------------------------------------------------- floors
@pytest.fixture
def official(tmp_path, command):
    """Return the report of the example predictions on the repository's test split."""
    run = command("scorer/score.py", ROOT / "data/test.csv", ROOT / "baseline/example_predictions.csv", "--output", "example.json")
    assert run.status == 0
    return tmp_path / "example.json"


def test_the_floors_are_always_in_both_tables(official, command, tmp_path):
    board = board_of(command, official)
    assert board["floors_available"] is True
    for section, metric in ((A, "component_mean"), (B, "complete_primary_accuracy")):
        rows = board[section]["rows"]
        assert sorted(row["system"].partition(":")[0] for row in rows if row["floor"]) == ["constant", "constant", "heuristic", "majority", "random"]
        assert all(row["rank"] is None and row["tie_group"] is None for row in rows if row["floor"])
        assert [row["rank"] for row in rows if not row["floor"]] == [1]
        assert [row[metric] for row in rows] == sorted((row[metric] for row in rows), reverse=True)


@pytest.mark.parametrize(
    ("floor", "options"),
    [
        ("heuristic", []),
        ("constant: no drift", ["--strategy", "no-drift"]),
        ("majority", ["--strategy", "majority", "--train", ROOT / "data/train.csv"]),
    ],
)
def test_a_floor_scores_what_the_baseline_command_scores(official, command, tmp_path, floor, options):
    assert command("baseline/baseline.py", ROOT / "data/test_blind.csv", "floor.csv", *options).status == 0
    assert command("scorer/score.py", ROOT / "data/test.csv", "floor.csv", "--output", "mine.json").status == 0
    board = board_of(command, official, tmp_path / "mine.json")
    mine, given = (
        {**row, "floor": None, "rank": None, "tie_group": None, "system": None} for name in ("mine", floor) for row in board[A]["rows"] if row["system"] == name
    )
    assert mine == given


def test_the_random_floor_is_the_mean_of_many_draws(official, command):
    cases = {split: read_cases(ROOT / f"data/{split}.csv")[0] for split in ("train", "test")}
    gold = [case.gold for case in cases["test"]]
    draws = []
    for seed in range(leaderboard.RANDOM_DRAWS):
        draw = random_states(seed)
        draws.append(score(gold, {case.scenario.scenario_id: draw(case.scenario) for case in cases["test"]}))
    board = board_of(command, official)
    for section, metric in ((A, "component_mean"), (B, "complete_primary_accuracy")):
        (row,) = (row for row in board[section]["rows"] if row["system"] == "random")
        assert row[metric] == pytest.approx(sum(draw[section][metric] for draw in draws) / len(draws), abs=1e-12)


def test_the_expanded_release_has_floors_of_its_own(tmp_path, command):
    test, train = ROOT / "data/expanded/test.csv", ROOT / "data/expanded/train.csv"
    assert command("baseline/baseline.py", test.with_name("test_blind.csv"), "mine.csv", "--strategy", "majority", "--train", train).status == 0
    assert command("scorer/score.py", test, "mine.csv", "--output", "mine.json").status == 0
    board = board_of(command, tmp_path / "mine.json")
    assert board["benchmark"]["name"] == EXPANDED_NAME
    mine, floor = ([row["component_mean"] for row in board[A]["rows"] if row["system"] == name] for name in ("mine", "majority"))
    assert mine == floor


def test_other_gold_has_no_floors_and_says_so(reports, command):
    run = command("scorer/leaderboard.py", *reports.values())
    assert run.status == 0
    assert "floors (majority, random, constant, heuristic) are not available" in run.out


def test_of_equal_sets_the_official_one_is_ranked(official, reports, command):
    for paths in ((official, reports["alpha"]), (reports["alpha"], official)):
        assert [row["system"] for row in board_of(command, *paths)["not_comparable"]] == ["alpha"]


# ---------------------------------------------------------------- output
def test_both_tables_in_markdown(reports, command, tmp_path):
    run = command("scorer/leaderboard.py", *reports.values(), "--output", "board.md")
    text = (tmp_path / "board.md").read_text()
    assert run.status == 0
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    heads = [row for row in rows if row[0] == "rank"]
    assert [row[3] for row in heads] == ["component_mean", "complete_primary_accuracy"]
    for head in heads:
        assert {"system", "ties", "interval", *scoring.COMPONENTS, "component_mean", "complete_primary_accuracy", "n", "invalid"} <= set(head)
    assert [row[:2] for row in rows if row[0].isdigit()] == [["1", "alpha"], ["2", "beta"], ["2", "gamma"], ["4", "delta"]] * 2
    assert text.count("Support of outcome_mode: no_drift 2, latent_drift 0") == 2
    assert "NaN" not in text and "None" not in text


class Tables(HTMLParser):
    """Collect tags and the text of table cells."""

    def __init__(self):
        super().__init__()
        self.tags, self.cells, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag == "td"
        if self.inside:
            self.cells.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


def test_names_are_shown_as_text(reports, command, tmp_path):
    name = "<script>alert(1)<|b> & [x](y) *c*"
    reports["alpha"].rename(tmp_path / f"{name}.json")
    run = command("scorer/leaderboard.py", tmp_path / f"{name}.json", reports["beta"], "--output", "board.html")
    assert run.status == 0
    page = Tables()
    page.feed((tmp_path / "board.html").read_text())
    assert page.cells.count(name) == 2
    assert page.tags.count("table") == 2 and "script" not in page.tags and "link" not in page.tags
    command("scorer/leaderboard.py", tmp_path / f"{name}.json", reports["beta"], "--output", "board.md")
    assert "| 1 | &lt;script&gt;alert(1)&lt;\\|b&gt; &amp; [x\\](y) \\*c\\* |" in (tmp_path / "board.md").read_text()


def test_reports_of_one_name_are_told_apart_by_folder(reports, command, tmp_path):
    paths = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "report.json")
        paths[-1].write_bytes(reports[{"first": "alpha", "second": "beta"}[folder]].read_bytes())
    run = command("scorer/leaderboard.py", *paths)
    assert run.status == 0 and "first/report" in run.out and "second/report" in run.out


# ---------------------------------------------------------------- bad input
def without(*keys):
    def change(report):
        inside = report
        for key in keys[:-1]:
            inside = inside[key]
        del inside[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (without("benchmark"), "benchmark.n"),
        (without("benchmark", "n"), "benchmark.n"),
        (without("benchmark", "name"), "benchmark.name"),
        (without(A), f"{A}.component_mean"),
        (without(A, "outcome_mode_macro_f1"), f"{A}.outcome_mode_macro_f1"),
        (without(B, "complete_primary_accuracy"), f"{B}.complete_primary_accuracy"),
        (without("class_support"), "class_support"),
        (without("class_support", "outcome_mode", "no_drift"), "class_support"),
        (lambda report: report["benchmark"].update(n=0), "benchmark.n"),
        (lambda report: report["benchmark"].update(n=True), "benchmark.n"),
        (lambda report: report["benchmark"].update(invalid_predictions=-1), "benchmark.invalid_predictions"),
        (lambda report: report["benchmark"].update(scorer_version=2), "benchmark.scorer_version"),
        (lambda report: report["benchmark"].update(gold_labels_sha256=["x"]), "benchmark.gold_labels_sha256"),
        (lambda report: report[A].update(component_mean="0.5"), f"{A}.component_mean"),
        (lambda report: report[A].update(component_mean=1.5), f"{A}.component_mean"),
        (lambda report: report[A].update(component_mean=10**400), f"{A}.component_mean"),
        (lambda report: report.update(resampling={"level": 0.95}, intervals=[1]), "intervals"),
        (lambda report: report.update(resampling={"level": 0.95}, intervals={"component_mean": {"low": "a", "high": 1}}), "intervals"),
        (lambda report: report.update(prediction_table="none"), "prediction_table"),
        (lambda report: report.update(prediction_table=[1]), "prediction_table"),
        (lambda report: report["prediction_table"][0].update(scenario_id=7), "prediction_table"),
        (lambda report: report["prediction_table"][0].update(predicted_outcome_mode="fine"), "prediction_table.predicted_outcome_mode"),
        (lambda report: report["prediction_table"][0].update(gold_outcome_mode=[]), "prediction_table.gold_outcome_mode"),
        (lambda report: report["prediction_table"][0].update(confidence=2), "prediction_table.confidence"),
        (lambda report: report["prediction_table"].append(report["prediction_table"][0]), "prediction_table.scenario_id"),
    ],
)
def test_a_report_that_is_none_is_refused_by_key(reports, command, tmp_path, change, place):
    changed(reports["beta"], change)
    run = command("scorer/leaderboard.py", *reports.values(), "--output", "board.json")
    assert run.status == 1 and not (tmp_path / "board.json").exists()
    assert f"{reports['beta']}: {place}: " in run.out


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b"12", b"{", b'{"benchmark": NaN}', b"\xff\xfe\x00", b"scenario_id,outcome\n", b"[" * 100_000, b"{}", '{"a": "ü"}'.encode("latin-1")],
)
def test_a_file_that_is_no_report_is_a_finding(reports, command, tmp_path, content):
    (tmp_path / "odd.json").write_bytes(content)
    run = command("scorer/leaderboard.py", reports["alpha"], tmp_path / "odd.json", "--output", "board.md")
    assert run.status == 1
    assert run.out.startswith(f"{tmp_path / 'odd.json'}:")
    assert not (tmp_path / "board.md").exists()


def test_the_findings_of_all_reports_come_at_once(reports, command):
    for name in ("alpha", "delta"):
        changed(reports[name], without("benchmark", "n"))
    run = command("scorer/leaderboard.py", *reports.values())
    assert run.status == 1 and run.out.count("benchmark.n") == 2


@pytest.mark.parametrize(
    ("output", "words"), [("board.txt", "--output is a file that ends in"), ("board", "--output is a file that ends in"), ("alpha.json", "it is an input")]
)
def test_outputs_that_can_not_be(reports, command, tmp_path, output, words):
    before = reports["alpha"].read_bytes()
    run = command("scorer/leaderboard.py", *reports.values(), "--output", output)
    assert run.status == 2 and words in run.err and not run.out
    assert reports["alpha"].read_bytes() == before


def test_a_report_given_twice_and_one_that_is_not_there(reports, command):
    assert command("scorer/leaderboard.py", reports["alpha"], reports["alpha"]).status == 2
    assert command("scorer/leaderboard.py", reports["alpha"], "nowhere.json").status == 2

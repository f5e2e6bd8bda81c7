"""The Space's page as visitors use it, in a real browser, served from a copy of its folder as the Space serves it."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from browser import browser
from conftest import ROOT
from huggingface_hub import metadata_load
from metric_records import csv_records
from samples import GOLD, PREDICTIONS, all_cells, csv_bytes, edited, read_rows, replaced

from benchmarks.generated import write_pair

FOLDER = ROOT / "rdod_metric"
__all__ = ["browser"]
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> ${document.title='owned'} "
    "{{value}} {{#each value}} =1+1 </details></table>"
)


def test_the_bundled_test_split_is_the_dataset_s():
    assert (FOLDER / "test.csv").read_bytes() == (ROOT / "data/test.csv").read_bytes()


def test_the_card_configures_the_space_and_the_requirements_agree():
    card = metadata_load(FOLDER / "README.md")
    assert (card["sdk"], card["app_file"], card["license"]) == ("gradio", "app.py", "mit")
    assert {"evaluate", "metric"} <= set(card["tags"]) and card["title"]
    assert yaml.safe_load((FOLDER / "README.md").read_text(encoding="utf-8").split("---")[1]) == card
    major = re.search(r"^gradio==(\d+)\.\*$", (FOLDER / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert card["sdk_version"].split(".")[0] == major
    headings = re.findall(r"^## (.*)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Metric description", "How to use", "Examples", "Limitations and bias", "Citation", "Further references"]


@contextlib.contextmanager
def served(folder, python=sys.executable):
    """Serve the page of a folder for as long as the context is open; return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "GRADIO_")) and name != "PYTHONPATH"}
    env = {**inherited, "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home"), "GRADIO_TEMP_DIR": str(folder / "uploads")}
    log = folder.with_suffix(".log")
    with log.open("wb") as output, subprocess.Popen([python, "app.py"], cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT) as server:
        try:
            until = time.monotonic() + 120
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/config", timeout=5)
                    break
                assert server.poll() is None and time.monotonic() < until, log.read_text(encoding="utf-8")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
    assert "Traceback" not in log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def space(tmp_path_factory, browser):
    """Return the address of the page, served from a copy that lies in a folder of another name."""
    folder = tmp_path_factory.mktemp("space") / "app"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with served(folder) as address:
        yield address


class Visitor:
    """A browser window of its own, and what somebody does in it."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = address
        self.page.goto(address)
        self.page.wait_for_selector("#run", timeout=60_000)

    def upload(self, path, where="#predictions"):
        if self.page.locator(f"{where} button[aria-label='Remove this file'], {where} button[aria-label='Clear']").count():
            self.page.locator(f"{where} button[aria-label='Clear']").first.click()
        self.page.set_input_files(f"{where} input[type=file]", path)
        self.page.locator(where).get_by_text(Path(path).stem[:6]).first.wait_for(timeout=30_000)

    def score(self, shown):
        self.page.click("#run")
        self.page.wait_for_selector(shown, timeout=60_000)

    def tab(self, name):
        self.page.get_by_role("tab", name=name).click()

    def download(self):
        with self.page.expect_download(timeout=30_000) as download:
            self.page.click("#download")
        return download.value.suggested_filename, json.loads(Path(download.value.path()).read_text(encoding="utf-8"))

    def cases(self):
        """Return the ids of the cases that the list shows."""
        return self.page.eval_on_selector_all("#cases details summary b", "nodes => nodes.map(node => node.textContent)")

    def filter(self, verdict, field):
        self.page.locator("#verdict label", has_text=verdict).click()
        self.page.locator("#field input").click()
        self.page.get_by_role("option", name=field, exact=True).click()

    def wait_for_count(self, count):
        self.page.wait_for_selector(f"#cases [data-count='{count}']", timeout=30_000)

    def leave(self):
        outside = [url for url in self.requests if not url.startswith((self.address, "data:", "blob:"))]
        self.context.close()
        assert self.errors == [] and outside == []


@pytest.fixture
def visit(browser, space):
    """Return a function that opens the page for another visitor; at the end nobody has met an error or another server."""
    visitors = []

    def opened(**options):
        visitors.append(Visitor(browser, space, **options))
        return visitors[-1]

    yield opened
    for visitor in visitors:
        visitor.leave()


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return a prediction file for the public test split: right but for the first two cases, and with confidences."""
    rows = [
        [
            row["scenario_id"],
            row["outcome_mode"],
            row["first_drift_step"],
            row["mechanism_family"],
            row["repair_outcome"],
            "none" if row["residual_constraint_failure"] == "none" else str(json.loads(row["constraints_json"]).index(row["residual_constraint_failure"]) + 1),
            f"{0.5 + place / 40:.3f}",
        ]
        for place, row in enumerate(csv_records((FOLDER / "test.csv").read_bytes()))
    ]
    first, second = (row for row in rows if row[1] == "visible_failure" and row[4] == "unrepaired")
    first[3] = "scope_collapse" if first[3] != "scope_collapse" else "proxy_substitution"
    second[1:6] = ["no_drift", "", "none", "not_applicable", "none"]
    path = tmp_path_factory.mktemp("answers") / "answers.csv"
    path.write_bytes(csv_bytes([PREDICTIONS.splitlines()[0].decode().split(","), *rows]))
    return path, first[0], second[0]


def report_of(gold, predictions):
    ended = subprocess.run([sys.executable, ROOT / "scorer/score.py", gold, predictions, "--json", "--ci"], capture_output=True, check=True)
    return json.loads(ended.stdout)


def test_a_good_file_gives_every_part_and_the_command_s_report(visit, answers):
    path, first, second = answers
    visitor = visit()
    visitor.upload(path)
    visitor.score("#scores .board")
    report = report_of(ROOT / "data/test.csv", path)
    a, b = (visitor.page.locator(f"#scores [data-board={name}]").inner_text() for name in "ab")
    assert f"{report['leaderboard_a_component_capability']['component_mean']:.3f}" in a and "n = 12" in a and "support: no_drift" in a
    assert f"{report['leaderboard_b_complete_reasoning_state']['complete_primary_accuracy']:.3f}" in b
    assert [f"{count} of 12" in b for count in report["leaderboard_b_complete_reasoning_state"]["ladder"].values()] == [True] * 5
    boxes = [visitor.page.locator(f"#scores [data-board={name}]").bounding_box() for name in "ab"]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]  # side by side
    assert visitor.download() == ("score_report.json", report)
    visitor.tab("Figures")
    labels = visitor.page.eval_on_selector_all("#figures svg", "nodes => nodes.map(node => node.getAttribute('aria-label'))")
    assert [label.split(":")[0] for label in labels] == [
        "Confusion matrix of outcome_mode",
        "Confusion matrix of repair_outcome",
        "Confusion matrix of mechanism_family",
        "Histogram of the onset error in steps",
        "Reliability diagram",
        "Risk-coverage curve",
    ]
    for figure in visitor.page.locator("#figures svg").all():
        assert min(figure.bounding_box()[side] for side in ("width", "height")) > 150
    visitor.tab("Classes")
    table = visitor.page.locator("#classes tr", has_text="recovered_drift").inner_text().split()
    row = report["per_class_metrics"]["outcome_mode"]["recovered_drift"]
    assert table[1:3] == [str(row["support"]), str(row["predicted"])]
    visitor.tab("Cases")
    visitor.wait_for_count(12)
    assert visitor.cases() == [row["scenario_id"] for row in report["prediction_table"]]


def test_a_case_shows_its_steps_and_both_onsets(visit, answers):
    path, first, second = answers
    visitor = visit()
    visitor.upload(path)
    visitor.score("#scores .board")
    visitor.tab("Cases")
    gold = {row["scenario_id"]: row for row in csv_records((FOLDER / "test.csv").read_bytes())}
    for name, marks in ((first, ["gold onset", "predicted onset"]), (second, ["gold onset"])):
        case = visitor.page.locator(f"#cases #case-{name}")
        if case.get_attribute("open") is None:
            case.locator("summary").click()
        steps, rules = case.locator("ol").last, case.locator("ol").first
        assert steps.locator("li").count() == int(gold[name]["trajectory_length"])
        marked = steps.locator("li.gold")
        assert marked.locator(".n").inner_text() == gold[name]["first_drift_step"]
        assert marked.locator(".badge").all_inner_texts() == marks
        assert rules.locator("li").count() == len(json.loads(gold[name]["constraints_json"]))
        assert rules.locator("li.gold").inner_text().endswith(gold[name]["residual_constraint_failure"])
    wrong = visitor.page.locator(f"#cases #case-{second} td.wrong")
    assert wrong.count() == 5
    colours = {visitor.page.locator(f"#cases #case-{first} td.{kind}").first.evaluate("node => getComputedStyle(node).color") for kind in ("right", "wrong")}
    assert len(colours) == 2


def test_the_filter_by_field_and_verdict(visit, answers):
    path, first, second = answers
    visitor = visit()
    visitor.upload(path)
    visitor.score("#scores .board")
    visitor.tab("Cases")
    visitor.filter("wrong", "all five targets")
    visitor.wait_for_count(2)
    assert visitor.cases() == sorted([first, second])
    visitor.filter("wrong", "First drift step")
    visitor.wait_for_count(1)
    assert visitor.cases() == [second]
    visitor.filter("right", "First drift step")
    visitor.wait_for_count(11)
    assert second not in visitor.cases()
    visitor.page.click("#run")  # a new computation starts with all cases again
    visitor.wait_for_count(12)
    assert visitor.page.locator("#verdict input:checked").get_attribute("value") == "all"
    assert visitor.page.locator("#field input").input_value() == "all five targets"


def test_many_cases_come_in_pages(visit, tmp_path):
    gold_path, path = write_pair(tmp_path, 30, seed=2)
    names = [row["scenario_id"] for row in csv_records(gold_path.read_bytes())]
    visitor = visit()
    visitor.page.locator("#source label", has_text="labelled file").click()
    visitor.upload(gold_path, "#labelled")
    visitor.upload(path)
    visitor.score("#scores .board")
    visitor.tab("Cases")
    visitor.wait_for_count(30)
    assert visitor.cases() == names[:12]
    visitor.page.fill("#page input[type=number]", "3")
    visitor.page.press("#page input[type=number]", "Enter")
    visitor.page.wait_for_selector(f"#cases #case-{names[24]}", timeout=30_000)
    assert visitor.cases() == names[24:]
    visitor.filter("right", "all five targets")
    visitor.page.wait_for_selector(f"#cases #case-{names[24]}", state="detached", timeout=30_000)
    right = [row["scenario_id"] for row in report_of(gold_path, path)["prediction_table"] if row["complete_primary_correct"]]
    assert visitor.cases() == right[:12]


def test_a_bad_file_gives_findings_and_no_traceback(visit, answers, tmp_path):
    bad = tmp_path / "bad-file.csv"
    bad.write_bytes(replaced(answers[0].read_bytes(), (answers[1], answers[1].lower())).replace(b"no_drift", b"no_dirft", 1))
    visitor = visit()
    visitor.upload(answers[0])
    visitor.score("#scores .board")
    visitor.upload(bad)
    visitor.score("#notice .findings")
    assert not visitor.page.locator("#scores .board").is_visible()
    rows = [row.split("\t") for row in visitor.page.locator("#notice .findings tbody tr").all_inner_texts()]
    assert sorted(row[-1].strip() for row in rows) == ["invalid-label", "missing-prediction", "unknown-scenario"]
    assert all(row[0] == "bad-file.csv" for row in rows)
    label = next(row for row in rows if row[-1].strip() == "invalid-label")
    assert "no_drift" in label[5] and label[2] == "predicted_outcome_mode" and label[1].isdigit()
    name, found = visitor.download()
    assert name == "findings.json" and found["valid"] is False and len(found["findings"]) == 3


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("book.xlsx", b"PK\x03\x04" + bytes(200), "not-csv"),
        ("empty.csv", b"", "empty-file"),
        ("other.csv", b"a,b\n1,2\n", "no-header"),
        ("latin.csv", PREDICTIONS.replace(b"no_drift", b"no_dr\xeft"), "encoding"),
        ("quote.csv", PREDICTIONS + b'"RDOD2-029,no_drift', "broken-csv"),
    ],
)
def test_whatever_is_uploaded_is_told_what_is_wrong(visit, tmp_path, name, content, code):
    path = tmp_path / name
    path.write_bytes(content)
    visitor = visit()
    visitor.upload(path)
    visitor.score("#notice .findings")
    assert code in visitor.page.locator("#notice .findings").inner_text()


def test_without_files_the_page_asks_for_them(visit, answers):
    visitor = visit()
    visitor.score("#notice .note-box")
    assert "prediction file first" in visitor.page.locator("#notice").inner_text()
    visitor.upload(answers[0])
    visitor.page.locator("#source label", has_text="labelled file").click()
    visitor.page.wait_for_selector("#labelled input[type=file]", state="attached")
    visitor.page.click("#run")
    visitor.page.get_by_text("choose a labelled file first").wait_for(timeout=30_000)


def test_text_from_files_is_shown_as_text(visit, tmp_path):
    """Markup, scripts, templates and formulas in cells, names of files and ids do nothing but stand there."""
    rows = read_rows(GOLD)
    cells = json.loads(rows[4][3]), json.loads(rows[4][4])
    cells[0][1] = HOSTILE
    cells[1][3]["text"] = HOSTILE
    gold = edited(GOLD, 24, task=HOSTILE, domain=HOSTILE, constraints_json=json.dumps(cells[0]), trajectory_json=json.dumps(cells[1]))
    strange = 'RDOD2-024<img src=x onerror=alert(1)>"'
    gold, predictions = (all_cells(content, "scenario_id", lambda name: strange if name == "RDOD2-024" else name) for content in (gold, PREDICTIONS))
    gold_path, path = tmp_path / "gold.csv", tmp_path / "predictions.csv"
    gold_path.write_bytes(gold)
    path.write_bytes(predictions)
    visitor = visit()
    visitor.page.locator("#source label", has_text="labelled file").click()
    visitor.upload(gold_path, "#labelled")
    visitor.upload(path)
    visitor.score("#scores .board")
    visitor.tab("Cases")
    visitor.wait_for_count(8)
    assert strange in visitor.cases()
    case = visitor.page.locator("#cases details").nth(3)
    case.locator("summary").click()
    assert case.inner_text().count(HOSTILE) == 4
    assert visitor.page.locator("#cases img, #cases script").count() == 0
    path.write_bytes(replaced(PREDICTIONS, ("RDOD2-024", HOSTILE.replace('"', '""').join(['"', '"']))).replace(b"no_drift", b"<b>no_drift</b>", 1))
    visitor.upload(path)
    visitor.score("#notice .findings")
    assert HOSTILE in visitor.page.locator("#notice .findings").inner_text()
    assert visitor.page.locator("#notice img, #notice script, #notice td > b:has-text('<')").count() == 0
    visitor.page.wait_for_timeout(500)
    assert visitor.page.title() == "Reasoning Drift Onset Detection v0.2"


def test_two_visitors_at_once_see_their_own_files(visit, answers, tmp_path):
    gold_path, path = tmp_path / "gold.csv", tmp_path / "answers.csv"  # the same name, other content
    gold_path.write_bytes(GOLD)
    path.write_bytes(PREDICTIONS)
    one, two = visit(), visit(color_scheme="dark")
    two.page.locator("#source label", has_text="labelled file").click()
    one.upload(answers[0])
    two.upload(gold_path, "#labelled")
    two.upload(path)
    one.page.click("#run")
    two.page.click("#run")
    for visitor, n, gold, predictions in ((one, 12, ROOT / "data/test.csv", answers[0]), (two, 8, gold_path, path)):
        visitor.page.wait_for_selector("#scores .board", timeout=60_000)
        assert f"n = {n} cases" in visitor.page.locator("#scores [data-board=a]").inner_text()
        visitor.tab("Cases")
        visitor.wait_for_count(n)
        assert visitor.download()[1] == report_of(gold, predictions)
    one.filter("wrong", "all five targets")
    two.filter("right", "all five targets")
    one.wait_for_count(2)
    two.wait_for_count(3)
    backgrounds = {visitor.page.evaluate("getComputedStyle(document.querySelector('#cases .case')).backgroundColor") for visitor in (one, two)}
    assert len(backgrounds) == 2  # the second visitor's page is dark


def test_the_folder_works_alone_in_an_empty_environment(tmp_path):
    """What requirements.txt names is all that page and metric need."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    folder = tmp_path / "app"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", folder / "requirements.txt"], capture_output=True, text=True
    )
    if installed.returncode and os.environ.get("CI") != "true" and "No matching distribution" in installed.stderr:
        pytest.skip("no package index is reached")
    assert installed.returncode == 0, installed.stderr
    with served(folder, python):
        pass
    code = "import evaluate; print(evaluate.load('./rdod_metric.py', keep_in_memory=True).features['predictions'].keys())"
    loaded = subprocess.run([python, "-c", code], cwd=folder, env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}, capture_output=True)
    assert b"predicted_outcome_mode" in loaded.stdout, loaded.stderr

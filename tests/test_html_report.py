"""The HTML report: one file with everything in it, readable in a browser by day, by night and on paper."""

import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from browser import browser
from conftest import ROOT
from samples import GOLD, PREDICTIONS, all_cells, columns, edited, replaced

from benchmarks.generated import write_pair
from scorer.html_report import CASES_SHOWN

__all__ = ["browser"]
SCORE = "scorer/score.py"
CONTRAST = """
selector => {
  const channels = text => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return {rgb: [r, g, b], a: a === undefined ? 1 : a}; };
  const luminance = rgb => rgb.map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  return [...document.querySelectorAll(selector)].map(node => {
    let behind = node;
    while (behind && channels(getComputedStyle(behind).backgroundColor).a === 0) behind = behind.parentElement;
    const style = getComputedStyle(node), svg = node instanceof SVGElement;
    const [a, b] = [svg ? style.fill : style.color, getComputedStyle(behind).backgroundColor].map(text => luminance(channels(text).rgb)).sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
}
"""


class Page(HTMLParser):
    """What an HTML file refers to and says."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.references, self.ids, self.text = Counter(), [], Counter(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        for name, value in attributes:
            if name in ("href", "src", "xlink:href", "srcset", "action", "data"):
                self.references.append(value)
            if name == "id":
                self.ids[value] += 1
            assert not name.startswith("on")

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def write(command, tmp_path):
    """Return a function that scores files and returns the path of the HTML report, its text and the report itself."""

    def run(gold=GOLD, predictions=PREDICTIONS, *arguments):
        (tmp_path / "gold.csv").write_bytes(gold)
        (tmp_path / "predictions.csv").write_bytes(predictions)
        ended = command(SCORE, "gold.csv", "predictions.csv", "--html", "report.html", "--output", "report.json", *arguments)
        assert ended.status == 0, ended.err
        path = tmp_path / "report.html"
        return path, path.read_text(encoding="utf-8"), json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

    return run


@pytest.fixture
def show(browser):
    """Return a function that opens a file in the browser without a network; nothing may be asked of one, nor an error come up."""
    contexts, requests, errors = [], [], []

    def opened(path, **options):
        contexts.append(browser.new_context(offline=True, **options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == [] and all(url.startswith("file:") and url.endswith(".html") for url in requests)


def test_the_file_needs_nothing_else_and_holds_every_part(write):
    _, text, report = write(GOLD, PREDICTIONS, "--ci", "--resamples", "200", "--by", "length")
    page = Page(text)
    assert all(reference.startswith("#") for reference in page.references)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & set(page.tags)
    assert re.findall(r"https?://[^\"\s]+", re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)) == [] and "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert {count for name, count in page.ids.items()} == {1}  # figures share no ids, so that none cuts another's clip path
    assert page.tags["svg"] == 7
    assert page.tags["details"] == 8 and text.count('class="badge gold"') == 6 + 3
    for section in ("leaderboard_a_component_capability", "leaderboard_b_complete_reasoning_state", "secondary_diagnostics"):
        for value in report[section].values():
            if isinstance(value, float):
                assert f"{value:.3f}" in page.text
    for name in ("Leaderboard A", "Leaderboard B", "n = 8 cases", "Brier score", "support: no_drift 2", report["benchmark"]["gold_sha256"][:12], "medium"):
        assert name in page.text, name
    low = report["intervals"]["component_mean"]["low"]
    assert f"[{low:.2f}, " in page.text
    assert report["resolution_floor"]["meaning"] in page.text


def test_what_the_report_lacks_is_not_drawn(write):
    _, text, _ = write(GOLD, columns(PREDICTIONS, *PREDICTIONS.splitlines()[0].decode().split(",")[:-1]))
    labels = re.findall(r'<svg role="img" aria-label="([^":]*)', text)
    assert labels[1:] == ["Confusion matrix of outcome_mode", "Confusion matrix of repair_outcome", "Confusion matrix of mechanism_family", labels[-1]]
    assert labels[0] == "Scores with their intervals"  # Wilson's, which every report has
    assert "undefined" in text and "Strata" not in text


def test_invalid_answers_have_a_column_of_their_own(write):
    _, text, report = write(
        GOLD,
        replaced(edited(PREDICTIONS, 24, predicted_outcome_mode="drift"), ("RDOD2-023,recovered_drift,3", "RDOD2-023,recovered_drift,9")),
        "--invalid",
        "incorrect",
    )
    assert report["benchmark"]["invalid_predictions"] == 2
    assert "2 answers broke a rule or were missing" in text
    assert text.count("<i>no valid answer</i>") == 10
    assert text.count("no valid answer</text>") == 3 and "no valid\nanswer" not in text


def test_text_from_files_is_shown_as_text(write, show):
    hostile = "<img src=x onerror=alert(1)><script>alert(1)</script></style></main>&amp;"
    gold = edited(all_cells(GOLD, "domain", lambda cell: f"{cell}<b>"), 24, task=hostile)
    path, text, _ = write(gold, PREDICTIONS, "--by", "domain")
    page = Page(text)
    assert hostile in page.text and not {"img", "script"} & set(page.tags)
    assert page.tags["b"] == 8  # the ids, and none of the domains'
    seen = show(path)
    assert seen.locator("#case-RDOD2-024").get_by_text(hostile).count() == 1


def test_the_cases_can_be_filtered_without_a_script(write, show):
    path, _, report = write()
    page = show(path, java_script_enabled=False)
    cases = page.locator("details.case")
    assert cases.count() == 8

    def visible():
        return [case.get_attribute("id").removeprefix("case-") for case in cases.all() if case.is_visible()]

    def expected(verdict, field):
        key = f"{field}_correct" if field else "complete_primary_correct"
        return [row["scenario_id"] for row in report["prediction_table"] if row[key] is (verdict == "right")]

    assert len(visible()) == 8
    for verdict in ("right", "wrong"):
        for field in ("", "first_drift_step", "residual_constraint_id"):
            page.check(f"#show-{verdict}")
            page.check(f"#field-{field or 'all'}")
            assert visible() == expected(verdict, field)
    assert len({tuple(expected(*choice)) for choice in (("right", ""), ("wrong", ""), ("wrong", "first_drift_step"), ("wrong", "residual_constraint_id"))}) == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_readable_by_day_and_by_night(write, show, scheme):
    path, _, _ = write(GOLD, PREDICTIONS, "--ci", "--resamples", "200", "--by", "length")
    page = show(path, color_scheme=scheme)
    for selector in ("p", "td", "th", "h1", "h2", "h3", "h4", ".muted", ".chip", ".badge", "code", "a", "li span", "svg text", "summary b", "label"):
        ratios = page.evaluate(CONTRAST, selector)
        assert ratios and min(ratios) >= 4.5, selector
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 30)"
    assert dark == (scheme == "dark")


def test_on_a_phone_and_on_paper(write, show):
    path, _, _ = write(GOLD, PREDICTIONS, "--ci", "--resamples", "200")
    phone = show(path, viewport={"width": 360, "height": 700})
    assert phone.evaluate("document.documentElement.scrollWidth") == 360
    page = show(path, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".filters").is_visible() and not page.locator("nav").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert all(page.locator(f"#case-RDOD2-0{number} ol").first.is_visible() for number in range(21, 29))
    assert len(page.pdf(format="A4")) > 20_000


def test_figures_say_what_the_report_says(write, show):
    path, _, report = write()
    page = show(path)
    for field in ("outcome_mode", "repair_outcome", "mechanism_family"):
        texts = page.locator(f"svg[aria-label^='Confusion matrix of {field}'] text").all_text_contents()
        counts = Counter((row[f"gold_{field}"], row[f"predicted_{field}"]) for row in report["prediction_table"])
        assert sorted(text for text in texts if text.isdigit()) == sorted(map(str, counts.values()))
    bars = page.locator("svg[aria-label^='Histogram'] text").all_text_contents()
    assert {"0", "+1", "−3", "false"} <= set(bars)
    bins = page.locator("svg[aria-label^='Reliability'] text").all_text_contents()
    assert sum(int(text) for text in bins if text.isdigit()) == 8


def test_a_large_report_shows_the_wrong_cases_first(command, tmp_path):
    gold_path, path = write_pair(tmp_path, 3 * CASES_SHOWN, seed=1, accuracy=0.8)
    ended = command(SCORE, gold_path, path, "--html", tmp_path / "report.html")
    assert ended.status == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.tags["details"] == CASES_SHOWN and f"The first {CASES_SHOWN} of {3 * CASES_SHOWN} cases" in page.text
    assert len(text) < 3_000_000
    kinds = re.findall(r'<details class="case ([\w -]*)"', text)
    wrong = [kind != "all-right" for kind in kinds]
    assert wrong == sorted(wrong, reverse=True) and 50 < sum(wrong) < CASES_SHOWN


def test_nothing_is_left_where_the_report_cannot_be_written(command, tmp_path):
    (tmp_path / "gold.csv").write_bytes(GOLD)
    (tmp_path / "predictions.csv").write_bytes(PREDICTIONS.replace(b"no_drift", b"no_dirft"))
    before = sorted(tmp_path.iterdir())
    assert command(SCORE, "gold.csv", "predictions.csv", "--html", "report.html").status == 1
    assert command(SCORE, "gold.csv", "predictions.csv", "--html", str(ROOT)).status == 2
    assert sorted(tmp_path.iterdir()) == before

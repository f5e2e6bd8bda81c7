"""The Space's page: upload predictions, see both leaderboards and where the system fails, case by case.

Nothing is kept: a visitor's files, report and cases live as long as the visit. Where the Space has a
secret HF_TOKEN and a variable RDOD_HIDDEN_REPOSITORY, predictions are scored on the labelled file of that
private dataset repository instead (RDOD_HIDDEN_FILE, or test.csv), and nothing of single cases is shown.
"""

import json
import os
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent
if "rdod_metric" not in sys.modules:  # a Space runs this file as a script in a folder of another name, and the siblings need a package
    package = types.ModuleType("rdod_metric")
    package.__path__ = [str(FOLDER)]
    sys.modules["rdod_metric"] = package
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from rdod_metric import page
from rdod_metric.hidden import HiddenGold
from rdod_metric.rules import CONFIDENCE, PREDICTION_COLUMNS, Problem, Scenario, text_sha256
from rdod_metric.scoring import Resampling, score
from rdod_metric.tables import read_cases, read_predictions

PUBLIC_TEST = FOLDER / "test.csv"
"""The public test split: a copy of the dataset's data/test.csv, made with the other generated files."""

PER_PAGE = 12
"""Cases that the list shows at once."""

FINDINGS_SHOWN = 500
"""Findings that the table shows; the download holds all."""

MOST_CASES_FOR_INTERVALS = 20_000
"""Above so many cases intervals are not computed: they would be narrow, and a visitor would wait."""

HIDDEN_REPOSITORY, HIDDEN_FILE, TOKEN = "RDOD_HIDDEN_REPOSITORY", "RDOD_HIDDEN_FILE", "HF_TOKEN"
"""Variables and secret of a Space that scores on hidden gold."""

_PUBLIC, _OWN = "the public test split", "a labelled file of mine"
_LAYOUT = """
.gradio-container { max-width: 80rem !important; margin: 0 auto !important; }
.rdod h1 { font-size: 1.75rem; line-height: 1.2; font-weight: 700; letter-spacing: -.01em; margin: .5rem 0 .25rem; }
.rdod > h2:first-child { margin-top: .5rem; }
.gradio-container .html-container { padding: 0 !important; }
footer { display: none !important; }
"""
_INTRODUCTION = """<h1>Reasoning Drift Onset Detection v0.2</h1>
<p>Where does a reasoning trajectory lose a governing constraint, what kind of failure is that, and is it repaired? Upload a system's answers
to the test split to get both official leaderboards, and every case with its steps to see where the system goes wrong.</p>
<p class="muted small">Files stay on this page: nothing is stored, published or ranked.</p>"""
_FORMAT = f"""<p>CSV in UTF-8, one row for each scenario, in any order. <code>{CONFIDENCE}</code> is optional: how likely it is that all five targets
are right. For no drift the step is blank and the residual <code>none</code>.</p>
<pre class="small"><code>{",".join((*PREDICTION_COLUMNS, CONFIDENCE))}
RDOD2-025,visible_failure,3,premature_constraint_closure,unrepaired,1,0.91
RDOD2-026,no_drift,,none,not_applicable,none,0.80</code></pre>"""


class Visit(NamedTuple):
    """What a visitor's files came to.

    Attributes:
        notice: HTML of what is asked for or of the findings, in place of scores; '' where there are scores.
        report: the report; None where the files were refused.
        scenarios: the cases' model inputs by id.
        folder: holds the files for download, and goes when the visit does.
        download: the report or the findings as a file; None where there is neither.
    """

    notice: str
    report: dict[str, Any] | None = None
    scenarios: dict[str, Scenario] | None = None
    folder: "tempfile.TemporaryDirectory[str] | None" = None
    download: Path | None = None


def _saved(name: str, content: Any) -> tuple["tempfile.TemporaryDirectory[str]", Path]:
    folder = tempfile.TemporaryDirectory(prefix="rdod-")
    path = Path(folder.name) / name
    path.write_text(json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False) + "\n", encoding="utf-8")
    return folder, path


def _refused(problems: Sequence[Problem]) -> Visit:
    folder, path = _saved("findings.json", {"valid": False, "findings": [{**problem._asdict(), "message": problem.message} for problem in problems]})
    more = f'<p class="muted">The first {FINDINGS_SHOWN} are shown; the download holds all.</p>' if len(problems) > FINDINGS_SHOWN else ""
    return Visit(page.findings(problems, FINDINGS_SHOWN) + more, folder=folder, download=path)


def visit(predictions: Path | None, gold: Path | None) -> Visit:
    """Score a visitor's prediction file on a labelled file; a bad file gives its findings, a missing one a request for it."""
    if predictions is None or gold is None:
        return Visit(f'<p class="note-box">Please choose a {"prediction" if predictions is None else "labelled"} file first.</p>')
    cases, problems = read_cases(gold, gold.name)
    if problems:
        return _refused(problems)
    states = {case.gold.scenario_id: case.gold for case in cases}
    submission = read_predictions(predictions, states, predictions.name)
    if submission.problems:
        return _refused(submission.problems)
    resampling = Resampling() if len(cases) <= MOST_CASES_FOR_INTERVALS else None
    report = score(list(states.values()), submission.predictions, gold_file=gold.name, gold_sha256=text_sha256(gold.read_bytes()), resampling=resampling)
    folder, path = _saved("score_report.json", report)
    return Visit("", report, {case.scenario.scenario_id: case.scenario for case in cases}, folder, path)


def visit_hidden(predictions: Path | None, hidden: HiddenGold) -> Visit:
    """Score a visitor's prediction file on hidden gold."""
    if predictions is None:
        return Visit('<p class="note-box">Please choose a prediction file first.</p>')
    result = hidden.score(predictions, predictions.name, resampling=Resampling())
    if result.report is None:
        return _refused(result.problems)
    folder, path = _saved("score_report.json", result.report)
    return Visit("", result.report, {}, folder, path)


def _html(*parts: str) -> str:
    return f'<div class="rdod">{"".join(parts)}</div>' if any(parts) else ""


def scores(report: dict[str, Any]) -> str:
    """Return what the first tab shows."""
    details = f'<div class="grid figures">{page.diagnostics(report)}{page.dots_and_whiskers(report)}</div>'
    return _html(page.identity(report), page.notices(report), page.leaderboards(report), "<h2>Secondary diagnostics</h2>", details)


def list_cases(current: Visit | None, field: str, verdict: str, number: float) -> tuple[str, Any]:
    """Return the cases that the filter leaves, one page of them, and the state of the page number."""
    if current is None or current.report is None:
        return "", gr.update(visible=False)
    rows = page.chosen(current.report["prediction_table"], field, verdict)
    pages = max(1, -(-len(rows) // PER_PAGE))
    number = min(max(1, int(number)), pages)
    part = rows[(number - 1) * PER_PAGE : number * PER_PAGE]
    count = f'<p class="muted" data-count="{len(rows)}">{len(rows)} of {len(current.report["prediction_table"])} cases</p>'
    return _html(count, page.cases(part, current.scenarios or {})), gr.update(maximum=max(2, pages), value=number, visible=pages > 1)


def build(hidden: HiddenGold | None = None) -> gr.Blocks:
    """Return the page. With hidden gold it scores on that alone, and shows scores and class supports."""
    open_ = hidden is None
    with gr.Blocks(title="Reasoning Drift Onset Detection v0.2", analytics_enabled=False, fill_width=True, delete_cache=(3600, 3600)) as demo:
        current = gr.State(None, time_to_live=3600)
        gr.HTML(_html(_INTRODUCTION), apply_default_css=False)
        with gr.Row():
            predictions = gr.File(label="Predictions (CSV)", height=140, elem_id="predictions")
            with gr.Column():
                source = gr.Radio([_PUBLIC, _OWN], value=_PUBLIC, label="Score them on", elem_id="source", visible=open_)
                own = gr.File(label="Labelled file (CSV)", height=140, visible=False, elem_id="labelled")
        with gr.Accordion("What a prediction file looks like", open=True) as help_:
            gr.HTML(_html(_FORMAT), apply_default_css=False)
        with gr.Row():
            run = gr.Button("Score", variant="primary", elem_id="run")
            download = gr.DownloadButton("Download", visible=False, elem_id="download")
        notice = gr.HTML("", apply_default_css=False, elem_id="notice")
        with gr.Tabs(visible=False, elem_id="results") as results:
            with gr.Tab("Scores"):
                overview = gr.HTML("", apply_default_css=False, elem_id="scores")
            with gr.Tab("Figures", visible=open_):
                drawings = gr.HTML("", apply_default_css=False, elem_id="figures")
            with gr.Tab("Classes", visible=open_):
                classes = gr.HTML("", apply_default_css=False, elem_id="classes")
            with gr.Tab("Cases", visible=open_):
                with gr.Row():
                    verdict = gr.Radio(list(page.VERDICTS), value="all", label="Show", elem_id="verdict")
                    field = gr.Dropdown(
                        [("all five targets", ""), *((title, name) for name, title in page.TITLES.items())],
                        value="",
                        label="right or wrong on",
                        elem_id="field",
                    )
                    number = gr.Slider(1, 2, value=1, step=1, label="Page", visible=False, elem_id="page")
                cases = gr.HTML("", apply_default_css=False, elem_id="cases")

        def show(answers: str | None, where: str, labelled: str | None) -> list[Any]:
            gold = PUBLIC_TEST if where == _PUBLIC else Path(labelled) if labelled else None
            file = Path(answers) if answers else None
            made = visit(file, gold) if hidden is None else visit_hidden(file, hidden)
            report = made.report
            label = "Download the report (JSON)" if report else "Download the findings (JSON)"
            listed, pages = list_cases(made, "", "all", 1)
            return [
                made,
                _html(made.notice),
                gr.update(value=str(made.download) if made.download else None, label=label, visible=made.download is not None),
                gr.update(visible=report is not None),
                scores(report) if report else "",
                _html(page.drawings(report)) if report and open_ else "",
                _html(page.classes(report)) if report and open_ else "",
                listed,
                pages,
                "all",
                "",
                gr.update(open=report is None and not made.download),
            ]

        source.change(lambda where: gr.update(visible=where == _OWN), source, own, show_progress="hidden")
        run.click(show, [predictions, source, own], [current, notice, download, results, overview, drawings, classes, cases, number, verdict, field, help_])
        for control in (verdict, field):
            control.input(lambda *choice: list_cases(choice[0], choice[1], choice[2], 1), [current, field, verdict], [cases, number], show_progress="hidden")
        number.input(list_cases, [current, field, verdict, number], [cases, number], show_progress="hidden", trigger_mode="always_last")
    demo.queue(default_concurrency_limit=4)
    return demo


def main() -> None:
    """Serve the page; the library's GRADIO_SERVER_NAME and GRADIO_SERVER_PORT say where."""
    theme = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="slate",
        font=["system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif"],
        font_mono=["ui-monospace", "SF Mono", "Menlo", "Consolas", "monospace"],
    )
    repository = os.environ.get(HIDDEN_REPOSITORY)
    hidden = HiddenGold.from_hub(repository, os.environ.get(HIDDEN_FILE, "test.csv"), os.environ.get(TOKEN, "")) if repository else None
    build(hidden).launch(theme=theme, css=page.style(dark=".dark") + _LAYOUT, max_file_size="100mb", ssr_mode=False)


if __name__ == "__main__":
    main()

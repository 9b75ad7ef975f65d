"""The page of a run: its content, and how a browser shows it.

More than 20 s: each page is drawn by matplotlib, with up to ten pictures.
"""

import base64
import html
import json
import re
import struct
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from support.browser import require_readable, with_browser

from mpilbm import Simulation
from mpilbm.case.case import parse_case
from mpilbm.cli import cli
from mpilbm.core import printable
from mpilbm.view.report.run_page import content
from mpilbm.view.results import open_run

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

CASE = {
    "title": "<script>alert(1)</script> & co",
    "lattice": {"name": "D2Q9"},
    "domain": {"size": [24, 12], "periodic": [True, True]},
    "fluid": {"viscosity": 0.1},
    "run": {"steps": 40},
    "initial": {"u": [0.05, 0]},
    "backend": {"name": "cpu"},
    "body": [
        {
            "label": "rod",
            "shape": {"name": "cylinder", "centre": [8, 6], "radius": 2},
            "boundary": {"name": "bounce_back"},
        }
    ],
    "output": [
        {"name": "body_forces", "every": 5, "velocity": [0.05, 0]},
        {"name": "snapshot", "every": 20},
        {"name": "monitor", "every": 10},
        {"name": "checkpoint", "every": 20},
    ],
}


PICTURES = 4 + 6  # those of the snapshot and of the forces, and the panels of the monitor


class Elements(HTMLParser):
    """All elements with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


def run(folder, **more):
    with Simulation(parse_case(CASE | more, "rod.toml"), directory=folder) as sim:
        sim.run()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "rod.out"
    run(folder)
    (folder / "notes.txt").write_text("mine")
    result = CliRunner().invoke(cli, ["report", str(folder)])
    assert result.exit_code == 0, result.output
    return folder / "report.html"


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run without pictures: to draw them takes most of the time of a page."""
    folder = tmp_path_factory.mktemp("ended") / "rod.out"
    run(folder, output=[each for each in CASE["output"] if each["name"] == "checkpoint"])
    return folder


def test_the_page_needs_nothing_else_and_says_what_was_run(page):
    text = page.read_text()
    elements = Elements(text)
    assert elements.of("html")[0]["lang"] == "en"
    assert not elements.of("script")
    assert not elements.of("link")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in text
    images = elements.of("img")
    assert len(images) == PICTURES
    assert all(image["src"].startswith("data:image/png;base64,") for image in images)
    assert all(image["alt"] for image in images)
    assert not re.search(r"(src|href)=\"https?:", text)
    for words in (
        "24 x 12",
        "D2Q9",
        "Mach",
        "monitor.csv",
        "snapshot_&lt;step&gt;.vtkhdf",
        "--restart auto --set run.steps=80",
        "rod: c_d +x: mean",
        ">done<",
    ):
        assert words in text, words
    assert all(attrs.get("scope") in ("row", "col") for attrs in elements.of("th"))


def test_runs_without_snapshots_summary_or_end_have_a_page(tmp_path):
    outputs = [each for each in CASE["output"] if each["name"] == "monitor"]
    run(tmp_path / "bare", output=[])
    run(tmp_path / "killed", output=outputs)
    summary = tmp_path / "killed" / "summary.json"
    started = {"status": "running", "steps": 0, "last_step": 60000, "glups": 0.0}
    summary.write_text(json.dumps(json.loads(summary.read_text()) | started))
    run(tmp_path / "lost", output=outputs)
    (tmp_path / "lost" / "summary.json").unlink()
    for name, words in (
        ("bare", "No pictures"),
        ("killed", 'poor">killed at step 40 of 60,000<'),
        ("killed", "<td>40 of 60,000</td>"),
        ("lost", "no summary"),
    ):
        result = CliRunner().invoke(cli, ["report", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        text = (tmp_path / name / "report.html").read_text()
        assert words in text
        assert ("GLUPS" in text) == (name == "bare")  # a killed run has not measured its speed


@pytest.mark.parametrize(
    ("changed", "command"),
    [
        ({"status": "interrupted", "steps": 20}, "--restart auto</pre>"),
        ({"status": "done"}, "--restart auto --set run.steps=80</pre>"),
        ({"status": "unstable", "steps": 20}, "The flow became unstable"),
        ({"steps": None}, "--restart auto</pre>"),
        ({"steps": "many", "last_step": "x", "ranks": [], "findings": 3}, "mpirun -n 1 mpilbm"),
    ],
)
def test_the_command_ends_where_the_case_ends_and_damage_is_no_error(ended, changed, command):
    summary = ended / "summary.json"
    before = summary.read_text()
    try:
        summary.write_text(json.dumps(json.loads(before) | changed))
        result = CliRunner().invoke(cli, ["report", str(ended)])
        assert result.exit_code == 0, result.output
        assert command in (ended / "report.html").read_text()
    finally:
        summary.write_text(before)


def test_the_command_repeats_the_settings_of_the_run(tmp_path):
    """The folder with a space and the keys of --set are arguments of the command."""
    case, folder = tmp_path / "flow.toml", tmp_path / "my flow"
    tables = {key: value for key, value in CASE.items() if key != "title"}
    case.write_text(printable.dumps(tables))
    settings = ["run.steps=20", "initial.u=[0.02, 0]"]
    chosen = [word for text in settings for word in ("--set", text)]
    for command in (["run", str(case), *chosen, "--output", str(folder)], ["report", str(folder)]):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
    text = html.unescape((folder / "report.html").read_text())
    wanted = (
        f"mpilbm run {case} --set run.steps=20 --set 'initial.u=[0.02, 0]' --output "
        f"'{folder}' --restart auto --set run.steps=40"
    )
    assert wanted in text


def test_a_channel_has_y_plus_on_the_page_and_narrow_pictures(tmp_path):
    """Text of 9 points in pictures of at most 4.8 inches is readable on 400 pixels."""
    changed = {
        "body": [],
        "domain": {"size": [24, 12], "periodic": [True, False]},
        "force": {"name": "guo", "value": [1e-5, 0]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "output": [*CASE["output"][1:3], {"name": "statistics", "every": 10, "average": ["x"]}],
    }
    run(tmp_path / "channel", **changed)
    result = CliRunner().invoke(cli, ["report", str(tmp_path / "channel")])
    assert result.exit_code == 0, result.output
    text = html.unescape((tmp_path / "channel" / "report.html").read_text())
    assert "y+ of the first cell" in text
    assert "statistics y" in text
    for image in Elements(text).of("img"):
        content = base64.b64decode(image["src"].partition(",")[2])
        assert struct.unpack(">I", content[16:20])[0] <= 4.8 * 150 + 1


def test_a_complete_run_was_stable_whatever_was_predicted(tmp_path):
    outputs = [each for each in CASE["output"] if each["name"] == "monitor"]
    folder = tmp_path / "fast"
    run(folder, output=outputs, fluid={"viscosity": 1e-4}, run={"steps": 10})
    summary = folder / "summary.json"
    for status, known in (("done", True), ("unstable", False)):
        summary.write_text(json.dumps(json.loads(summary.read_text()) | {"status": status}))
        shown = content(open_run(folder))
        fluid = dict(shown["tables"])["Fluid"]
        (verdict,) = [verdict for what, _, verdict in fluid if what == "grid Reynolds"]
        assert (verdict == "stable until its last step") == known
        assert verdict.startswith("likely unstable: ") != known
        severities = {
            severity for severity, _, message in shown["findings"] if "likely unstable: " in message
        }
        assert severities == {"note" if known else "serious"}
        (speed,) = [verdict for what, _, verdict in fluid if what == "speed"]
        assert speed == "cells per step, the largest in monitor.csv"


def test_speeds_that_are_not_finite_are_left_out(tmp_path):
    run(tmp_path / "nan", output=[each for each in CASE["output"] if each["name"] == "monitor"])
    monitor = tmp_path / "nan" / "monitor.csv"
    rows = monitor.read_text().splitlines()
    columns = rows[0].split(",")
    last = rows[-1].split(",")
    last[columns.index("max_speed")] = "nan"
    monitor.write_text("\n".join([*rows[:-1], ",".join(last)]) + "\n")
    result = CliRunner().invoke(cli, ["report", str(tmp_path / "nan")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "nan" / "report.html").read_text()
    assert ">nan" not in text.partition("Results")[0]


def test_folders_without_results_are_refused(tmp_path):
    result = CliRunner().invoke(cli, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert CliRunner().invoke(cli, ["report", str(tmp_path / "none")]).exit_code == 2


# ------------------------------------------------------------------------------------- a browser


@with_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1400])
def test_a_browser_shows_the_page(page, tmp_path, width, dark):
    require_readable(page, tmp_path, width, dark, images=PICTURES)

"""Pictures of validations: named axes with units, cited references, drawn from stored results."""

import json
import re
from importlib import import_module

import pytest
from click.testing import CliRunner
from support import ROOT

pytest.importorskip("matplotlib")

MEASURED = ROOT / "tools/measured"
STORED = {
    "cylinder": "h200_cylinder_2026-11-21.json",
    "kida": "h200_kida_700_2026-11-22.json",
    "channel": "h200_channel_2026-11-21.json",
    "cavity3d": "h200_cavity3d_2026-11-21.json",
    "cavity_precisions": "h200_cavity_precisions_2026-11-22.json",
    "taylor_green3d": "h200_taylor_green3d_2026-11-21.json",
    "sphere_in_pipe": "h200_sphere_in_pipe_unsteady_2026-11-22.json",
    "capillary_wave": "epyc_capillary_wave_2026-11-22.json",
    "ahmed": "h200_ahmed_2026-11-28.json",
}
WITHOUT_REFERENCE = ("cavity_precisions",)
UNIT = re.compile(r"\(1\)|\((1/)?(cells|steps|rho_0|cells/step)\)")


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.mark.parametrize("name", STORED)
def test_every_panel_has_axes_with_units_and_a_cited_reference(name):
    from matplotlib.figure import Figure
    from validation_plots import _panel, panels_of, stored

    validation = import_module(f"validations.{name}").VALIDATION
    found = panels_of(validation, stored([MEASURED / STORED[name]]))
    assert found
    for panel, curves in found.items():
        axis = Figure().subplots()
        _panel(validation, axis, panel, curves)
        assert UNIT.search(axis.get_xlabel()), axis.get_xlabel()
        assert UNIT.search(axis.get_ylabel()), axis.get_ylabel()
        labels = [text.get_text() for text in axis.get_legend().get_texts()]
        cited = [label for label in labels if re.search(r"(19|20)[0-9]{2}(,|:|$|\))", label)]
        assert cited or name in WITHOUT_REFERENCE, labels
        assert "published" not in labels


@pytest.mark.parametrize("path", sorted((ROOT / "tools/validations").glob("[a-z]*.py")))
def test_published_curves_have_axes(path):
    validation = import_module(f"validations.{path.stem}").VALIDATION
    for panel in validation.reference():
        assert all(map(UNIT.search, validation.axes_of(panel)))
        assert validation.source(panel) != "published"


def load_tool():
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = SourceFileLoader("validate_tool", str(ROOT / "tools/validate"))
    module = module_from_spec(spec_from_loader("validate_tool", loader))
    loader.exec_module(module)
    return module


def test_a_picture_is_drawn_again_from_stored_results(tmp_path):
    file = MEASURED / STORED["cylinder"]
    command = ["cylinder", "--draw", str(file), "--output", str(tmp_path)]
    done = CliRunner().invoke(load_tool().main, command)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "cylinder.png").stat().st_size > 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["cylinder.png"]


@pytest.mark.parametrize("content", ["[]", '{"rows": [3]}', "no JSON", json.dumps({"a": 1})])
def test_other_files_are_refused(tmp_path, content):
    from mpilbm.core.errors import CommandError

    path = tmp_path / "other.json"
    path.write_text(content)
    command = ["cylinder", "--draw", str(path), "--output", str(tmp_path)]
    done = CliRunner().invoke(load_tool().main, command)
    assert isinstance(done.exception, CommandError), done.exception
    assert "no results of tools/validate" in str(done.exception)

"""Pictures of isosurfaces, drawn by PyVista in a child process."""

import subprocess

import numpy as np
import pytest
from support import image_cases

from mpilbm import CaseError, Simulation
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CommandError
from mpilbm.outputs.drawing import isosurface

Image = pytest.importorskip("PIL.Image")

SURFACE = {
    "name": "picture",
    "label": "iso",
    "every": 10,
    "surface": {"field": "u", "value": 0.005},
}
AXES = ("x (m)", "y (m)", "z (m)")


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.fixture
def drawn(monkeypatch):
    """The arguments of each picture; PyVista is not used."""
    found = []

    def png(values, colours, solid, **texts):
        found.append((values, colours, solid, texts))
        if len(found) in (2, 4):
            raise isosurface.DrawingFailed("no graphics")
        return b"picture"

    monkeypatch.setattr(isosurface, "png", png)
    monkeypatch.setattr(isosurface, "require_drawing", lambda use: None)
    return found


def test_values_of_the_surface_are_those_of_the_flow(tmp_path, drawn):
    chosen = SURFACE | {"field": "rho", "surface": {"field": "u", "value": 0.005, "stride": 3}}
    fields = image_cases.run(tmp_path, given=image_cases.tables(outputs=[chosen]))
    values, colours, solid, texts = drawn[-1]
    every = (slice(None, None, 3),) * 3
    speed = np.linalg.norm(fields["u"].astype(float), axis=-1)[every]
    assert values == pytest.approx(speed, rel=1e-6, abs=1e-12)
    assert colours[~solid] == pytest.approx(fields["rho"][every][~solid], rel=1e-6)
    assert solid.shape == speed.shape
    assert 0 < solid.sum() < solid.size
    assert (texts["value"], texts["spacing"]) == (0.005, 3)
    assert texts["label"] == "rho (rho_0)"
    assert texts["axes"] == ("x (cells)", "y (cells)", "z (cells)")


def test_a_failed_drawing_is_one_warning(tmp_path, drawn, capsys):
    """The second and the fourth of four pictures fail; the run ends as usual."""
    case = parse_case(image_cases.tables(outputs=[SURFACE | {"every": 5}]), "surface.toml")
    with Simulation(case, directory=tmp_path, verbose=True) as sim:
        sim.run()
    names = sorted(path.name for path in tmp_path.glob("picture_iso_*.png"))
    assert names == ["picture_iso_000000005.png", "picture_iso_000000015.png"]
    output = "".join(capsys.readouterr())
    assert output.count("could not be drawn: no graphics") == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"surface": {"field": "speed", "value": 1}}, r"surface.field: 'speed' is not a field"),
        ({"surface": {"field": "u"}}, r"surface.value"),
        ({"surface": {"field": "u", "value": 1, "stride": 0}}, r"surface.stride"),
        ({"surface": {"field": "u", "value": 1, "stride": 12}}, r"found 12; allowed: at most 11"),
        ({"normal": "x", "position": 3}, r"normal and position: the picture shows a surface"),
    ],
)
def test_wrong_surfaces_are_refused(changed, message):
    with pytest.raises(CaseError, match=message):
        parse_case(image_cases.tables(outputs=[SURFACE | changed]), "surface.toml")


def test_boxes_of_two_dimensions_and_of_many_cells_are_refused():
    flat = {"lattice": {"name": "D2Q9"}, "domain": {"size": [8, 6], "periodic": [True, True]},
            "boundary": [], "body": [], "initial": {"u": [0, 0]}}  # fmt: skip
    with pytest.raises(CaseError, match="in two dimensions the picture shows the box"):
        parse_case(image_cases.tables(outputs=[SURFACE]) | flat, "flat.toml")
    domain = {"size": [600, 300, 300], "periodic": [True, False, True]}
    with pytest.raises(CaseError, match=r"choose surface.stride = 2 or more"):
        parse_case(image_cases.tables(outputs=[SURFACE], domain=domain), "large.toml")


def test_a_missing_package_is_refused(monkeypatch):
    from mpilbm.outputs import picture

    monkeypatch.setattr(picture, "find_spec", lambda name: None if name == "pyvista" else True)
    with pytest.raises(CaseError, match=r"surface: requires PyVista.*mpilbm\[volume\]"):
        parse_case(image_cases.tables(outputs=[SURFACE]), "surface.toml")


def test_a_machine_that_cannot_draw_is_refused_before_the_first_step(tmp_path, monkeypatch):
    def crash(command, **options):
        return subprocess.CompletedProcess(command, -11, "", "bad X server connection\n")

    pytest.importorskip("pyvista")
    monkeypatch.setattr(isosurface.machine, "run", crash)
    with pytest.raises(CommandError, match=r"was ended by signal 11 \(bad X server"):
        image_cases.run(tmp_path, given=image_cases.tables(outputs=[SURFACE]))
    assert not list(tmp_path.glob("picture*"))


def test_a_sphere_is_drawn_in_its_colours(tmp_path):
    """The picture of a sphere has coloured pixels, which a missing surface has not."""
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    try:
        isosurface.require_drawing("test")
    except CommandError as error:
        pytest.skip(f"no drawing without a display: {error}")
    at = np.arange(24) - 11.5
    r = np.sqrt(at[:, None, None] ** 2 + at[:, None] ** 2 + at**2)
    solid = np.zeros(r.shape, bool)
    found = {}
    for value in (8.0, 100.0):
        content = isosurface.png(r, r, solid, value=value, spacing=0.1, title="Ball", axes=AXES,
                                 label="r (m)", limits=(0, 20))  # fmt: skip
        path = tmp_path / f"{value}.png"
        path.write_bytes(content)
        colours = pixels(path)
        middle = colours[250:550, 350:650]
        found[value] = ((middle.max(axis=-1) - middle.min(axis=-1)) > 40).sum()
    assert found[8.0] > 10_000
    assert found[100.0] < 100

"""The chapters of the manual state what the package holds, and their examples run.

More than 20 s: commands run the examples in processes of their own, one case with all outputs.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpilbm.core.registry import names
from mpilbm.view.manual import LAYERS

ROOT = Path(__file__).parents[3]
MANUAL = ROOT / "mpilbm/view/manual"
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CHOICES = (
    "collisions",
    "lattices",
    "equilibria",
    "closures",
    "forcing",
    "couplings",
    "layouts",
    "backends",
    "halo",
    "boundaries",
)
RUN = """
output = [
    {name = "snapshot", every = 400},
    {name = "monitor", every = 20},
    {name = "body_forces", every = 20, velocity = [0.03, 0, 0], area = 28.27, split = true},
    {name = "statistics", every = 10, begin = 100, average = ["x", "z"]},
    {name = "higher_moments", every = 100, average = ["x", "z"], label = "xz"},
    {name = "checkpoint", every = 400},
    {name = "probe", label = "wake", every = 10, points = [[30, 8.5, 8.5], [40, 8.5, 8.5]]},
    {name = "plane", label = "wake", normal = "z", position = 8.5, every = 100},
    {name = "line", label = "axis", from = [20, 8.5, 8.5], to = [48, 8.5, 8.5], every = 100},
    {name = "box", label = "near", from = [4, 2, 2], to = [28, 14, 14], stride = 2, every = 200},
]
[lattice]
name = "D3Q19"
[domain]
size = [48, 16, 16]
periodic = [false, false, true]
[units]
cell = 0.001
step = 1e-4
density = 998
[fluid]
viscosity = 0.02
[collision]
name = "trt"
[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]
[[boundary]]
name = "regularized"
where = ["x-"]
velocity = [0.03, 0, 0]
[[boundary]]
name = "copy"
where = ["x+"]
rho = 1
[[body]]
label = "ball"
shape = {name = "sphere", centre = [14, 8, 8], radius = 3}
boundary = {name = "interpolated"}
[run]
steps = 400
"""
CHANNEL = """
[lattice]
name = "D2Q9"
[domain]
size = [24, 12]
[fluid]
viscosity = 0.1
[collision]
name = "regularized_bulk"
omega_bulk = 0.8
[layout]
name = "push"
[[boundary]]
name = "velocity_inlet"
where = ["x-"]
velocity = ["0.2*y*(ny - y)/ny**2", 0]
[[boundary]]
name = "copy"
where = ["x+"]
rho = 1
[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]
[run]
steps = 1000
[[output]]
name = "plane_means"
every = 1000
"""


def chapter(name: str) -> str:
    return (MANUAL / f"{name}.md").read_text(encoding="utf-8")


def examples(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", chapter(name), re.S)


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Each text with names of its own, in one process: to start one takes longer than to run them.
EACH = """
import contextlib, io, sys
for text in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, "<example>", "exec"), {"__name__": "__main__"})
    assert printed.getvalue(), f"prints nothing: {text}"
print("all print")
"""


def test_each_boundary_has_a_heading():
    headings = re.findall(r"^## (\w+)$", chapter("boundaries"), re.M)
    assert set(names("boundaries")) == {each for each in headings if each.islower()}


@pytest.mark.parametrize("kind", CHOICES)
def test_each_name_is_among_the_choices(kind):
    missing = [name for name in names(kind) if f"`{name}`" not in chapter("choosing")]
    assert not missing


def test_each_output_has_a_heading():
    headings = re.findall(r"^## (\w+)$", chapter("outputs"), re.M)
    assert set(names("outputs")) <= set(headings)


def test_the_stability_map_is_that_of_check():
    limits = json.loads((ROOT / "mpilbm/model/stability.json").read_text())
    machs = {"0.052": 0, "0.10": 1, "0.17": 2, "0.30": 3}
    closure, seen = "", 0
    for line in chapter("choosing").split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("With the closure"):
            closure = "+smagorinsky"
        if line.startswith("| Mach 0."):
            column, collisions = machs[cells[0].removeprefix("Mach ")], cells[1:]
        elif cells[0] in limits and " / " in line and not line.startswith("| D2Q9 /"):
            found = limits[cells[0]]["collisions"]
            for name, cell in zip(collisions, cells[1:], strict=True):
                flows = found.get(name.strip("`") + closure, {})
                limit = [flows.get(flow) for flow in ("vortex", "cavity", "body")]
                largest = [str(each[column][0]) if each else "–" for each in limit]
                assert cell == (" / ".join(largest) if flows else ""), (line, name)
                seen += bool(cell)
    assert seen > 100


def test_the_collision_shown_is_the_file():
    shown = re.search(r"```py\n(@register.*?)```", chapter("extending"), re.S)[1].splitlines()
    lines = (ROOT / "mpilbm/physics/collisions/trt.py").read_text().splitlines()
    assert not [line for line in shown if line not in lines]


def test_files_named_exist():
    for path in sorted(MANUAL.glob("*.md")):
        for name in re.findall(r"`((?:tools|jobs|cases|mpilbm)/[\w./-]+)`", path.read_text()):
            assert (ROOT / name).exists(), f"{path.name}: {name}"


def test_the_journeys_name_files_of_the_package():
    package = ROOT / "mpilbm"
    journeys = chapter("how-it-works").partition("## Six journeys")[2]
    found = re.findall(r"`((?:\w+/)+\w+\.(?:py|h)|cli\.py)`", journeys)
    assert len(found) > 20
    for name in found:
        assert (package / name).exists() or (ROOT / name).exists(), name


def test_the_picture_shows_all_layers():
    picture = chapter("how-it-works").partition("## Layers")[2].partition("```\n\n|")[0]
    for folders, _ in LAYERS:
        assert not set(folders.split()) - set(re.findall(r"\w+", picture))


def test_the_outputs_are_read(tmp_path):
    (tmp_path / "run.toml").write_text(RUN)
    run("-m", "mpilbm", "run", "run.toml", cwd=tmp_path)
    snippets = examples("outputs")
    assert len(snippets) > 8
    assert run("-W", "error", "-c", EACH, *snippets, cwd=tmp_path).endswith("all print\n")


def test_the_conversions_run(tmp_path):
    for text in examples("units"):
        first, second, third = map(float, run("-c", text, cwd=tmp_path).split())
        assert (first, third) == pytest.approx((0.1, 1))
        assert second == pytest.approx(1330.7, abs=0.05)


def test_the_case_of_arrays_and_functions():
    """Its formulas are those of the functions; all its values are allowed."""
    section = chapter("python").partition("## Arrays and functions in a case")[2]
    found: dict = {}
    exec(re.search(r"```python\n(.*?)```", section, re.S)[1], found)
    assert "exp" in found["case"].boundaries[0].velocity[0]
    assert found["case"].bodies[0].shape.inside(20.0, 16.0)


@pytest.fixture(scope="module", params=["chapter", "2026-11-25"])
def plugins(request, tmp_path_factory) -> dict[str, Path]:
    """The examples of the chapter as files, by the name that each registers.

    With the parameter "2026-11-25" they are those of the chapter on that day: plug-ins that users
    have written must keep running.
    """
    if request.param != "chapter":
        return {path.stem: path for path in Path(__file__).parent.glob("earlier_plugins/*.py")}
    folder, found = tmp_path_factory.mktemp("plugins"), {}
    for text in examples("extending"):
        name = re.search(r'@register\("\w+", "(\w+)"\)', text)[1]
        found[name] = folder / f"{name}.py"
        found[name].write_text(text)
    return found


def options(plugins, *wanted: str) -> list[str]:
    return [word for name in wanted for word in ("--plugin", str(plugins[name]))]


def test_plugins_for_a_collision_a_boundary_a_layout_and_an_output(plugins, tmp_path):
    (tmp_path / "case.toml").write_text(CHANNEL)
    used = options(plugins, "regularized_bulk", "velocity_inlet", "push", "plane_means")
    run("-m", "mpilbm", "run", "case.toml", *used, cwd=tmp_path)
    pushed = (tmp_path / "case.out/means_000001000.csv").read_text()
    run(
        "-m",
        "mpilbm",
        "run",
        "case.toml",
        *used,
        "--overwrite",
        "--set",
        "layout.name='ab'",
        cwd=tmp_path,
    )
    assert (tmp_path / "case.out/means_000001000.csv").read_text() == pushed
    u = [float(line.split(",")[0]) for line in pushed.splitlines()]
    exact = [0.2 * y * (12 - y) / 144 for y in (k + 0.5 for k in range(12))]
    assert u == pytest.approx(exact, abs=0.05 * max(exact))


def test_the_collision_is_regularized_with_one_rate(plugins, tmp_path):
    text = (
        "from mpilbm.core import registry\n"
        f"registry.load_plugin({str(plugins['regularized_bulk'])!r})\n"
        "from fractions import Fraction\n"
        "from mpilbm.core.registry import make\n"
        "lattice, omega = make('lattices', 'D3Q19'), Fraction(4, 3)\n"
        "d = [Fraction((7 * i) % 11 - 5, 9) for i in range(lattice.Q)]\n"
        "one = make('collisions', 'regularized').relax(lattice, d, omega=omega)\n"
        "two = make('collisions', 'regularized_bulk')\n"
        "assert one == two.relax(lattice, d, omega=omega, omega_bulk=omega)\n"
        "assert one != two.relax(lattice, d, omega=omega, omega_bulk=1)\n"
    )
    run("-c", text, cwd=tmp_path)


def test_plugin_for_a_shape(plugins, tmp_path):
    case = """
        lattice = {name = "D2Q9"}
        domain = {size = [40, 24], periodic = [true, true]}
        fluid = {viscosity = 0.05}
        run = {steps = 1}
        [[body]]
        label = "egg"
        shape = {name = "ellipsoid", centre = [20, 12], radii = [8, 5]}
        boundary = {name = "interpolated"}
    """
    (tmp_path / "egg.toml").write_text(case)
    shown = run("-m", "mpilbm", "check", "egg.toml", *options(plugins, "ellipsoid"), cwd=tmp_path)
    cells = int(re.search(r"body egg\s+(\d+) cells", shown)[1])
    assert cells == pytest.approx(3.1416 * 40, rel=0.05)


def test_plugin_for_a_transport(plugins, tmp_path):
    """A periodic box of one rank, which is its own neighbour on both sides."""
    text = (
        "import sys\n"
        f"sys.path.insert(0, {str(plugins['plain'].parent)!r})\n"
        "import plain\n"
        "import numpy as np\n"
        "from mpilbm.halo import Plan, Transfer\n"
        "from mpilbm.parallel.slabs import Slab\n"
        "from mpi4py import MPI\n"
        "slab = Slab((4, 1, 1), 0, 1, 0, 4, True)\n"
        "array = np.arange(4.0)\n"
        "plan = Plan((Transfer(1, 0, 1, 1), Transfer(-1, 0, 2, 1)),\n"
        "            (Transfer(-1, 0, 0, 1), Transfer(1, 0, 3, 1)))\n"
        "with plain.Plain().open(slab, MPI.COMM_WORLD, None) as exchanger:\n"
        "    exchange = exchanger.prepare(plan, [array])\n"
        "    exchange.start()\n"
        "    exchange.finish()\n"
        "assert list(array) == [1, 1, 2, 2], array\n"
    )
    run("-c", text, cwd=tmp_path)

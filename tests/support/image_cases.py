"""Cases with all outputs of parts of the box, and what their files must contain."""

import json

import h5py
import numpy as np

from mpilbm import Simulation, open_run
from mpilbm.case.case import parse_case

SIZE = 20, 12, 14
OUTPUTS = [
    {"name": "snapshot", "every": 10, "fields": ["rho", "u", "vorticity", "q_criterion"]},
    {"name": "snapshot", "label": "half", "every": 10, "stride": 2, "type": "float32"},
    {"name": "snapshot", "label": "gz", "every": 10, "compression": "gzip", "type": "float16"},
    {"name": "snapshot", "label": "gzs", "every": 10, "compression": "gzip", "stride": 3},
    {"name": "snapshot", "label": "last", "last_only": True},
    {"name": "plane", "every": 10, "normal": "z", "position": 5, "label": "z"},
    {"name": "plane", "every": 10, "normal": "x", "position": 6.5, "label": "x",
     "fields": ["rho", "u", "vorticity"]},
    {"name": "plane", "every": 10, "normal": "y", "position": 4.5, "begin": 0, "stride": 2},
    {"name": "line", "every": 5, "from": [0, 4, 5], "to": [20, 4, 5]},
    {"name": "line", "every": 5, "from": [10, 4, 0], "to": [10, 4, 13], "label": "up"},
    {"name": "box", "every": 10, "from": [2, 3, 4], "to": [17, 9.5, 13], "stride": [2, 3, 3],
     "end": 10, "label": "b"},
]  # fmt: skip


def tables(lattice="D3Q19", layout="ab", outputs=OUTPUTS, **more):
    ball = {"name": "box", "lower": [3, 3, 3], "upper": [8, 7, 9]}
    collision = {"moments": "regularized"}.get(layout, "bgk")
    return {
        "lattice": {"name": lattice},
        "domain": {"size": list(SIZE), "periodic": [True, False, True]},
        "fluid": {"viscosity": 0.1},
        "collision": {"name": "mrt" if lattice == "D3Q13" else collision},
        "layout": {"name": layout},
        "run": {"steps": 20},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "initial": {"u": ["0.01*sin(y)+0.003*cos(x)", 0, 0]},
        "body": [{"label": "ball", "shape": ball, "boundary": {"name": "bounce_back"}}],
        "backend": {"name": "cpu"},
        "output": list(outputs),
    } | more


def run(directory, comm=None, given=None, restart=None):
    """Run it; the fields of the last step on rank 0."""
    case = parse_case(given or tables(), "parts.toml")
    with Simulation(case, comm, directory=directory, restart=restart) as sim:
        sim.run()
        return {name: sim.field(name) for name in ("rho", "u", "vorticity")}


def check(directory, fields):
    """The files have the values of these fields at step 20."""
    found, u = open_run(directory), fields["u"]
    assert list(found.steps) == [10, 20]
    assert np.array_equal(found.field("u"), u)
    fluid = ~found.solid()
    assert 0 < fluid.sum() < fluid.size
    sums = (u * fluid[..., None]).astype(float).reshape(7, 2, 6, 2, 10, 2, 3).sum((1, 3, 5))
    count = fluid.reshape(7, 2, 6, 2, 10, 2).sum((1, 3, 5))[..., None]
    half = found.part("snapshot_half")
    assert np.allclose(half.field("u"), sums / np.maximum(count, 1), rtol=1e-6, atol=1e-9)
    assert np.array_equal(half.field("solid") != 0, count[..., 0] == 0)
    assert (half.field("rho")[count[..., 0] == 0] == 1).all()
    assert half.head.spacing == (2, 2, 2)
    assert np.array_equal(found.part("snapshot_gz").field("u"), u.astype("float16"))
    assert found.part("snapshot_gzs").field("u").shape == (4, 4, 6, 3)
    assert np.array_equal(found.part("plane_z").field("u")[0], u[5])
    across = found.part("plane_x")
    for name in ("rho", "u", "vorticity"):
        assert np.array_equal(across.field(name)[:, :, 0], fields[name][:, :, 6])
    assert across.head.origin == (6, 0, 0)
    assert across.head.spacing == (1, 1, 1)
    assert list(found.part("plane_7").steps) == [0, 10, 20]
    assert found.part("plane_7").field("u").shape == (7, 1, 10, 3)
    assert np.array_equal(found.part("line_8").field("u")[0, 0], u[5, 4])
    assert np.array_equal(found.part("line_up").field("u")[:, 0, 0], u[:13, 4, 10])
    box = found.part("box_b")
    assert list(box.steps) == [10]
    assert box.head.shape == (3, 2, 7)
    assert box.head.origin == (2, 3, 4)
    assert list(found.part("snapshot_last").steps) == [20]
    series = json.loads((directory / "plane_7.vtkhdf.series").read_text())
    assert [(each["name"], each["time"]) for each in series["files"]] == [
        (f"plane_7_{step:09d}.vtkhdf", float(step)) for step in (0, 10, 20)
    ]


def cells(directory):
    """All fields of all files."""
    found = {}
    for path in sorted(directory.glob("*.vtkhdf")):
        with h5py.File(path) as file:
            for name, data in file["VTKHDF/CellData"].items():
                found[path.name, name] = data[()]
    return found


def same(one, other):
    """Whether two folders have the same fields, bit for bit."""
    a, b = cells(one), cells(other)
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)

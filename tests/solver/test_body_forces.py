"""Forces on bodies: what the fluid loses of its momentum, they get.

More than 20 s: each boundary has kernel texts in two layouts.
"""

from itertools import product

import numpy as np
import pytest
from pydantic import ValidationError
from support.body_forces import (
    FORCE,
    LAYOUTS,
    OUTPUT,
    STILL,
    flow,
    rotor,
    rows,
    sample,
)
from support.faces import table
from support.slabs import PRECISIONS, Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make, names
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.view.results import open_run


def on_links() -> list[str]:
    """Boundaries of bodies that act on links."""
    found = {}
    for name in names("boundaries"):
        given = {key: value for key, value in table(name, D=2).items() if key != "where"}
        found[name] = make("boundaries", given).capabilities
    return [name for name, needs in found.items() if not (needs.normal or needs.in_cells)]


def momentum(cluster: Cluster) -> np.ndarray:
    columns, sums = cluster.sums()
    return sums.sum(axis=0)[[k for k, name in enumerate(columns) if name.startswith("momentum")]]


def assert_momentum_goes_to_the_bodies(tables: dict) -> None:
    """p(t + 1) - p(t) = G V - F to rounding; the same bits on any number of slabs."""
    found = []
    for slabs in (1, 2, 3):
        cluster = Cluster(tables, slabs).start()
        D, solvers = cluster.case.dimensions, cluster.solvers
        cells = sum(int(s.geometry.fluid_cells.sum()) for s in solvers)
        driving = np.array(FORCE[:D]) * cells * cluster.case.lattice.volume
        found.append([])
        for _ in range(3):
            before = momentum(cluster)
            found[-1].append(sample(cluster))
            assert np.array_equal(sample(cluster), found[-1][-1])  # looking changes nothing
            gained = momentum(cluster.run(1)) - before
            expected = driving - found[-1][-1][:, :D].sum(axis=0)
            np.testing.assert_allclose(gained, expected, rtol=0, atol=1e-13)
        assert np.abs(found[-1]).min() > 1e-6
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: "-".join(one.values()))
def test_momentum_is_kept_in_every_layout(layout):
    assert_momentum_goes_to_the_bodies(flow("D2Q9", layout=layout))


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_bodies_between_walls_have_the_same_forces_in_every_layout(lattice):
    """With walls along the axis of the slabs, where no plane wraps around."""
    D, found = 2 + (lattice != "D2Q9"), {}
    walls = {"name": "bounce_back", "where": [f"{'yz'[D - 2]}{side}" for side in "-+"]}
    periodic = [True] * (D - 1) + [False]
    for layout in ("ab", "indirect"):
        tables = flow(lattice, layout={"name": layout})
        tables |= {"domain": tables["domain"] | {"periodic": periodic}, "boundary": [walls]}
        found[layout] = [sample(Cluster(tables, slabs).start().run(3)) for slabs in (1, 3)]
    reference = found["ab"][0]
    assert np.abs(reference[:, :D]).min() > 1e-6
    assert all(np.array_equal(one, reference) for each in found.values() for one in each)


@pytest.mark.parametrize("lattice", [n for n in names("lattices") if n != "D2Q9"])
def test_momentum_is_kept_on_every_lattice(lattice):
    assert_momentum_goes_to_the_bodies(flow(lattice, layout={"name": "aa"}))


@pytest.mark.parametrize("layout", ["aa", "moments"])
@pytest.mark.parametrize("name", [name for name in on_links() if name != "bounce_back"])
def test_momentum_is_kept_by_every_boundary(name, layout):
    boundary = {key: value for key, value in table(name, D=2).items() if key != "where"}
    boundary |= {"velocity": [0.0, 0.0]} if "velocity" in boundary else {}
    try:
        tables = flow("D2Q9", boundary, layout={"name": layout}, size=[9, 9])
        parse_case(tables | {"output": []}, "test.toml")
    except (CaseError, ValidationError):
        pytest.skip("not defined there")
    assert_momentum_goes_to_the_bodies(tables)


@pytest.mark.parametrize("layout", ["aa", "moments"])
@pytest.mark.parametrize("name", ["interpolated", "central_linear"])
def test_momentum_is_kept_by_walls_that_conserve_the_mass(name, layout):
    boundary = {"name": name, "conserve_mass": True}
    assert_momentum_goes_to_the_bodies(flow("D2Q9", boundary, layout={"name": layout}))


def test_slabs_without_a_body_add_nothing():
    tables = flow("D3Q15", layout={"name": "ab"}, size=[9, 8, 18])
    one, many = (Cluster(tables, slabs).start().run(2) for slabs in (1, 6))
    links = many.each(lambda s: sum(each.cells.size for each in s.geometry.lists))
    assert links[-1] == 0 < links[0]
    assert np.array_equal(sample(one), sample(many))


def test_all_layouts_find_the_same_force():
    expected = sample(Cluster(flow("D2Q9", layout=LAYOUTS[0])).start().run(4))
    for layout in LAYOUTS[1:]:
        found = sample(Cluster(flow("D2Q9", layout=layout)).start().run(4))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("layout", "precision", "error"), [("aa", "half", 2e-2), ("moments", "single", 1e-5)]
)
def test_few_digits_change_little(layout, precision, error):
    tables = flow("D2Q9", layout={"name": layout})
    expected = sample(Cluster(tables).start().run(4))
    found = sample(Cluster(tables | {"precision": PRECISIONS[precision]}).start().run(4))
    assert 0 < np.abs(found - expected).max() < error * np.abs(expected).max()


def test_the_pressure_at_rest_is_left_out():
    """Also without offset; a body that another one covers in part is no closed surface."""
    tables = flow("D2Q9", force=STILL)
    tables["initial"] = {"u": [0, 0]}
    tables["body"].append(
        {
            "label": "half",
            "shape": {"name": "box", "lower": [5, 4], "upper": [8, 7]},
            "boundary": {"name": "bounce_back"},
        }
    )
    for offset in (True, False):
        precision = PRECISIONS["double"] | {"offset": offset}
        found = sample(Cluster(tables | {"precision": precision}).start().run(2))
        assert np.abs(found).max() < 1e-12


@pytest.mark.parametrize("layout", ["ab", "indirect"])
def test_moving_walls_count_in_their_own_frame(layout):
    """Link by link, as the paper has it: (c_opp - u) f_opp_out - (c_i - u) f_i_in."""
    cluster = Cluster(rotor(layout), 2).start().run(5)
    f, lattice, found = cluster.state()[:, :, 0], cluster.case.lattice, sample(cluster)[0]
    solid = np.concatenate([s.geometry.solid for s in cluster.solvers])[:, 0]
    expected = np.zeros(3)
    for (y, x), i in product(np.argwhere(solid == 0), range(9)):
        c, out = np.array(lattice.c[i]), f[y, lattice.opp[i], x]
        if solid[(y - c[1]) % 12, (x - c[0]) % 13]:
            at = np.array([x, y]) + 0.5 - c / 2
            u = 0.01 * np.array([6.2 - at[1], at[0] - 6.4])
            enters = out + 6 * float(lattice.w[i]) * (c @ u)
            w = float(lattice.w[i])
            F = (-c - u) * (out + w) - (c - u) * (enters + w) + 2 * w * c
            expected += [*F, at[0] * F[1] - at[1] * F[0]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("boundary", "velocity", "other"),
    [
        ("interpolated", "0.05*((x - 6.4)**2 + (y - 6.2)**2 - 3.3**2)", "bounce_back"),
        ("equilibrium", "0.05*cos(pi*x)", "interpolated"),
        ("bounce_back", "0.05*sin(2*pi*x)*sin(2*pi*y)", "interpolated"),
    ],
)
def test_the_velocity_of_a_wall_is_that_where_its_boundary_has_it(boundary, velocity, other):
    """With velocities that are zero on the disc, at the cells, and halfway between nodes."""

    def of_motion(name: str) -> float:
        """What the velocity of the wall itself adds to the force: u (f_opp_out - f_i_in)."""
        tables = rotor("ab", name) | {"force": STILL}
        tables["body"][0]["boundary"]["velocity"] = [velocity, 0.0]
        cluster = Cluster(tables).start()
        before, force = momentum(cluster), sample(cluster)[0, :2]
        return abs(momentum(cluster.run(1)) - before + force)[0]

    assert of_motion(boundary) < 1e-14 < 1e-4 < of_motion(other)


def test_a_sliding_wall_feels_the_same_in_every_frame():
    """The shear of a wall that slides along itself, with all moving along with it or not."""

    def shear(frame: float) -> float:
        plate = {"name": "box", "lower": [0, 0], "upper": [4, 3]}
        wall = {"name": "bounce_back", "velocity": [0.01 + frame, 0.0]}
        body = [{"label": "plate", "shape": plate, "boundary": wall}]
        tables = flow("D2Q9", size=[4, 13], body=body, initial={"u": [frame, 0]}, force=STILL)
        return sample(Cluster(tables | {"collision": {"name": "bgk"}}).start().run(40))[0, 0]

    assert shear(0.0) < -1e-3
    assert shear(0.1) == pytest.approx(shear(0.0), rel=1e-9)


def test_torque_between_rotating_cylinders(tmp_path):
    """As much on the outer one as on the inner one, near 4 pi mu Omega R1^2 R2^2/(R2^2 - R1^2)."""
    n, inner, outer, speed, nu = 30, 5.5, 13.0, 0.004, 0.1
    r = np.hypot(*np.meshgrid(*[np.arange(n) + 0.5 - n / 2] * 2))
    np.save(tmp_path / "outer.npy", (r > outer).astype(np.uint8))
    spin = {"name": "bounce_back", "velocity": [f"-{speed}*(y-15)", f"{speed}*(x-15)"]}
    shape = {"name": "sphere", "centre": [n / 2, n / 2], "radius": inner}
    body = [
        {"label": "inner", "shape": shape, "boundary": spin},
        {
            "label": "outer",
            "mask": str(tmp_path / "outer.npy"),
            "boundary": {"name": "bounce_back"},
        },
    ]
    tables = flow("D2Q9", size=[n, n], body=body, initial={"u": [0, 0]}, force=STILL)
    tables |= {"fluid": {"viscosity": nu}, "run": {"steps": 3000}, "backend": {"name": "cpu"}}
    tables["output"] = [OUTPUT | {"every": 3000}]
    run(parse_case(tables, "test.toml"), Serial(), tmp_path / "out")
    torque = [
        rows(tmp_path / f"out/forces_{label}.csv")[-1]["torque_z"] for label in ("inner", "outer")
    ]
    exact = 4 * np.pi * nu * speed * inner**2 * outer**2 / (outer**2 - inner**2)
    assert torque[1] == pytest.approx(-torque[0], rel=1e-3)
    assert torque[1] == pytest.approx(exact, rel=0.08)  # staircases


REFERENCE = {"velocity": [0.0, -0.02], "length": 3.0}


def test_files_of_a_run_in_two_parts(tmp_path):
    """Rows go on behind the restart, in another layout too; coefficients are of their force."""
    tables = flow("D2Q9", run={"steps": 6}, backend={"name": "cpu"})
    tables["output"] = [OUTPUT | REFERENCE | {"body": ["ball"], "every": 2}]
    tables["output"] += [OUTPUT | {"body": ["block"], "centre": [0, 0]}]
    tables["output"] += [{"name": "checkpoint", "every": 4}]
    whole = parse_case(tables, "test.toml")
    run(whole, Serial(), tmp_path / "whole")
    half = parse_case(tables | {"run": {"steps": 4}}, "test.toml")
    run(half, Serial(), tmp_path / "parts")
    run(whole, Serial(), tmp_path / "parts", restart="auto")
    for label, steps in (("ball", [0, 2, 4, 6]), ("block", range(7))):
        name = f"forces_{label}.csv"
        assert (tmp_path / "parts" / name).read_text() == (tmp_path / "whole" / name).read_text()
        found = rows(tmp_path / "whole" / name)
        assert [row["step"] for row in found] == list(steps)
        assert [row["time"] for row in found] == [0.5, *list(steps)[1:]]
    cluster = Cluster(tables, 2).start().run(5)
    before, after = sample(cluster), sample(cluster.run(1))
    (block, ball), last = (before + after) / 2, rows(tmp_path / "whole/forces_ball.csv")[-1]
    assert [last[f"force_{a}"] for a in "xy"] == ball[:2].tolist()
    assert last["torque_z"] == pytest.approx(ball[2] - 5 * ball[1] + 4 * ball[0], abs=1e-15)
    scale = 2 / (0.02**2 * 3)
    assert last["c_d"] == pytest.approx(-scale * ball[1])
    assert last["c_l"] == pytest.approx(scale * ball[0])
    assert rows(tmp_path / "whole/forces_block.csv")[-1]["torque_z"] == block[2]


def test_nothing_is_made_where_nobody_asks():
    (solver,) = Cluster(flow("D2Q9", output=[])).solvers
    assert solver.exchanged is None
    assert not any("force" in name for name in solver.program.kernels)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"body": ["bal"]}, r"output.0.body: found 'bal'; allowed: block, ball"),
        ({"length": 3.0}, "length: has no meaning without velocity; give both, or remove length"),
        ({"velocity": [0.1, 0.1]}, "length: missing, and the velocity has more than one component"),
        (REFERENCE | {"area": 2.0}, "area: has no meaning in 2D; give length"),
        (REFERENCE | {"velocity": [0.0, 0.0]}, "velocity: is zero"),
        (REFERENCE | {"lift": [0.0, 1.0]}, "lift: points along velocity"),
        ({"centre": [1.0]}, "centre: found 1 component; allowed: 2"),
    ],
)
def test_invalid_settings_are_reported(keys, message):
    with pytest.raises(CaseError, match=message):
        parse_case(flow("D2Q9", output=[OUTPUT | keys]), "test.toml")


def test_the_size_of_a_mask_must_be_given(tmp_path):
    np.save(tmp_path / "solid.npy", np.eye(8, 9, dtype=np.uint8))
    body = [{"label": "a", "mask": "solid.npy", "boundary": {"name": "bounce_back"}}]
    tables = flow("D2Q9", body=body, output=[OUTPUT | {"velocity": [0.1, 0]}])
    with pytest.raises(CaseError, match=r"output.0.length: missing, and body 'a' is a mask"):
        parse_case(tables, tmp_path / "test.toml")


@pytest.mark.parametrize(("lattice", "size"), [("D2Q9", 3.6), ("D3Q19", np.pi * 1.8**2)])
def test_coefficients_use_the_projected_area_of_each_body(tmp_path, lattice, size):
    D = int(lattice[1])
    output = OUTPUT | {"velocity": [0.1, 0, 0][:D]}
    case = parse_case(flow(lattice, output=[output]) | {"run": {"steps": 2}}, "test.toml")
    run(case, Serial(), tmp_path)
    for label, area in (("ball", size), ("block", 3.0 ** (D - 1))):
        row = rows(tmp_path / f"forces_{label}.csv")[-1]
        assert row["c_d"] == pytest.approx(2 * row["force_x"] / (0.01 * area), rel=1e-3)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"velocity": [0.1, 0, 0]}, {"c_d +x": "x", "c_l +z": "z", "c_s +y": "y"}),
        ({"velocity": [0, 0, 0.1]}, {"c_d +z": "z", "c_l +y": "y", "c_s +x": "x"}),
        ({"velocity": [-0.1, 0, 0]}, {"c_d -x": "-x", "c_l +z": "z", "c_s -y": "-y"}),
        (
            {"velocity": [0.1, 0, 0], "lift": [0.5, 2, 0]},
            {"c_d +x": "x", "c_l +y": "y", "c_s -z": "-z"},
        ),
        (
            {"velocity": [0.06, 0, 0.08], "area": 9.0, "lift": [0, 0, 1]},
            {"c_d +0.6x+0.8z": None, "c_l -0.8x+0.6z": None, "c_s +y": "y"},
        ),
    ],
)
def test_columns_of_coefficients_say_their_direction(tmp_path, keys, expected):
    """In 3D lift is along z, or y for a flow along z; without lift a note says so."""
    output = OUTPUT | {"body": ["block"], "area": 4.0} | keys
    case = parse_case(flow("D3Q19", output=[output]) | {"run": {"steps": 2}}, "test.toml")
    run(case, Serial(), tmp_path)
    table = open_run(tmp_path).table("forces_block")
    assert [name for name in table if name.startswith("c_")] == list(expected)
    scale = 2 / (0.01 * output["area"])
    for name, axis in expected.items():
        assert np.array_equal(table[name], table[name.split()[0]])
        if axis:
            force = table[f"force_{axis[-1]}"] * (-1 if axis[0] == "-" else 1)
            np.testing.assert_allclose(table[name], scale * force, rtol=1e-12)
    notes = [finding.message for finding in case.outputs[0].warnings(case)]
    assert len(notes) == ("lift" not in keys)
    for text in notes:
        assert f"lift along {[*expected][1].split()[1]}, side force along" in text


def test_bodies_stand_in_one_output():
    with pytest.raises(CaseError, match="'ball' is in two of these outputs"):
        parse_case(flow("D2Q9", output=[OUTPUT, OUTPUT | {"body": ["ball"]}]), "test.toml")
    with pytest.raises(CaseError, match=r"there is no \[\[body\]\]"):
        parse_case(flow("D2Q9", body=[]), "test.toml")

"""The length of interfaces that the monitor shows: circles, spheres and flat ones."""

import numpy as np
import pytest
from support.coupled import box_of, one_fluid
from support.free_energy import WIDTH, binary
from support.slabs import PRECISIONS, Cluster

from mpilbm.case.case import parse_case
from mpilbm.outputs.core.totals import add_planes
from mpilbm.parallel.ranks import world
from mpilbm.physics import sloped
from mpilbm.run.run import run

CORNER = "tanh(({R} - sqrt(({square})))/{width})"


def length(tables, steps=0, slabs=1) -> float:
    """That of a case after some steps, as the monitor has it."""
    columns, planes = Cluster(tables, slabs).start().run(steps).sums()
    assert sloped.columns(columns)[-1] == "interface_length"
    return add_planes(columns, planes)["interface_length"]


def ball(D, n, R, width) -> str:
    square = " + ".join(f"({axis} - {n / 2})**2" for axis in "xyz"[:D])
    return CORNER.format(R=R, square=square, width=width)


@pytest.mark.parametrize(
    ("lattice", "n", "R", "exact"),
    [("D2Q9", 40, 12, 2 * np.pi * 12), ("D3Q19", 28, 8, 4 * np.pi * (64 + np.pi**2 * 4 / 12))],
)
def test_a_drop_of_oil(lattice, n, R, exact):
    """In 3D the mean of 4 pi r^2 over sech^2((r - R)/w) / 2w, whose variance is (pi w)^2 / 12."""
    D = int(lattice[1])
    tables = binary(lattice, ball(D, n, R, 2.0), [n] * D, precision=PRECISIONS["single"])
    found = [length(tables, 2 * (D == 2), slabs) for slabs in (1, 3)]
    assert found[0] == found[1]
    assert abs(found[0] / exact - 1) < 0.01


@pytest.mark.parametrize("wall", [False, True])
def test_flat_interfaces_along_a_wave(wall):
    """A sheet that is tilted by 45 degrees twice is 2 sqrt(2) n long; one between walls is n."""
    n = 32
    phi = f"tanh((y - {n / 2})/{WIDTH})" if wall else f"sin(2*pi*(x + y)/{n})*0.99/0.999999"
    tables = binary("D2Q9", phi, [n, n])
    if wall:
        tables["domain"]["periodic"] = [True, False]
        tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    wanted = n if wall else 2 * np.sqrt(2) * n * 0.99
    assert abs(length(tables) / wanted - 1) < (1e-4 if wall else 0.01)


def layers(*rho):
    """Fluids of the same viscosity in a box of 9 x 60, their densities as formulas of y."""
    coupling = {"name": "shan_chen", "psi": "rho", "G": (1.5 * (1 - np.eye(len(rho)))).tolist()}
    fluids = [
        {"label": f"fluid{k}", "viscosity": 1 / 6, "initial": {"rho": each}}
        for k, each in enumerate(rho)
    ]
    return box_of("D2Q9", [9, 60], fluid=fluids, coupling=coupling)


def test_two_fluids_of_which_each_dissolves_in_the_other():
    inside = "tanh((y - 15)/2) - tanh((y - 45)/2) - 1"
    tables = layers(f"0.55 + 0.4*({inside})", f"0.55 - 0.4*({inside})")
    assert abs(length(tables) / 18 - 1) < 1e-3


def test_three_fluids_share_each_interface():
    parts = [f"tanh((y - {at})/1.5)" for at in (10, 30, 50)]
    first = f"0.1 + 0.4*({parts[0]} - {parts[1]})"
    second = f"0.1 + 0.4*({parts[1]} - {parts[2]})"
    found = length(layers(first, second, f"1.1 - ({first}) - ({second})"))
    assert abs(found / 27 - 1) < 0.01


def test_a_fluid_that_changes_its_phase():
    """Also once the interface has found its own profile."""
    rho = "0.12 + 0.88*(tanh((y - 15)/2) - tanh((y - 45)/2))"
    tables = box_of("D2Q9", [9, 60], initial={"rho": rho})
    assert abs(length(tables) / 18 - 1) < 1e-3
    assert abs(length(tables, 300) / 18 - 1) < 0.01


def test_a_uniform_fluid_has_none():
    tables = one_fluid("D2Q9", initial={"rho": 0.5}, precision=PRECISIONS["single"])
    assert length(tables | {"coupling": {"name": "shan_chen", "G": -3.0}}, 5) == 0


@pytest.mark.parametrize("amplitude", [0.01, -0.02])
def test_sound_in_a_fluid_of_one_phase_has_none(amplitude):
    """Above the critical point G = -4 there is no other phase."""
    tables = box_of("D2Q9", [9, 30], initial={"rho": f"0.7*(1 + {amplitude}*sin(2*pi*y/ny))"})
    assert length(tables | {"coupling": {"name": "shan_chen", "G": -3.0}}, 5) == 0


@pytest.mark.parametrize("label", ["max_speed", "nonfinite"])
def test_the_mass_of_a_fluid_is_a_sum_whatever_its_label(label, tmp_path):
    output = [{"name": "monitor", "every": 1}]
    tables = layers("0.4", "0.5") | {"run": {"steps": 1}, "output": output}
    tables["fluid"][0]["label"] = label
    run(parse_case(tables, "a.toml"), world(), tmp_path / "out")
    rows = np.genfromtxt(tmp_path / "out/monitor.csv", delimiter=",", names=True)
    assert rows[f"mass_{label}"] == pytest.approx(0.4 * 9 * 60)

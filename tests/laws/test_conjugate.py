"""Bodies that conduct a scalar: layers, conservation, slabs, layouts, restart, wrong input."""

import re

import numpy as np
import pytest
from support.conduction import (
    along_y,
    conducting,
    contact,
    cylinder,
    enthalpy_state,
    layers,
    plate,
)
from support.scalars import carried, closed, flow
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.codegen import programs
from mpilbm.core.errors import CaseError

LAYOUTS = ("ab", "aa", "esopull")
COLD, WARM = ({"name": "value", "where": [f"y{end}"], "value": k} for k, end in enumerate("-+"))


@pytest.mark.parametrize(
    ("ratio", "capacity", "lattice"),
    [(10, 10.0, "D2Q5"), (100, 25.0, "D2Q9"), (0.1, 1.0, "D2Q5"), (0.02, 0.9, "D2Q5")],
)
def test_steady_layers_are_exact(ratio, capacity, lattice):
    """T is continuous and piecewise linear, with slopes in the inverse ratio of conductivities."""
    fluid, solid, D = 5, 4, 0.2
    resistance = fluid + solid / ratio
    y = np.arange(fluid + solid) + 0.5
    exact = np.where(y < solid, y / ratio, solid / ratio + (y - solid)) / resistance
    start = layers(
        fluid, solid, (D * ratio / capacity, capacity), (COLD, WARM), D=D, lattice=lattice
    )
    steps = int(45 * solid * max(fluid * capacity, solid / ratio))
    np.testing.assert_allclose(along_y(start.run(steps)), exact, atol=1e-9)


@pytest.mark.parametrize(("ratio", "capacity"), [(10, 4.0), (100, 50.0), (1, 0.8)])
def test_contact_of_two_layers_follows_error_functions(ratio, capacity):
    """Second order: four times the error in cells of twice the size."""
    errors = []
    for N in (16, 32):
        D, C = (0.05 * ratio / capacity, 0.05), (capacity, 1.0)
        t, y = int(0.0125 * N * N / max(D)), np.arange(2 * N) + 0.5 - N
        cluster = layers(N, N, (D[0], capacity), initial=f"where(y > {N}, 1, 0)", D=D[1])
        errors.append(abs(along_y(cluster.run(t)) - contact(y, t, D, C)).max())
    assert errors[1] < 3e-3
    assert errors[0] / errors[1] > 3


def moving(layout="ab", precision="double", dimensions=2, capacity=2.5, **more) -> dict:
    """A flow with buoyancy around a body that conducts T but not c, and an adiabatic body."""
    last = [0.0] * (dimensions - 1)
    lattice, c = ("D2Q9", [2.5, 3.5]) if dimensions == 2 else ("D3Q19", [3.0, 2.5, 3.5])
    one = conducting({"name": "sphere", "centre": c, "radius": 1.4}, 0.05, capacity)
    corner = [0.0] * (dimensions - 1)
    other = {"shape": {"name": "sphere", "centre": [*corner, 8.0], "radius": 1.2},
             "boundary": {"name": "interpolated"}}  # fmt: skip
    buoyancy = {"gravity": [*last, -1e-4], "T": {"beta": 1.0, "reference": 0.5}}
    scalars = [carried(source="0.0005*(0.5 - T)"), carried("c", 0.01)]
    tables = closed(dimensions) | {"body": [one, other], "buoyancy": buoyancy} | more
    return flow(lattice, layout, precision, **{"scalars": scalars} | tables)


CHOICES = [
    ("aa", "single", 2),
    ("esopull", "double", 2),
    ("ab", "mixed", 3),
    ("esopull", "single", 3),
]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_neither_slabs_nor_layout_show(choice):
    _, *rest = choice
    names = ("T", "c", "u")
    whole, ab = Cluster(moving(*choice)).start().run(7), Cluster(moving("ab", *rest)).start()
    g, fields = enthalpy_state(whole), whole.fields(*names)
    assert np.array_equal(g, enthalpy_state(ab.run(7)))
    assert np.isfinite(g).all()
    for slabs in (2, 3):
        cut = Cluster(moving(*choice), slabs).start().run(7)
        assert np.array_equal(enthalpy_state(cut), g)
        for name, values in cut.fields(*names).items():
            assert np.array_equal(values, fields[name])
    inside = whole.solvers[0].solid(0, whole.solvers[0].slab.planes)
    assert (fields["T"][inside] != 0).any()
    assert not fields["c"][inside].any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_enthalpy_is_conserved(layout):
    cluster = Cluster(moving(layout, scalars=[carried()])).start()
    solid = np.concatenate(cluster.each(lambda s: s.context.geometry.solid))
    before, T = enthalpy_state(cluster).sum(), cluster.fields("T")["T"]
    assert abs((T * np.where(solid == 1, 2.5, 1.0)).sum() / before - 1) < 1e-12
    after = enthalpy_state(cluster.run(101)).sum()
    assert abs(after / before - 1) < 1e-12
    assert cluster.fields("T")["T"].std() > 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_restart_does_not_show(layout):
    whole = Cluster(moving(layout, "single")).start().run(6)
    labels = ("", "T", "c")
    states = [np.concatenate(whole.each(lambda s, k=k: s.read_state(k, 0, s.slab.planes)))
              for k in labels]  # fmt: skip
    again = Cluster(moving(layout, "single")).start()
    for label, state in zip(labels, states, strict=True):
        again.solvers[0].write_state(label, 0, state, 6)
    again.solvers[0].resume(6)
    assert np.array_equal(enthalpy_state(again.run(5)), enthalpy_state(whole.run(5)))


@pytest.mark.usefixtures("optimised")
def test_a_cylinder_of_another_conductivity_distorts_the_field():
    """Against the exact solution; the surface consists of faces of cells."""
    cluster, exact = cylinder(32, 10, 10.0)
    T = cluster.run(8000).fields("T")["T"][:, 0]
    assert np.sqrt(((T - exact) ** 2).mean()) < 0.01 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("material", "found"),
    [
        ({"diffusivity": 0.1, "capacity": -1.0}, "capacity"),
        ({"diffusivity": 0.0}, "diffusivity"),
        ({"diffusivity": 0.1, "capacity": 0.2}, "0.667 or more"),
        ({}, "diffusivity"),
        ({"diffusivity": 0.1, "capacitance": 1.0}, "capacitance"),
    ],
)
def test_wrong_materials_are_refused(material, found):
    body = plate(0, 2, 0.1, 1.0) | {"scalar": {"T": {"conjugate": material}}}
    with pytest.raises(CaseError, match=found):
        parse_case(flow(body=[body]), "test.toml")


def test_a_face_cannot_conduct():
    face = {"name": "conjugate", "where": ["y-"], "conjugate": {"diffusivity": 0.1}}
    tables = flow(scalars=[carried(boundary=[face])], **closed(2))
    with pytest.raises(CaseError, match="is for bodies"):
        parse_case(tables, "test.toml")


def test_a_cell_further_inwards_has_the_material_of_its_own_place():
    """Kernels of boundary lists that read cells inwards look up the materials there."""
    ends = [COLD, {"name": "outflow", "where": ["y+"]}]
    faces = [
        {"name": "equilibrium", "where": ["y-"], "velocity": [0, 0.01]},
        {"name": "characteristic", "where": ["y+"]},
    ]
    tables = moving(boundary=faces, scalars=[carried(boundary=ends)])
    text = programs.build(parse_case(tables, "a.toml")).text
    inwards = re.findall(r"const real capacity_here\w*_in(\d) = (.*);", text)
    assert inwards
    assert all(f"plane_in{k} " in place for k, place in inwards), inwards

import json
import subprocess
import sys

import pytest
from support.case_tables import BASE, OIL, PLANE, WATER, tables, write
from support.findings import warnings_of

from mpilbm.case.case import load_case, parse_case, schema
from mpilbm.core import registry

pytestmark = pytest.mark.usefixtures("stand_ins")


def test_a_whole_case(tmp_path):
    path = write(tmp_path)
    case = load_case(path)
    assert (case.title, case.dimensions, case.shape) == ("Box", 3, (13, 4, 5))
    assert (case.path, case.directory) == (path, tmp_path)
    assert case.domain.periodic == (True, True, False)
    assert [boundary.where for boundary in case.boundaries] == [("z-",), ("z+",)]
    assert case.bodies[0].label == "ball"
    assert case.bodies[0].shape.radius == 1.5
    assert case.outputs[0].every == 10
    assert warnings_of(case) == ()
    (fluid,) = case.fluids
    assert (fluid.label, fluid.viscosity, fluid.force) == ("", 0.02, None)
    assert (fluid.initial.value, fluid.initial.u) == (1, (0, 0, 0))


def test_defaults():
    case = parse_case(tables(domain={"size": [3, 4, 5]}))
    assert case.domain.periodic == (False, False, False)
    assert (case.precision.compute, case.precision.storage) == ("float32", "float32")
    assert case.precision.offset
    names = [case.fluids[0].collision, case.layout, case.backend, case.halo]
    assert [thing.name for thing in names] == ["bgk", "auto", "auto", "auto"]
    assert (case.run.steady, case.run.walltime) == (None, None)


def test_two_dimensions_have_one_row_a_plane():
    case = parse_case(tables(PLANE))
    assert (case.dimensions, case.shape) == (2, (13, 1, 5))


def test_a_case_is_frozen():
    case = parse_case(tables())
    with pytest.raises(ValueError, match="frozen"):
        case.run.steps = 3


def test_viscosity_by_reynolds_number():
    fluid = {"reynolds": 1000, "length": 128, "velocity": 0.1}
    (found,) = parse_case(tables(fluid=fluid)).fluids
    assert found.viscosity == pytest.approx(0.0128)
    assert found.velocity * found.length / found.viscosity == pytest.approx(1000)
    assert found.reynolds == 1000


def test_zero_force_is_none():
    zero, one = ({"name": "guo", "value": [0, 0, value]} for value in (0, 1e-5))
    assert parse_case(tables(force=zero)).fluids[0].force is None
    assert parse_case(tables(force=one)).fluids[0].force.value == (0, 0, 1e-5)


def test_body_without_a_label_is_called_by_its_index():
    body = tables()["body"][0]
    del body["label"]
    assert parse_case(tables(body=[body])).bodies[0].label == "0"


def test_several_fluids():
    coupling = {"name": "stand_in_too"}
    case = parse_case(tables(fluid=[WATER, OIL], coupling=coupling))
    assert [(fluid.label, fluid.viscosity) for fluid in case.fluids] == [
        ("water", 0.1),
        ("oil", 0.1),
    ]
    assert case.coupling.name == "stand_in_too"
    assert case.fluids[0].force.value[2] == -1e-5
    assert case.fluids[1].initial.where == "fluid.oil.initial"
    assert case.key(case.fluids[1], "collision") == "fluid.oil.collision"


def test_one_fluid_in_an_array_shows_no_label():
    assert parse_case(tables(fluid=[WATER])).fluids[0].label == ""


def test_objects_have_key_paths():
    found = {where: thing.name for where, thing in parse_case(tables()).objects()}
    assert found["lattice"] == "D3Q19"
    assert found["collision.equilibrium"] == "compressible"
    assert found["body.ball.shape"] == "sphere"
    assert found["boundary.1"] == "bounce_back"
    assert found["output.0"] == "stand_in"


def test_schema_lists_every_class():
    text = json.dumps(schema())
    for kind in ("lattices", "collisions", "boundaries", "shapes", "layouts", "outputs"):
        for name in registry.names(kind):
            assert f'"{name}"' in text
    assert schema()["required"] == ["lattice", "domain", "run"]  # units.fluid replaces fluid


def test_reading_a_case_imports_neither_sympy_nor_mpi_nor_hdf5(tmp_path):
    path = write(tmp_path, BASE.replace('[[output]]\nname = "stand_in"\nevery = 10\n', ""))
    code = (
        "import sys; from mpilbm.case.case import load_case; "
        f"load_case({str(path)!r}); "
        "sys.exit(', '.join({'sympy', 'mpi4py', 'h5py', 'cupy'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)

"""A scalar has a lattice with conditions of its own; its kernels know nothing of the flow."""

import pytest
from support.flows import flow
from support.scalars import carried

from mpilbm.case.case import Case, parse_case
from mpilbm.codegen import programs
from mpilbm.physics.scalars.boundaries.flux import GivenFlux


class OfTheFlow(GivenFlux):
    """A condition on a scalar that asks for a velocity."""

    name: str = "of_the_flow"

    def incoming(self, cell):
        """The velocity in place of the populations."""
        return dict.fromkeys(range(1, cell.lattice.Q), cell.velocity([0, 0], 1)[0])


def walled(**more) -> Case:
    """A box with walls across y, a ball, and a scalar with a condition at each."""
    walls = {"name": "bounce_back", "where": ["y-", "y+"]}
    ball = {
        "label": "ball",
        "shape": {"name": "sphere", "centre": [4.0, 4.0], "radius": 1.5},
        "boundary": {"name": "bounce_back"},
        "scalar": {"T": {"name": "value", "value": 1.0}},
    }
    faces = [{"name": "flux", "where": ["y-", "y+"]}]
    tables = flow("D2Q9", "trt", [9, 8], scalar=[carried(boundary=faces)], **more)
    tables |= {"domain": {"size": [9, 8], "periodic": [True, False]}}
    return parse_case(tables | {"boundary": [walls], "body": [ball]})


def test_the_lattice_of_a_scalar_is_no_case():
    case = walled()
    found = case.of_scalar(0)
    assert not isinstance(found, Case)
    assert (found.lattice.name, case.lattice.name) == ("D2Q5", "D2Q9")
    assert [boundary.where for boundary in found.boundaries] == [("y-",), ("y+",)]
    assert {boundary.name for boundary in found.boundaries} == {"flux"}
    assert [(body.label, body.boundary.name) for body in found.bodies] == [("ball", "value")]
    assert found.bodies[0].shape is case.bodies[0].shape
    assert (found.shape, found.formats.names) == (case.shape, ("float64",) * 5)


def test_a_condition_on_a_scalar_cannot_use_the_flow():
    case = walled()
    (scalar,) = case.scalars
    wrong = OfTheFlow(where=("y-", "y+"))
    case = case.model_copy(
        update={"scalars": (scalar.model_copy(update={"boundaries": (wrong,)}),)}
    )
    with pytest.raises(
        ValueError, match=r"of_the_flow uses .*; a condition on a scalar uses the density"
    ):
        programs.build(case)

"""A key that was renamed is accepted under its earlier name, with a note."""

import pytest

from mpilbm.case.case import parse_case, recorded_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find, names

TABLES = {
    "lattice": {"name": "D2Q9"},
    "domain": {"size": [8, 8], "periodic": [True, True]},
    "fluid": {"viscosity": 0.02},
    "units": {"cell": 1e-3, "step": 1e-3, "density": 1000},
    "run": {"steps": 1000},
}


def case(read=parse_case, **keys):
    return read(TABLES | {"output": [{"name": "statistics", "every": 10} | keys]}, "case.toml")


@pytest.mark.parametrize("value", [500, "0.5 s"])
@pytest.mark.parametrize("read", [parse_case, recorded_case])
def test_an_earlier_name_is_the_present_one_with_a_note(read, value):
    found, present = case(read, start=value), case(read, begin=value)
    assert found.outputs[0].begin == 500
    assert (found.outputs, found.toml) == (present.outputs, present.toml)
    (note,) = found.of_keys
    assert note.line == "note: output.0.start: is the earlier name of begin; write begin"
    assert not present.of_keys


def test_both_names_are_refused():
    with pytest.raises(CaseError) as error:
        case(start=5, begin=10)
    assert error.value.problems == [
        "case.toml: output.0.start: is the earlier name of begin, which is also given; remove start"
    ]


@pytest.mark.parametrize("name", names("outputs"))
def test_the_first_step_of_each_output_has_one_name(name):
    assert not {"start", "first", "after"} & set(find("outputs", name).model_fields)

"""A small case for each registered output, and other values of each of its keys."""

from typing import Literal, get_args, get_origin

from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find
from support.outputs_cases import BODY, THREE, make_case

KEYS: dict[str, dict] = {
    "box": {"from": [0, 0, 0], "to": [2, 2, 2]},
    "line": {"from": [0, 1.5, 1], "to": [5, 1.5, 1]},
    "line_spectra": {"average": ["x"]},
    "nusselt": {"scalar": "T", "axis": "x", "difference": 1},
    "plane": {"normal": "z", "position": 1},
    "probe": {"points": [[1, 1, 1]]},
}
SCALAR = [{"label": "T", "diffusivity": 0.1}]
WALLS = {
    "domain": {"size": list(THREE), "periodic": [True, False, True]},
    "boundary": [{"name": "wall_model", "law": "spalding", "where": ["y-", "y+"]}],
}
NEEDED: list[dict] = [{}, {"body": BODY}, {"scalar": SCALAR}, WALLS]  # some need other tables


def output_of(name, every=2):
    """The table of an output; its required keys, if they are not in KEYS, are their examples."""
    fields = find("outputs", name).model_fields
    required = {
        key: field.examples[0] for key, field in fields.items()
        if field.is_required() and key != "every"
    }  # fmt: skip
    return {"name": name, "every": every} | KEYS.get(name, required)


def case_with(*outputs, steps=4):
    """A case with these outputs and checkpoints; CaseError if there is none."""
    needed = [more for more in NEEDED if not problems(*outputs[:1], **more)] or NEEDED
    return made(*outputs, run={"steps": steps}, **needed[0])


def made(*outputs, **more):
    if all(output["name"] != "checkpoint" for output in outputs):
        outputs = (*outputs, {"name": "checkpoint", "every": 2})
    force = {"name": "guo", "value": [1e-5, 0, 0]}
    initial = {"u": ["0.03*sin(2*pi*z/nz)", 0.01, 0.02]}
    return make_case(outputs=outputs, force=force, initial=initial, **more)


def problems(*outputs, **more):
    """The message of the CaseError of this case, or ""."""
    try:
        made(*outputs, **more)
    except CaseError as error:
        return str(error)
    return ""


def changed(output):
    """(key, value) for each key of an output for which another value is valid."""
    for key, field in find("outputs", output["name"]).model_fields.items():
        if key in ("name", "label"):
            continue
        value = output.get(key, field.default)
        for other in (*choices(field.annotation, value), *(field.examples or ()), *near(value)):
            if other != value and any(
                not problems(output | {key: other}, **more) for more in NEEDED
            ):
                yield key, other
                break


def choices(annotation, value):
    """The other values of a Literal or a bool."""
    if isinstance(value, bool):
        return [not value]
    allowed = get_args(annotation) if get_origin(annotation) is Literal else ()
    return [each for each in allowed if each != value]


def near(value):
    """Values next to a number, or to the numbers in lists."""
    if isinstance(value, list | tuple):
        for k in reversed(range(len(value))):
            yield from ([*value[:k], other, *value[k + 1 :]] for other in near(value[k]))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (value + 1, value - 1, value / 2)

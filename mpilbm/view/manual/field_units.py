"""Units of the keys of a case file whose fields have no quantity, in lattice units."""

import re

from mpilbm.core.quantity import whole_type
from mpilbm.core.registry import Parameters
from mpilbm.view.manual.field_types import holds_numbers, quantity_of

# Unit of a key in lattice units: u is cells/step; 1: a pure number; "": no number.
UNITS = {
    "Steady.tolerance": "1",
    "InitialTable.scale": "1",
    **dict.fromkeys((f"RandomFlow.{key}" for key in ("peak", "slope", "seed")), "1"),
    "Rotation.axis": "1",
    "ShanChen.psi": "",
    "Mesh.scale": "cells per unit of the file",
    "Spheres.scale": "cells per length unit of the file",
    "Voxels.solid": "",
    "Voxels.size": "voxels",
    "Strided.stride": "cells",
    "Picture.range": "of the field",
    "Isosurface.value": "of the field",
    "Isosurface.stride": "cells",
    "Voxels.crop": "voxels",
    "Voxels.coarsen": "1",
    "Voxels.refine": "1",
    "tau_phi": "steps",
    "Nusselt.difference": "units of the scalar",
    "Conducting.capacity": "that of the fluid",
    **dict.fromkeys(("prandtl", "schmidt"), "1"),
    "relaxation": "1/step",
    **dict.fromkeys(("reynolds", "magic", "constant", "normal", "lift", "keep", "priority"), "1"),
    "index": "1",
    "Carreau.a": "1",
    **dict.fromkeys(("device", "platform", "order", "threads"), "1"),
    **dict.fromkeys(("G", "a", "kappa", "gamma"), "lattice units"),
}


RATES = re.compile(r"(omega|s)_\w+")  # relaxation rates, per step


def unit(cls: type[Parameters], key: str) -> str:
    """The unit of a key; KeyError if it holds numbers whose unit is unknown.

    That of its annotation, see mpilbm/core/quantity.py, or that of `UNITS`.
    """
    quantity = quantity_of(whole_type(cls.model_fields[key]))
    if quantity:
        return quantity.unit
    for base in cls.__mro__:
        if f"{base.__name__}.{key}" in UNITS:
            return UNITS[f"{base.__name__}.{key}"]
    if not holds_numbers(whole_type(cls.model_fields[key])):
        return ""
    return "1/step" if RATES.fullmatch(key) else UNITS[key]

"""Units of the keys of a case file, in lattice units."""

import re

from mpilbm.manual.field_types import holds_numbers, whole_type
from mpilbm.registry import Parameters

# Unit of a key in lattice units: u is cells/step; 1: a pure number; "": no number.
UNITS = {
    "UnitsTable.cell": "m",
    "UnitsTable.step": "s",
    "UnitsTable.velocity": "m/s",
    "UnitsTable.density": "kg/m^3",
    "Run.walltime": "s",
    "Steady.tolerance": "1",
    "ShanChen.psi": "",
    "Mesh.scale": "cells per unit of the file",
    "rotate": "degrees",
    "size": "cells",
    "steps": "steps",
    "every": "steps",
    "iterate": "steps",
    "start": "steps",
    "write": "steps",
    "viscosity": "cells^2/step",
    "velocity": "cells/step",
    "u": "cells/step",
    "rho": "rho_0",
    "rho_jump": "rho_0",
    "value": "rho_0 cells/step^2",
    "area": "cells^2",
    "wetting": "rho_0, or degrees",
    "tau_phi": "steps",
    "relaxation": "1/step",
    **dict.fromkeys(
        ("length", "centre", "radius", "tube", "lower", "upper", "point", "at"), "cells"
    ),
    **dict.fromkeys(("reynolds", "magic", "constant", "normal", "lift", "keep"), "1"),
    **dict.fromkeys(("device", "order", "threads"), "1"),
    **dict.fromkeys(("G", "a", "kappa", "gamma"), "lattice units"),
}


RATES = re.compile(r"(omega|s)_\w+")  # relaxation rates, per step


def unit(cls: type[Parameters], key: str) -> str:
    """The unit of a key; KeyError if it holds numbers and `UNITS` does not have it."""
    for base in cls.__mro__:
        if f"{base.__name__}.{key}" in UNITS:
            return UNITS[f"{base.__name__}.{key}"]
    if not holds_numbers(whole_type(cls.model_fields[key])):
        return ""
    return "1/step" if RATES.fullmatch(key) else UNITS[key]

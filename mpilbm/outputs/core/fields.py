"""The fields that outputs can write."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpilbm.case.case import Case

# Components in files: a vector has three there, also in two dimensions.
COMPONENTS = {"rho": 1, "u": 3, "vorticity": 3, "q_criterion": 1}


def field_problems(names: tuple[str, ...], case: "Case") -> list[str]:
    """Names that are not fields of a flow, or none."""
    own = case.own_fields
    fields = (*COMPONENTS, *own)
    choice, lines = f"choose from {', '.join(fields)}", []
    for name in names:
        if name not in fields:
            near = get_close_matches(name, fields, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            lines.append(f"fields: '{name}' is not a field; {choice}{hint}")
    return lines if names else [f"fields: found none; {choice}"]

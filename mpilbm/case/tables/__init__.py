"""The tables of a case file: their keys, types and limits, which pydantic checks one by one.

`case_file.CaseFile` is the whole file. The names of tables that have a checked counterpart end in
`Table` or `File`: FluidTable and Fluid, InitialTable and InitialFields, UnitsTable and Units,
CaseFile and Case.
"""

from typing import Annotated, Any

from pydantic import Field

from mpilbm.core.registry import find

MOST_STEPS = 2**53 - 1
Positive = Annotated[float, Field(gt=0)]
# a value in SI; within these limits no unit overflows, not even torque with its cell^5
Scale = Annotated[float, Field(ge=1e-30, le=1e30)]
LABEL = r"^[A-Za-z][A-Za-z0-9_-]*$"
Label = Annotated[str, Field(pattern=LABEL, max_length=64)]
MOST_TITLE = 200
Title = Annotated[str, Field(max_length=MOST_TITLE)]


def default(kind: str, name: str, description: str) -> Any:
    """A field for an object of this kind; the default is the class `name` without parameters."""
    return Field(default_factory=lambda: find(kind, name)(), description=description)

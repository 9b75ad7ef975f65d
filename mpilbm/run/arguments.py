"""Checks of the arguments that a Python program gives to a simulation."""

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.given_objects import shown_type
from mpilbm.core.errors import UsageError


def require_case_and_comm(case: object, comm: object) -> None:
    """UsageError for a case that is not checked yet, and for no communicator."""
    if not isinstance(case, Case):
        raise UsageError(
            f"Simulation: found {shown_type(case)} as case; give the result of mpilbm.load_case(…)"
        )
    if comm is not None and not hasattr(comm, "allgather"):
        raise UsageError(
            f"Simulation: found {shown_type(comm)} as comm; give a communicator of mpi4py, or name "
            "the other arguments, as in directory="
        )


def require_count(name: str, found: int | None, least: int) -> None:
    """UsageError unless a number of steps is a whole number."""
    if found is None:
        return
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < least:
        raise UsageError(f"run: {name} = {found!r}; allowed: whole numbers >= {least}")


def require_names(call: str, names: object) -> None:
    """UsageError unless an argument is a text or a sequence of texts."""
    each = [names] if isinstance(names, str) else names
    if not isinstance(each, list | tuple) or not all(isinstance(name, str) for name in each):
        raise UsageError(f'{call}: found {shown_type(names)} as fields; give names: ["rho", "u"]')


def require_flag(call: str, name: str, found: object) -> None:
    """UsageError unless an argument is True or False."""
    if not isinstance(found, bool):
        raise UsageError(f"{call}: {name} = {found!r}; allowed: True or False")


def require_function(call: object) -> None:
    """UsageError unless the argument `call` of a run is a function or None."""
    if call is not None and not callable(call):
        raise UsageError(
            f"run: found {shown_type(call)} as call; give a function of the simulation"
        )

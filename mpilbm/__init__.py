"""Lattice Boltzmann flow solver for GPUs and CPUs: `mpirun -n N mpilbm run case.toml`.

In Python: `load_case` reads a case, a `Simulation` runs it, and `open_run` reads the results. The
names are imported at their first use, so that `import mpilbm` is fast.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpilbm.case.case import Case, load_case
    from mpilbm.core.errors import (
        CaseError,
        CommandError,
        FileSystemError,
        FunctionError,
        MpilbmError,
        NonFiniteError,
        UsageError,
    )
    from mpilbm.run.simulation import Simulation
    from mpilbm.view.results import Run, open_run

__version__ = "0.1.0"
__all__ = [
    "Case",
    "CaseError",
    "CommandError",
    "FileSystemError",
    "FunctionError",
    "MpilbmError",
    "NonFiniteError",
    "Run",
    "Simulation",
    "UsageError",
    "load_case",
    "open_run",
]


def __getattr__(name: str) -> Any:
    """A public name, imported from its module."""
    if name not in __all__:
        raise AttributeError(f"module 'mpilbm' has no attribute '{name}'")
    if name == "Simulation":
        from mpilbm.run.simulation import Simulation

        return Simulation
    if name in ("Case", "load_case"):
        from mpilbm.case import case

        return getattr(case, name)
    if name in ("Run", "open_run"):
        from mpilbm.view import results

        return getattr(results, name)
    from mpilbm.core import errors

    return getattr(errors, name)


def __dir__() -> list[str]:
    """The public names, also before their first use."""
    return sorted({*globals(), *__all__})

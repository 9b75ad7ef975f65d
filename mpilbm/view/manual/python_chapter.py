"""Generates the chapter `python.md` from the text below, a notebook, and docstrings.

    python -m mpilbm.view.manual.python_chapter     writes the chapter; a test compares it with them

The example is the notebook `cases/cylinder.ipynb` with its outputs.
"""

import base64
import inspect
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import mpilbm
from mpilbm import Simulation
from mpilbm.view.manual.pages import FOLDER
from mpilbm.view.results.fields import Series
from mpilbm.view.results.run import Run
from mpilbm.view.results.tables import Table

FILE = FOLDER / "python.md"
PICTURE = FOLDER / "pictures" / "cylinder-notebook.png"
NOTEBOOK = FOLDER.parents[2] / "cases" / "cylinder.ipynb"

TEXT = """\
# Python

`mpilbm.load_case` reads a case, and `mpilbm.Simulation` runs it in a Python program or a notebook.
`mpilbm.open_run` reads what a run has written.
The command `mpilbm run` uses the same class, so both have the same results and the same error
messages.

```python
import mpilbm
import numpy as np

case = mpilbm.load_case("case.toml", {{"run.steps": 1000}})  # or a dict with the same tables
with mpilbm.Simulation(case) as sim:
    sim.run(500, every=100, call=lambda sim: print(sim.step, sim.sums()["kinetic_energy"]))
    u = sim.field("u")  # (nz, ny, nx, 3), in 2D (ny, nx, 2); on rank 0
    sim.set_field("u", lambda x, y: (0.01 * np.sin(y), 0 * x))  # or an array
    sim.run()  # up to run.steps
    sim.save("snapshot.vtkhdf")
    sim.checkpoint("state.h5")
```

`import mpilbm` loads nothing else; the first simulation takes as long to start as `mpilbm run`.
Without MPI, and in a notebook, a simulation has one rank, with a GPU or `backend.threads` threads.

{notebook}

With 20 cells per diameter both are within the published intervals. They depend on the distance from
the inlet: with the centre at x = 2 D, half a cell nearer to it, drag and lift are 5.60 and 0.0100.
The cells of the notebook took 7 s on one core of an AMD EPYC (2026-11-23).

## Files

Without `directory` a simulation writes only what `save` and `checkpoint` are called for: the
`[[output]]` tables of the case have no effect, except that `body_forces` names the bodies of
`forces`. With `directory` it writes the outputs of the case and `summary.json`, bit for bit those
of `mpilbm run`, however the steps are divided into calls of `run`: outputs are written at the
multiples of their `every` and at `run.steps`; those that are written at step 0, when the first
`run` starts. The folder is
locked until the end, and the files of an earlier run are protected. `run.walltime`, the time limit
of a job and signals are those of the command.

Nothing is printed. `sim.messages` has the lines of the command on rank 0, `sim.findings` what
`mpilbm check` finds and what the run has found so far, and `verbose = True` prints these lines.

## Interrupts and errors

In a program Ctrl-C raises `KeyboardInterrupt`, but only where the simulation can continue:

| Ctrl-C | raised |
|---|---|
| in `run` | within about a second, at a step on which all ranks agree, after all its outputs |
| in the function given to `run`, on one rank | immediately |
| in `field`, `set_field`, `save`, `checkpoint`, … | when the call is complete |
| a second one, more than a second later | immediately |

After the first three `run` continues as if nothing had happened: the files have the same bytes as
without an interrupt. It also continues after an error of the function given to `run`, since this is
called after the outputs of its step. After an error in a time step or in an output, and after a
second Ctrl-C, rows or files may be missing. `run` then raises a UsageError; create another
simulation with `restart="auto"`. If the time steps are complete, `field`, `sums`, `save` and
`checkpoint` still work, so that the state can be saved on another disk. Signals are handled in the
main thread only, and a handler of SIGINT that the program has installed remains.

## Several ranks

Under `mpirun -n 4 python program.py` all ranks run the same program, and the simulation divides the
box into slabs.

- All ranks create the simulation and call each method at the same point: `run`, `field`,
  `device_field`, `set_field`, `sums`, `forces`, `save` and `checkpoint`. The function given to
  `run` is called on all ranks, too. All ranks also reach `close` or the end of the `with` block.
  The properties need no other rank.
- `field` returns the whole box on rank 0 and None elsewhere. With `local = True` each rank has its
  own planes, from `sim.planes[0]` to `sim.planes[1] - 1`.
- `sums` and `forces` return the same numbers on all ranks, and print once with `if sim.rank == 0:`.
- A mistake is an MpilbmError on all ranks. An error in mpilbm itself while a simulation is created
  is raised on all ranks, too: where it occurs, and as a RuntimeError that names this rank on the
  others. A function of the program that fails during the steps raises a FunctionError on the ranks
  whose cells it concerns. If this or another error ends the program on a single rank, the first
  simulation has set `sys.excepthook` to print the error and abort the ranks that wait. An
  excepthook of the program, an interactive session, and `sys.exit` on one rank are left alone:
  start with `mpirun -n 4 python -m mpi4py program.py`, which aborts all ranks in any case.
- `Simulation(case, MPI.COMM_SELF)` is a simulation of its own on each rank. They share
  nothing: select a GPU for each by `CUDA_VISIBLE_DEVICES`.

Several simulations can exist at the same time. Each holds its memory until `close` or the end of
its `with` block.

## Arrays and functions in a case

The tables of a dict, and overrides, may contain NumPy arrays and functions of x, y (z) and t:

```python
import numpy as np

import mpilbm


def inlet(x, y, t):
    # a parabolic profile that starts slowly: the components of the velocity
    return 0.1 * y * (32 - y) / 256 * (1 - np.exp(-t / 500)), 0 * y


def ellipse(x, y):
    # True inside the body
    return ((x - 20) / 8) ** 2 + ((y - 16) / 5) ** 2 <= 1


case = mpilbm.load_case(
    {{
        "lattice": {{"name": "D2Q9"}},
        "domain": {{"size": [96, 32]}},
        "fluid": {{"viscosity": 0.02}},
        "force": {{"name": "guo", "value": np.zeros((32, 96, 2))}},
        "initial": {{"rho": lambda x, y: 1 + 1e-4 * np.cos(2 * np.pi * x / 96)}},
        "boundary": [
            {{"name": "zou_he", "where": ["x-"], "velocity": inlet}},
            {{"name": "regularized", "where": ["x+"], "rho": np.ones(32)}},
            {{"name": "bounce_back", "where": ["y-", "y+"]}},
        ],
        "body": [{{"label": "egg", "shape": ellipse, "boundary": {{"name": "interpolated"}}}}],
        "run": {{"steps": 1000}},
    }}
)
```

| key | array | function |
|---|---|---|
| `shape` or `mask` of a body | (nz, ny, nx), 0 is fluid | f(x, y, z) -> bool |
| `velocity` of a boundary | cells of the face, (nz, ny, 3) at x- | f(…, t) -> D components |
| `rho` of a boundary | the same without components | f(…) -> a number per point |
| `force.value` | (nz, ny, nx, 3); also `"force.npy"`, `"force.h5:dataset"` | f(…) -> D components |
| `initial.u`, `initial.rho` | (nz, ny, nx, 3), (nz, ny, nx) | f(…) |

- In 2D the shapes have no nz, and 2 components, and functions have no z; t may be omitted. A list
  may have an array or a function (which returns a number) for each component, as
  `velocity = [f, 0]`.
- A function gets float64 arrays of one shape: coordinates in cells (cell centres are 0.5, 1.5, …),
  and t in steps as a number. Its values, like those of arrays, are in lattice units, also in a case
  with [units]. It returns a tuple of components, or an array whose last axis has them. A value must
  depend on its own point and t only, so that results do not depend on the number of ranks.
- When the case is read, a function is called at a few points, to find errors in it. Then it is
  called with symbols. If it consists of arithmetic, comparisons and functions of NumPy that
  formulas have (also `numpy.where`, `clip`, `minimum`, `hypot`, powers), it becomes a formula:
  kernels evaluate it, the checks of formulas apply, checkpoints contain it, and it costs no time on
  the host. Variables outside the function keep the values that they have then.
- Any other function (`if`, `numpy.interp`, `float(t)`) is evaluated on the host. With the argument
  t this is done at each step, by all ranks for their own cells, and the values are copied to the
  device; without t once. Such a force takes D numbers per cell on the device, like an array of
  forces. Velocities of half-way walls are then those at the cells next to the wall, as for arrays.
  Bodies take only functions that are formulas for their velocity, and coupled fluids for their
  forces.
- An array or function of forces excludes the fastest kernels of GPUs: two cells per thread, and the
  sweep of `moments`.
- The surface of a shape given as a function is found by bisection; an array has no surface between
  cells, and `interpolated` is half-way bounce-back there.
- Files of the run contain formulas, and references for the other objects. A restart warns if an
  array has changed; it cannot compare functions that are no formulas. A case file with references
  cannot be run from the command line.

## Setting fields

`set_field` replaces rho or u and keeps the other one, to the digits of `precision.compute`. The
populations lose what is not determined by rho, u and, with `initial.non_equilibrium`, the velocity
gradient. For coupled fluids `set_field("rho", …, fluid="oil")` sets the density of a fluid, and u
is the velocity of all of them; a coupling that does not report the density of each fluid, such as
`free_energy`, refuses it.

A function of the coordinates, and of the step if it has an argument t, is called once for the slab
of each rank:

```python
import numpy as np

sim.set_field("u", lambda x, y, z: (0.05 * np.sin(2 * np.pi * z / 64), 0, 0))
```

## Reading results

```python
import mpilbm
import numpy as np

run = mpilbm.open_run("cavity.out")  # also while the run continues
u = run.field("u")  # of the last snapshot: (nz, ny, nx, 3), in 2D (ny, nx, 2)
row = run.field("u", step=1000, region=np.s_[16])  # only this part is read
energy = run.table("monitor")["kinetic_energy"]
x, y = run.snapshots.centres()
```

Fields, coordinates and times are in SI if the case has [units]. `run.series` names the outputs with
a file for each step, such as "plane_wake"; `run.part("plane_wake")` has the same methods as
`run.snapshots`. Nothing in the folder is changed, and no GPU and no MPI is needed. The chapter
"Outputs" shows how xarray opens a run.

## Reference

{reference}"""


def chapter() -> str:
    """The whole chapter."""
    text = TEXT.format(notebook="\n\n".join(_cells()), reference="\n\n".join(_reference()))
    return text.rstrip() + "\n"


def write() -> None:
    """Write the chapter and its picture."""
    FILE.write_text(chapter(), encoding="utf-8")
    PICTURE.write_bytes(picture())


def cells() -> list[dict[str, Any]]:
    """The cells of the notebook."""
    return json.loads(Path(NOTEBOOK).read_text(encoding="utf-8"))["cells"]


def picture() -> bytes:
    """The picture in the outputs of the notebook."""
    outputs = [output for cell in cells() for output in cell.get("outputs", ())]
    found = [
        output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    return base64.b64decode("".join(found[0]))


def _cells() -> list[str]:
    """The cells as Markdown; the title of the notebook becomes a section."""
    parts = []
    for cell in cells():
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(f"#{source}" if source.startswith("# ") else source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            else:
                parts.append(f"![Cylinder in a channel](pictures/{PICTURE.name})")
    return parts


def _reference() -> list[str]:
    """Headings, signatures and docstrings of the public names."""
    parts = _described("load_case", mpilbm.load_case)
    parts += _class("Simulation", Simulation, "sim")
    parts += _described("open_run", mpilbm.open_run)
    parts += _class("Run", Run, "run") + _class("Series", Series, "part")
    parts += _class("Table", Table, "table")
    errors = [name for name in mpilbm.__all__ if name.endswith("Error")]
    parts += ["### Errors", "All are exceptions in `mpilbm`, and derived from `MpilbmError`."]
    lines = [f"| `{name}` | {_first_line(getattr(mpilbm, name))} |" for name in errors]
    return [*parts, "\n".join(["| error | meaning |", "|---|---|", *lines])]


# For the command line, which adds signals and time limits.
INTERNAL = ("context", "march")


def _class(name: str, cls: type, instance: str) -> list[str]:
    """A class and its public members."""
    parts = _described(name, cls)
    for key, member in vars(cls).items():
        if not key.startswith("_") and key not in INTERNAL:
            parts += _described(f"{instance}.{key}", member)
    return parts


def _described(name: str, thing: Any) -> list[str]:
    """Heading, signature and docstring of a function, a class or a property."""
    text = inspect.getdoc(thing) or ""
    if isinstance(thing, property | cached_property):
        return [f"### {name}", text]
    signature = inspect.signature(thing)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for key, parameter in signature.parameters.items()
        if key != "self"
    ]
    call = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return [f"### {name}", f"    {name}{call}", text]


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


if __name__ == "__main__":
    write()

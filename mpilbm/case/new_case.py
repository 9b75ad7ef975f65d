"""The command `mpilbm new`: the cases that it offers, and the files that it writes."""

import difflib
import errno
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mpilbm.core.errors import CommandError, FileSystemError

FOLDER = Path(__file__).parent / "new" / "cases"
BUILT_IN = "cavity"  # the commented case below
PROPOSED = {  # cases that mpilbm/run/proposal writes for given data
    "external": "Flow past a body, proposed for --body, --speed and --fluid in SI",
    "internal": "Flow through a pipe, duct or passage, proposed for --body, --bore, --speed, …",
}


@cache
def titles() -> dict[str, str]:
    """{name: title} of all cases that `mpilbm new --template` writes; the commented one first."""
    found = {BUILT_IN: "Lid-driven cavity, Re = 100; a comment for each key; 2D or 3D"}
    found |= PROPOSED
    for path in sorted(FOLDER.glob("*.toml")):
        found[path.stem] = tomllib.loads(path.read_text(encoding="utf-8"))["title"]
    return found


def listing() -> list[str]:
    """A line for each case: its name and title."""
    width = max(map(len, titles()))
    return [f"{name:<{width}}  {title}" for name, title in titles().items()]


def text_of(name: str) -> str:
    """The text of a case; CommandError with the nearest name if there is no such case."""
    if name not in titles():
        near = difflib.get_close_matches(name, titles(), 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else "; `mpilbm new --list` describes them"
        raise CommandError(
            f"--template {name}: there is no such case; allowed: {', '.join(titles())}{hint}"
        )
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def inputs(text: str) -> list[Path]:
    """The paths of files in a case, relative to its folder, such as masks and tables of values.

    Every text in the case that is the name of an existing file, or a file name with a dataset.
    """
    texts = dict.fromkeys(each.partition(":")[0] for _, each in _texts(tomllib.loads(text)))
    paths = [Path(each) for each in texts if each and len(each) < 200]
    return [path for path in paths if not path.is_absolute() and (FOLDER / path).is_file()]


def missing(text: str) -> list[str]:
    """The files of bodies that do not come with a case; its comment states how to make them."""
    found = _texts(tomllib.loads(text).get("body", []))
    names = [name.partition(":")[0] for key, name in found if key in ("mask", "file")]
    return [name for name in dict.fromkeys(names) if not (FOLDER / name).is_file()]


def _texts(part: Any, key: str | int = "") -> Iterator[tuple[str | int, str]]:
    """All texts in a table, each with its own key."""
    if isinstance(part, str):
        yield key, part
    elif isinstance(part, dict | list):
        for inner, each in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _texts(each, inner)


TEXT = """\
# {name}: flow in a box under a sliding lid. Check it with `mpilbm check {file}`,
# run it with `mpilbm run {file}` or `mpirun -n 2 mpilbm run {file}`,
# plot it with `mpilbm plot {name}.out`. All numbers are in lattice units: the side of a cell is 1,
# and a step takes 1. `mpilbm list` shows all values of the keys `name`. `--set run.steps=100` on
# the command line overrides a key.

title = "Lid-driven cavity, Re = 100"

[lattice]
{lattice:<34} # velocity set

[domain]
{size:<34} # fluid cells along {axes}
{periodic:<34} # periodic directions

[fluid]
reynolds = 100                     # velocity * length / viscosity; or give viscosity itself
{length:<34} # cells
velocity = 0.1                     # cells per step; errors grow with its square; 0.1 is usual

[collision]
{collision:<34} # stable on coarse grids; on fine grids "trt" places walls better

# [force]                          # force per volume on the fluid
# name = "guo"
# value = {force}

[precision]
compute = "float32"                # arithmetic: "float32" or "float64"
storage = "float32"                # memory

[layout]
name = "auto"                      # the fastest on the device that fits its memory

[initial]
rho = 1.0                          # numbers, or formulas of x, y, z (cell centres), nx, ny, nz:
{u:<34} # e.g. "0.05*sin(2*pi*x/nx)"

# Each face that is not periodic belongs to one [[boundary]]; here the wall at rest owns the edges.
[[boundary]]
name = "bounce_back"               # wall at rest, half a cell outside the last cells
where = {walls}

[[boundary]]
name = "bounce_back"               # wall that moves in its plane
where = ["{lid}"]
velocity = {velocity}

# [[body]]                         # solid in the flow
# label = "obstacle"
# shape = {{name = "{shape}", centre = {centre}, radius = 6.5}}
# boundary = {{name = "bounce_back"}}

[run]
steps = {steps}
steady = {{every = 500, tolerance = 1e-6}}   # stop when the flow is steady

[[output]]
name = "snapshot"                  # rho and u, for ParaView, PyVista and `mpilbm plot`
every = {every}

[[output]]
name = "monitor"                   # mass, energy and largest speed in monitor.csv
every = 100

[[output]]
name = "checkpoint"                # continue with: mpilbm run {file} --restart auto
every = {every}
keep = 2
"""

VARIANTS: dict[int, dict[str, str | int]] = {
    2: {
        "lattice": 'name = "D2Q9"',
        "collision": 'name = "central_moment"',
        "size": "size = [64, 64]",
        "axes": "x, y",
        "periodic": "periodic = [false, false]",
        "length": "length = 64",
        "force": "[1e-6, 0]",
        "u": "u = [0, 0]",
        "walls": '["x-", "x+", "y-"]',
        "lid": "y+",
        "velocity": "[0.1, 0]",
        "shape": "cylinder",
        "centre": "[32, 32]",
        "steps": 20000,
        "every": 5000,
    },
    3: {
        "lattice": 'name = "D3Q19"',
        "collision": 'name = "mrt"',
        "size": "size = [32, 32, 32]",
        "axes": "x, y, z",
        "periodic": "periodic = [false, false, false]",
        "length": "length = 32",
        "force": "[1e-6, 0, 0]",
        "u": "u = [0, 0, 0]",
        "walls": '["x-", "x+", "y-", "y+", "z-"]',
        "lid": "z+",
        "velocity": "[0.1, 0, 0]",
        "shape": "sphere",
        "centre": "[16, 16, 16]",
        "steps": 10000,
        "every": 2000,
    },
}


def write(
    name: Path | None,
    dimensions: int | None = None,
    case: str = BUILT_IN,
    options: Sequence[str] = (),
) -> list[str]:
    """Write the named case to NAME.toml, and the files that it reads beside it.

    `dimensions` are those of the built-in case, 2 by default; `options`, of PROPOSED alone, are
    refused. Returns a line for each file; the first one names the files that the user must provide.
    CommandError if a file exists or no case has this name.
    """
    path = path_of(name)
    if dimensions and case != BUILT_IN:
        raise CommandError(f"--dimensions {dimensions}: applies to the template cavity; remove it")
    if options:
        raise CommandError(
            f"{options[0]}: applies to the templates {' and '.join(PROPOSED)}; remove it, or add "
            "--template external"
        )
    if case == BUILT_IN:
        text = TEXT.format(name=path.stem, file=path, **VARIANTS[dimensions or 2])
        files = {}
    else:
        text = text_of(case)
        files = {path.parent / each: FOLDER / each for each in inputs(text)}
    absent = missing(text)
    create(path, text.encode())
    for target, source in files.items():
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            create(target, source.read_bytes())
    first = f"; the comment on top states how to make {', '.join(absent)}" if absent else ""
    note = f"{path}{first}; try: mpilbm check {path}; mpilbm run {path}"
    return [note, *map(str, files)]


def path_of(name: Path | None) -> Path:
    """NAME.toml; CommandError for a name that cannot be that of a file."""
    if name is None:
        raise CommandError("new: the name of the new case is missing; try: mpilbm new cavity")
    if not name.name or not str(name).isprintable():
        raise CommandError(f"new {name}: is not a name for a file; try: mpilbm new cavity")
    return name if name.suffix == ".toml" else name.with_name(name.name + ".toml")


def create(path: Path, content: bytes) -> None:
    """Write a new file; CommandError if it exists or its folder does not."""
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise CommandError(f"{path}: exists; choose another name or remove it first") from error
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise CommandError(
                f"{path}: there is no folder {path.parent}; create it first"
            ) from error
        raise FileSystemError(f"{path}: {error.strerror}; choose another place") from error

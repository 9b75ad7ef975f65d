"""A flow past a body or through a passage in SI, from the options of `mpilbm new`."""

from dataclasses import dataclass
from math import ceil
from os.path import isfile, relpath
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from mpilbm.case.quantities import UnitError, in_si, in_words, parts
from mpilbm.case.tables.units import SUBSTANCES, UnitsTable
from mpilbm.core.errors import CommandError
from mpilbm.core.units import DENSITY, LENGTH, VELOCITY, VISCOSITY, Dimension
from mpilbm.physics.boundaries import FACES
from mpilbm.run.proposal.options import Given
from mpilbm.run.proposal.scheme import Kind, Resolution, cells_along
from mpilbm.solids.surfaces import read
from mpilbm.solids.surfaces.findings import METRES

SHAPES: dict[str, tuple[str, ...]] = {"external": ("sphere",), "internal": ("pipe", "duct")}
FLAT = "duct"  # the shape whose walls are faces of the box
OTHER = {"external": ("bore", "inlet", "outlet"), "internal": ("ground", "blockage")}
DIAMETERS = 10  # length of a pipe or duct without --length
BLOCKAGE = 0.05  # above which the sides of the box change the forces, see surfaces/findings.py
GPU_MEMORY = 80.0  # GB
WIDER = 1.1  # bore over the width of the passage: edges of a mesh cut its corners
LEAST, LARGEST = 1e-20, 1e20  # of quantities in SI
Sides = tuple[float, float, float]


@dataclass(frozen=True)
class Flow:
    """The data of a proposal; lengths in m, speed in m/s, viscosity in m^2/s.

    shape       sphere, pipe, duct, or the file of a mesh relative to the case
    size        keys of the shape `mesh` that give its size; empty for others
    sides       of the bounding box of the body or passage
    length      of the Reynolds number: the longest side, or the bore
    substance   keys of [units] and [fluid] that set density and viscosity
    ground      gap between the body and a moving road; None without one
    faces       of the inlet and the outlet
    """

    kind: Kind
    shape: str
    size: dict[str, str]
    sides: Sides
    length: float
    speed: float
    viscosity: float
    substance: tuple[dict[str, str], dict[str, str]]
    ground: float | None
    faces: tuple[str, str]
    cells: int
    blockage: float
    gpu_memory: float

    @property
    def reynolds(self) -> float:
        """The Reynolds number."""
        return self.speed * self.length / self.viscosity

    @property
    def slender(self) -> float:
        """The longest side of a body over its shortest one; 1 of a passage."""
        return _slender(self.kind, self.sides)

    def resolution(self, cell: float) -> Resolution:
        """How finely cells of this side resolve it."""
        cells = self.length / cell
        return Resolution(self.kind, self.reynolds, cells, self.shape == FLAT, cells / self.slender)


def flow_of(kind: Kind, given: Given, folder: Path) -> Flow:
    """The flow of the options; `folder` is that of the case. Raises CommandError."""
    for key in OTHER[kind]:
        if getattr(given, key) is not None:
            raise CommandError(f"--{key}: is not of the template {kind}; remove it")
    shape = _shape(kind, given.body)
    speed = _needed("--speed", given.speed, VELOCITY, "40 m/s")
    bore = _needed("--bore", given.bore, LENGTH, "25 mm") if kind == "internal" else 0.0
    length = _positive("--length", given.length, LENGTH, "1.2 m")
    size: dict[str, str] = {}
    if shape in SHAPES[kind]:
        if given.unit is not None:
            raise CommandError(f"--unit: is of a file, and {shape} is a shape; remove it")
        sides = _sides_of_shape(shape, length, bore)
    else:
        size, sides = _surface(Path(shape), given.unit, given.length, length)
        shape = relpath(shape, folder)
    substance, nu = _substance(given)
    reference = bore or max(sides)
    slender = _slender(kind, sides)
    cells = given.cells or cells_along(kind, speed * reference / nu, shape == FLAT, slender)
    ground = _positive("--ground", given.ground, LENGTH, "50 mm")
    faces = _faces(given, shape in SHAPES[kind])
    if cells < slender:
        raise CommandError(
            f"--body {shape}: its shortest side is {cells / slender:.2g} cells; allowed: at least "
            f"one; give --cells {ceil(slender)} or more, or a thicker body"
        )
    if kind == "internal":
        _check_bore(bore, sides, faces[0], shape in SHAPES[kind])
    blockage, memory = given.blockage or BLOCKAGE, given.gpu_memory or GPU_MEMORY
    return Flow(
        kind, shape, size, sides, reference, speed, nu, substance, ground, faces, cells,
        blockage, memory,
    )  # fmt: skip


def _shape(kind: Kind, body: str | None) -> str:
    """The name of a shape, or of a file that exists."""
    allowed = f"a surface mesh ({', '.join(read.FORMATS)}) or {' or '.join(SHAPES[kind])}"
    if body is None:
        raise CommandError(f"--body: is missing; the template {kind} requires {allowed}")
    if body not in SHAPES[kind] and not isfile(body):
        raise CommandError(f"--body {body}: there is no such file; give {allowed}")
    return body


def _sides_of_shape(shape: str, length: float | None, bore: float) -> Sides:
    """The sides of a sphere, pipe or duct."""
    if bore:
        return length or DIAMETERS * bore, bore, bore
    if length is None:
        raise CommandError(f"--length: is missing; a {shape} requires it, such as --length '10 mm'")
    return length, length, length


def _surface(
    path: Path, unit: str | None, text: str | None, length: float | None
) -> tuple[dict[str, str], Sides]:
    """The key of `mesh` that gives its size, and the sides of a surface."""
    if (unit is None) == (length is None):
        found = "neither" if unit is None else "both"
        raise CommandError(
            f"--body {path}: found {found} of --unit and --length; give one: the unit of the file, "
            f"{', '.join(METRES)}, or the longest side of the body"
        )
    if unit is not None and unit not in METRES:
        raise CommandError(f"--unit {unit}: is not a unit of a file; allowed: {', '.join(METRES)}")
    try:
        vertices = read.read(path, repair=False).vertices
    except ValueError as error:
        raise CommandError(f"--body {path}: {error}") from None
    extent = np.ptp(vertices, axis=0)
    scale = METRES[unit] if unit else (length or 1) / float(extent.max())
    x, y, z = (float(each) * scale for each in extent)
    if not min(x, y, z) > 0:
        raise CommandError(f"--body {path}: is flat; allowed: a body with a volume")
    return ({"unit": unit} if unit else {"length": text or ""}), (x, y, z)


def _substance(given: Given) -> tuple[tuple[dict[str, str], dict[str, str]], float]:
    """The keys of [units] and [fluid] that set the fluid, and its viscosity in m^2/s."""
    known = " or ".join(SUBSTANCES)
    own = given.viscosity, given.density
    if given.fluid is None and None not in own:
        nu = _needed("--viscosity", own[0], VISCOSITY, "1e-6 m^2/s")
        _needed("--density", own[1], DENSITY, "998 kg/m^3")
        if given.temperature is not None:
            raise CommandError("--temperature: is that of --fluid; remove it, or name a fluid")
        return ({"density": str(own[1])}, {"viscosity": str(own[0])}), nu
    if given.fluid is None or own != (None, None):
        raise CommandError(
            f"--fluid: found {' and '.join(given.names) or 'no option'}; give either --fluid "
            f"{known}, or --viscosity and --density of another fluid"
        )
    if given.fluid not in SUBSTANCES:
        raise CommandError(
            f"--fluid {given.fluid}: is not a known fluid; allowed: {known}; or give --viscosity "
            "and --density in its place"
        )
    keys = {"fluid": given.fluid}
    table: dict[str, object] = {"cell": 1.0, "step": 1.0, **keys}
    if given.temperature is not None:
        kelvin = _si("--temperature", given.temperature, (0, 0, 0, 1), "20 degC")
        keys["temperature"], table["temperature"] = given.temperature, kelvin - 273.15
    try:
        nu = UnitsTable.model_validate(table).kinematic_viscosity or 0.0
    except ValidationError as error:
        raise CommandError(f"--temperature: {error.errors()[0]['msg'][13:]}") from None
    return (keys, {}), nu


def _slender(kind: Kind, sides: Sides) -> float:
    ratio = max(sides) / min(sides) if kind == "external" else 1.0
    return float(f"{ratio:.6g}")  # corners of files have 7 digits


def _check_bore(bore: float, sides: Sides, inlet: str, is_shape: bool) -> None:
    """CommandError for a bore that is wider than the passage, or longer than a pipe or duct."""
    across = max(side for axis, side in zip("xyz", sides, strict=True) if axis != inlet[0])
    if bore > WIDER * across:
        raise CommandError(
            f"--bore: found {bore:g} m; the passage is at most {across:.3g} m wide across its "
            f"inlet {inlet}; give the diameter of the inlet, or another --unit"
        )
    if is_shape and sides[0] < bore:
        raise CommandError(
            f"--length: found {sides[0]:g} m; allowed: at least the bore, {bore:g} m; without "
            f"--length the proposal has {DIAMETERS} bores"
        )


def _faces(given: Given, is_shape: bool) -> tuple[str, str]:
    """The faces of the inlet and the outlet."""
    faces = given.inlet or "x-", given.outlet or "x+"
    for name, face in zip(("--inlet", "--outlet"), faces, strict=True):
        if face not in FACES:
            raise CommandError(f"{name} {face}: is not a face; allowed: {', '.join(FACES)}")
    if faces[0] == faces[1]:
        raise CommandError(f"--outlet {faces[1]}: is the face of the inlet; give another one")
    if is_shape and (given.inlet or given.outlet):
        raise CommandError("--inlet, --outlet: are those of a mesh; remove them")
    return faces


def _needed(name: str, text: str | None, dimension: Dimension, example: str) -> float:
    """A positive quantity in SI that must be given."""
    found = _positive(name, text, dimension, example)
    if found is None:
        raise CommandError(f"{name}: is missing; give a number with a unit, such as '{example}'")
    return found


def _positive(name: str, text: str | None, dimension: Dimension, example: str) -> float | None:
    """A positive quantity in SI; None if it is not given."""
    if text is None:
        return None
    found = _si(name, text, dimension, example)
    if not LEAST <= found <= LARGEST:
        raise CommandError(f"{name} '{text}': allowed: above 0 and finite, such as '{example}'")
    return found


def _si(name: str, text: str, dimension: Dimension, example: str) -> float:
    """A quantity in SI."""
    pair = parts(text)
    if pair is None:
        raise CommandError(f"{name} '{text}': is no number with a unit; write it as '{example}'")
    try:
        found, unit = in_si(*pair)
    except UnitError as error:
        raise CommandError(f"{name} '{text}': {error}; write it as '{example}'") from None
    if unit != tuple(dimension):
        raise CommandError(f"{name} '{text}': has the unit {in_words(unit)}; allowed: '{example}'")
    return found

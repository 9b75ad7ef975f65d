"""The solid voxels of a scan, from a volume file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field

from mpilbm.core.errors import CaseError
from mpilbm.core.files import file_state
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.solids import Flags, Ints
from mpilbm.solids.shapes import Corners, Flow, Shape
from mpilbm.solids.volumes import Source
from mpilbm.solids.volumes.formats import absolute, located, open_volume
from mpilbm.solids.volumes.solid_planes import SolidPlanes
from mpilbm.solids.volumes.spacing import cubic

Order = Literal["xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xy", "yx"]
Index = Ints

LABELS = 8  # different values above which a scan is probably not segmented
CLOSED = 0.01  # porosity below which it cannot be meant


@dataclass(frozen=True)
class Placement:
    """The place of a volume along one axis of the box.

    count   cells of the volume after cropping and coarsening
    refine  cells of the box for each of them
    mirror  whether a mirrored copy follows
    pad     fluid cells before the volume and behind it
    at      the lower end in the box
    """

    count: int
    refine: int
    mirror: bool
    pad: int
    at: float

    @property
    def size(self) -> int:
        """The number of cells in the box, with fluid cells at both ends."""
        return self.count * self.refine * (1 + self.mirror) + 2 * self.pad

    def source(self, points: Any) -> Ints:
        """The cell of the volume at each coordinate, -1 outside; shape of `points`."""
        k = np.floor(np.asarray(points, np.float64) - self.at).astype(np.int64) - self.pad
        half = self.count * self.refine
        outside = (k < 0) | (k >= half * (1 + self.mirror))
        k = np.where(k >= half, 2 * half - 1 - k, k) // self.refine
        return np.where(outside, -1, k)


@register("shapes", "voxels")
class Voxels(Shape):
    """The solid voxels of a file, an array [z, y, x], in 2D [y, x] or an image; a cell per voxel.

    Formats by the ending of `file`: `.npy`; `.npz` and HDF5 (`.h5`, `.hdf5`, `.vtkhdf`), with the
    array as `file.h5:name` unless it is the only one; `.tif`, `.tiff`; `.raw` with `size`, `type`
    and `order`; `.nrrd`, `.nhdr`; `.mhd`, `.mha`; `.png`, `.bmp`; and a folder of images, which are
    the planes in the natural order of their names. Index 0 is at x, y, z = 0, so the first row of
    an image is y = 0. Images and TIFF require `pip install 'mpilbm[scans]'`.

    The volume is resampled, cropped, coarsened or refined, mirrored, padded and placed, in this
    order. Cells outside it are fluid. `domain.size` is not changed; `check` reports a volume of
    another size. The spacing of voxels is read from `.nrrd`, `.mhd`, `.mha`, HDF5, images and
    TIFF. Values are grey values: those of images in which 0 is white are inverted, and grey
    palettes are applied.

    Files are mapped into memory, or read plane by plane. Each rank reads the planes of its slab; a
    compressed `.npz`, `.nrrd` or `.mha` is decompressed up to these planes. Voxels have no surface
    between cells, so every wall is half-way along its link (q = 1/2).
    """

    file: str = Field(description="file, file:array, or folder", examples=["rock.tif"])
    solid: str | tuple[int, ...] | None = Field(
        None,
        description="solid values: a comparison (<, <=, >, >=, ==, !=), a range with both ends, or "
        "a list of labels; default: all but 0",
        examples=[">= 128", "100 .. 200", [1, 3]],
    )
    size: tuple[int, ...] | None = Field(
        None, description="voxels along x, y, z; only for .raw", examples=[[512, 512, 512]]
    )
    type: str = Field("", description="NumPy type; only for .raw", examples=[">u2"])
    order: Order | None = Field(
        None,
        description="axes from the fastest to the slowest in the file; only for .raw; default: x "
        "is the fastest",
        examples=["zyx"],
    )
    at: Annotated[tuple[float, ...] | None, LENGTH] = Field(
        None,
        description="lower corner in the box; default: 0; a cell is solid if its centre lies in a "
        "solid voxel",
        examples=[[10, 0, 0]],
    )
    crop: tuple[tuple[int, int], ...] | None = Field(
        None,
        description="first voxel and last voxel + 1 along x, y, z; default: all",
        examples=[[[0, 256], [0, 256], [100, 356]]],
    )
    resample: bool | None = Field(
        None,
        description="for a file whose spacing says that voxels are no cubes: true replaces them by "
        "cubes of the shortest side, by the nearest voxel; false uses each voxel as a cube; "
        "default: the file is refused",
        examples=[True],
    )
    coarsen: int = Field(
        1,
        ge=1,
        description="voxels per cell along each axis; a cell is solid if at least half of its "
        "voxels are",
        examples=[2],
    )
    refine: int = Field(1, ge=1, description="cells per voxel along each axis", examples=[2])
    mirror: tuple[bool, ...] | None = Field(
        None,
        description="axes along which a mirrored copy is appended, which makes the body periodic",
        examples=[[True, False, False]],
    )
    pad: Annotated[int | tuple[int, ...], LENGTH] = Field(
        0, description="fluid cells at both ends of all axes, or of each", examples=[[10, 0, 0]]
    )

    @property
    def has_surface(self) -> bool:
        """False: the wall is half-way between fluid and solid cells."""
        return False

    def files(self) -> list[Path]:
        """The file of the volume."""
        return [self._source(Path()).path]

    def resolved(self, case: Case) -> Self:
        """The shape with an absolute path; ValueError for an invalid file or option."""
        self._require_options(case)
        source = self._source(case.directory)
        entries = {"at": (0,) * case.dimensions, "mirror": (False,) * case.dimensions}
        filled = {key: getattr(self, key) or value for key, value in entries.items()}
        found = self.model_copy(update={"file": absolute(source)} | filled)
        try:
            found._planes()  # reads the header
        except ValueError as error:
            raise ValueError(f"'{self.file}' {error}") from None
        return found

    def problems(self, case: Case) -> list[str]:
        """A wrong number of entries."""
        keys = [key for key in ("size", "at", "crop", "mirror") if getattr(self, key) is not None]
        return self.wrong_lengths(case, *keys, *["pad"] * isinstance(self.pad, tuple))

    def findings(self, case: Case, where: str, flow: Flow) -> list[Finding]:
        """How the file is understood, grey values without `solid`, another size than the box."""
        with self._messages():
            notes = [Finding(NOTE, f"{where}.file", text) for text in self._planes().volume.notes]
            return notes + self._grey(f"{where}.solid") + self._misplaced(case, f"{where}.file")

    def contents(self) -> list[tuple[str, str]]:
        """The values of the voxels and their shares; the share that is solid."""
        with self._messages():
            return [self._planes().contents]

    def _grey(self, where: str) -> list[Finding]:
        """A finding if `solid` is not given for a scan with many values."""
        if self.solid is not None or self._planes().volume.array.dtype.kind == "b":
            return []
        planes, values = self._planes(), self._planes().values
        if len(values.numbers) <= LABELS:
            return []
        porosity, limit = max(0.0, 1 - planes.solid_share), values.threshold_text
        dark = values.share(values.numbers < float(limit))
        text = (
            f"{len(values.numbers)} values, porosity {porosity:.3f}: all values but 0 are solid; "
            f"for a grey scan give solid = '>= {limit}' (threshold of Otsu, porosity {dark:.3f}), "
            f"or '< {limit}' if the solid is dark; for labels give solid = '!= 0'"
        )
        return [Finding(SERIOUS if porosity < CLOSED else WARNING, where, text)]

    def _misplaced(self, case: Case, where: str) -> list[Finding]:
        """A note if the volume and the box differ in size or place."""
        lower, upper = self.bounds()
        box = case.domain.size
        if all(a == 0 and b == n for a, b, n in zip(lower, upper, box, strict=True)):
            return []
        size, corner = (" x ".join(f"{n:.0f}" for n in each) for each in (self._size(), box))
        at = ", ".join(f"{a:g}" for a in lower)
        text = (
            f"the volume has {size} cells from ({at}), after crop, coarsen, refine, mirror and "
            f"pad; the box has {corner}: cells outside the volume are fluid, and cells of the "
            "volume outside the box are not used"
        )
        return [Finding(NOTE, where, text)]

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """Whether each point is in a solid voxel; CaseError for data that cannot be read."""
        points = (x, y) if z is None else (x, y, z)
        at = [place.source(p) for place, p in zip(self._places(), points, strict=True)]
        column, *row, slow = at
        with self._messages():
            return _looked_up(self._planes(), slow, [*row, column])

    def bounds(self) -> Corners:
        """The corners of the volume with its fluid cells."""
        lower = tuple(float(place.at) for place in self._places())
        return lower, tuple(a + n for a, n in zip(lower, self._size(), strict=True))

    @contextmanager
    def _messages(self) -> Iterator[None]:
        """Data that cannot be read become a CaseError with the name of the file."""
        try:
            yield
        except ValueError as error:
            raise CaseError(f"'{self.file}' {error}", "body.shape.file") from None

    def _size(self) -> tuple[int, ...]:
        return tuple(place.size for place in self._places())

    def _require_options(self, case: Case) -> None:
        """ValueError for options that contradict each other, or negative numbers."""
        for problem in self.problems(case):
            raise ValueError(problem)
        if min(self._pads(case.dimensions)) < 0:
            allowed = "allowed: 0 or more; remove voxels with crop"
            raise ValueError(f"pad = {self.pad} is negative; {allowed}")
        if self.coarsen > 1 and self.refine > 1:
            given = f"coarsen = {self.coarsen} and refine = {self.refine}"
            raise ValueError(f"has {given}; allowed: one of them; remove the other")

    def _pads(self, dimensions: int) -> tuple[int, ...]:
        return self.pad if isinstance(self.pad, tuple) else (self.pad,) * dimensions

    def _source(self, directory: Path) -> Source:
        path, item = located(directory, self.file)
        return Source(path, item, self.size, self.type, self.order or "")

    def _planes(self) -> SolidPlanes:
        source = self._source(Path())
        dimensions = len(self.at or "xyz")
        options = self.resample, self.solid, self.crop, self.coarsen
        return _opened(source, file_state(source.path), dimensions, *options)

    def _places(self) -> list[Placement]:
        counts = self._planes().shape[::-1]
        D = len(counts)
        mirror, corner = self.mirror or (False,) * D, self.at or (0,) * D
        each = zip(counts, mirror, self._pads(D), corner, strict=True)
        return [Placement(n, self.refine, copied, pad, at) for n, copied, pad, at in each]


@lru_cache(16)
def _opened(
    source: Source, state: Any, dimensions: int, resample: bool | None, *options: Any
) -> SolidPlanes:
    """The solid planes of a file; state: changes with its content."""
    return SolidPlanes(cubic(open_volume(source), dimensions, resample), dimensions, *options)


def _looked_up(planes: SolidPlanes, slow: Index, inner: list[Index]) -> Flags:
    """The solid cells at indices that broadcast; -1: fluid.

    slow: index of the plane; inner: (row, column) in it, in 2D (column,).
    """
    shape = np.broadcast_shapes(slow.shape, *(each.shape for each in inner))
    found = np.zeros(shape, bool)
    if len(shape) == 3 and slow.shape == (shape[0], 1, 1):  # a block of cells
        numbers = slow[:, 0, 0].tolist()
        for p, k in enumerate(numbers):
            if k >= 0:
                ahead = [each for each in numbers[p:] if each >= 0]
                part = [each[p if len(each) > 1 else 0] for each in inner]
                found[p] = _in_plane(planes.plane(k, ahead), part)
        return found
    slow, *inner = (each.reshape(-1) for each in np.broadcast_arrays(slow, *inner))
    for k in np.unique(slow[slow >= 0]).tolist():
        mine = np.flatnonzero(slow == k)
        found.reshape(-1)[mine] = _in_plane(planes.plane(k), [each[mine] for each in inner])
    return found


def _in_plane(plane: Flags, index: list[Index]) -> Flags:
    found = plane[tuple(index)]
    for each in index:
        found &= each >= 0
    return found

"""Base of the outputs that write fields of the box, or of a part of it, as VTKHDF ImageData."""

from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, create_model

from mpilbm.case.case import Case
from mpilbm.core.quantity import LENGTH
from mpilbm.core.units import counted
from mpilbm.model.findings import WARNING, Finding
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.images import COMPONENTS, field_problems, is_sparse
from mpilbm.outputs.images.device_part import reduces, scratch_bytes, sum_sizes
from mpilbm.outputs.images.part import Part
from mpilbm.outputs.images.writer import ImageWriter, Style
from mpilbm.solver.fields.point_fields import point_bytes, point_roles
from mpilbm.solver.fields.staging import Staging


class ImageOutput(Scheduled):
    """Base of the outputs whose files contain fields of a part of the box.

    A subclass implements `part`.
    """

    free: ClassVar[tuple[str, ...]] = ("fields", "type", "compression", "background")

    fields: tuple[str, ...] = Field(
        ("rho", "u"),
        description="rho, u, pressure, vorticity, q_criterion, scalars, and fields of the "
        "coupling or of moving bodies",
        examples=[["rho", "u", "vorticity"]],
    )
    type: Literal["float16", "float32"] | None = Field(
        None,
        description="type of the numbers in the file; without it: precision.compute. float16 has "
        "11 significant bits and no numbers above 65504",
        examples=["float32"],
    )
    compression: Literal["gzip"] | None = Field(
        None,
        description="compress each plane of a field",
        examples=["gzip"],
    )
    background: bool = Field(
        True, description="continue the time steps while the file is written, if possible"
    )

    def part(self, case: Case) -> Part:
        """The cells in the file."""
        raise NotImplementedError

    def stem(self, case: Case) -> str:
        """The first part of the file names."""
        return f"{self.name}_{self.label_in(case)}"

    def part_problems(self, case: Case) -> list[str]:
        """Why there is no part; else `part` can be called."""
        return []

    def problems(self, case: Case) -> list[str]:
        """Unknown fields, and a part that is not in the box."""
        found = super().problems(case) + field_problems(self.fields, case)
        return found + self.part_problems(case)

    def warnings(self, case: Case) -> list[Finding]:
        """Findings: float16 loses the differences of densities."""
        found = super().warnings(case)
        if self.type == "float16" and "rho" in self.fields:
            lost = "densities near rho_0 are stored in steps of rho_0 / 2000"
            sentence = f'found "float16" with rho: {lost}, in which most differences of pressure '
            sentence += 'are lost; use "float32", or fields without rho'
            found.append(Finding(WARNING, "type", sentence))
        return found

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernels of its fields; one kernel computes rho and u. None if there is no part."""
        if self.part_problems(case):  # other checks of a case with errors ask, too
            return ()
        if is_sparse(case, self.part(case)):
            return point_roles(case, self.fields)
        own = list(case.own_fields)
        names = {"rho": "fields", "u": "fields"}
        names |= {name: f"output_{k}" for k, name in enumerate(own)}
        return tuple(names.get(name, name) for name in self.fields)

    def disk_bytes(self, case: Case, times: int) -> int:
        """All files; none is removed. Compressed files are smaller."""
        values = sum(COMPONENTS.get(name, 1) for name in dict.fromkeys(self.fields))
        itemsize = np.dtype(self.type or case.precision.compute).itemsize
        return times * prod(self.part(case).shape) * (values * itemsize + bool(case.bodies))

    def device_bytes(self, case: Case, planes: int) -> int:
        """Lists of cells and their fields, or scratch memory of a device that is no CPU."""
        part, names = self.part(case), tuple(dict.fromkeys(self.fields))
        if not is_sparse(case, part):
            own_memory = case.backend.name != "cpu" and reduces(case, part)
            return scratch_bytes(case, part, names, planes) if own_memory else 0
        cells = part.rows.count * part.x.count * prod(part.stride)
        return point_bytes(case, self.fields, cells * min(planes, part.planes.count))

    def staged_bytes(self, case: Case) -> int:
        """The sums of a plane of blocks, which have double precision."""
        part = self.part(case)
        if part.stride == (1, 1, 1):
            return 0
        return Staging.bytes_of(sum_sizes(case, part, tuple(dict.fromkeys(self.fields))))

    def stages(self, case: Case) -> bool:
        """Threads write copies."""
        return True

    def open(self, context: Context) -> ImageWriter:
        """The writer of a run."""
        style = Style(
            fields=tuple(dict.fromkeys(self.fields)),
            kind=self.type,
            compress=self.compression is not None,
            background=self.background,
        )
        return ImageWriter(context, self.part(context.case), self.stem(context.case), style)


Stride = int | tuple[int, ...]


class Strided(ImageOutput):
    """Base of image outputs that may write means over blocks of cells."""

    stride: Annotated[Stride, Field(union_mode="left_to_right")] = Field(
        1,
        description="write means over the fluid cells of blocks of so many cells along each axis, "
        "or a number for each axis; of `body` the largest number in the block; cells at the end "
        "that do not fill a block are left out",
        examples=[2],
    )

    def strides(self, case: Case) -> tuple[int, ...]:
        """The stride along each axis."""
        given = self.stride
        return (given,) * case.dimensions if isinstance(given, int) else given

    def stride_problems(self, case: Case) -> list[str]:
        """Strides that are not positive, or not one for each axis."""
        found = self.strides(case)
        if len(found) != case.dimensions or min(found) < 1:
            allowed = f"a positive number of cells, or {case.dimensions} of them"
            return [f"stride: found {self.stride}; allowed: {allowed}"]
        return []


def box_problems(
    case: Case, low: Any, high: Any, stride: tuple[int, ...], key: str = ""
) -> list[str]:
    """Why positions from `low` to `high` are not a part of the box with at least one block."""
    D, size, found = case.dimensions, case.domain.size, []
    for name, point in ((f"{key}from", low), (f"{key}to", high)):
        if len(point) != D:
            found.append(f"{name}: found {counted(len(point), 'coordinate')}; allowed: {D}")
        elif not all(0 <= x <= n for x, n in zip(point, size, strict=True)):
            found.append(
                f"{name}: found {_shown(point)}; allowed: positions in the box, from 0 to "
                f"{_shown(size)}"
            )
    if found:
        return found
    for k, (a, b, n) in enumerate(zip(low, high, size, strict=True)):
        if a > b or a == n:
            return [
                f"{key}from: found {_shown(low)} and {key}to = {_shown(high)}; allowed: from < to "
                f"along {'xyz'[k]}, below the size {n}"
            ]
    for axis, a, b, s in zip("xyz", low, high, stride, strict=False):
        cells = max(1, int(np.ceil(b)) - int(np.floor(a)))
        if s > cells:
            most = f"{cells} at most, the cells of the part"
            return [f"stride: found {s} along {axis}; allowed: {most}"]
    return []


def _shown(point: Any) -> str:
    return f"[{', '.join(f'{x:g}' for x in point)}]"


if TYPE_CHECKING:
    BetweenPoints = ImageOutput
    StridedBetweenPoints = Strided
else:  # `from` is a keyword of Python
    ENDS = {}
    for name, end, example in (("from", "first end", [0, 8.5]), ("to", "other end", [64, 8.5])):
        text = f"position of the {end}; cell k is between k and k + 1"
        field = Field(description=text, examples=[example])
        ENDS[name] = Annotated[tuple[float, ...], LENGTH], field
    BetweenPoints = create_model("BetweenPoints", __base__=ImageOutput, __module__=__name__, **ENDS)
    StridedBetweenPoints = create_model(
        "StridedBetweenPoints", __base__=Strided, __module__=__name__, **ENDS
    )


def ends_of(output: ImageOutput) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The positions `from` and `to`."""
    values = output.model_dump(include={"from", "to"})
    return values["from"], values["to"]

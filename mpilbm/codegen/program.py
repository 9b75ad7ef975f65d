"""What the generator hands to a backend: one text, and a description of each kernel in it."""

import json
from dataclasses import asdict, dataclass

OF = "_of_{}"  # ends the names of what belongs to one of several coupled fluids


@dataclass(frozen=True)
class Access:
    """One value of a field that a kernel touches: its slot, at an offset from the cell.

    `offset` is (plane, row, x); `buffer` is the name of the field's grid ("f", "u"), whichever of
    the field's arrays is meant.
    """

    buffer: str
    slot: int
    offset: tuple[int, int, int]


@dataclass(frozen=True)
class Argument:
    """A parameter of a kernel: a pointer ("store*", "real*", "int64*", …) or a number."""

    name: str
    type: str


@dataclass(frozen=True)
class Kernel:
    """A function of the text; `over` is what it loops over: cells, rows or entries."""

    name: str
    over: str
    arguments: tuple[Argument, ...]
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()


@dataclass(frozen=True)
class Program:
    """Kernel text (C11 and CUDA alike) with what a solver must know of it.

    `sweep`: CUDA text of a kernel that does on a GPU what collide_stream_0 does, or nothing.
    """

    text: str
    kernels: dict[str, Kernel]
    compute: str
    storage: str
    sweep: str = ""

    def to_json(self) -> str:
        """Everything as text, for the cache and for the broadcast among ranks."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Program":
        """The inverse of `to_json`."""
        data = json.loads(text)
        data["kernels"] = {name: _kernel(entry) for name, entry in data["kernels"].items()}
        return cls(**data)


def _kernel(entry: dict) -> Kernel:
    touched = {
        way: tuple(Access(a["buffer"], a["slot"], tuple(a["offset"])) for a in entry[way])
        for way in ("reads", "writes")
    }
    arguments = tuple(Argument(**argument) for argument in entry["arguments"])
    return Kernel(entry["name"], entry["over"], arguments, **touched)

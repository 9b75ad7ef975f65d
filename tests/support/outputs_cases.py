"""For tests of output files: a small case, and a solver with its planes as NumPy arrays."""

import os
from contextlib import nullcontext
from types import SimpleNamespace

import h5py
import numpy as np

from mpilbm.case.case import parse_case
from mpilbm.outputs import Context
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.solver.populations import Group
from mpilbm.storage import planes

THREE = (5, 4, 7)
TWO = (5, 6)


def make_case(size=THREE, outputs=(), **more):
    """A case of that size; `more` replaces tables."""
    tables = {
        "title": "files",
        "lattice": {"name": "D3Q19" if len(size) == 3 else "D2Q9"},
        "domain": {"size": list(size), "periodic": [True] * len(size)},
        "fluid": {"viscosity": 0.1},
        "run": {"steps": 100},
        "backend": {"name": "cpu"},
        "output": list(outputs),
    }
    return parse_case(tables | more, "files.toml")


class FakeCopies:
    """Copies that are made at once, of the blocks of a PlaneFile."""

    def __init__(self, read):
        self.read = read

    def blocks(self, count):
        step = 1 if planes.BLOCK_BYTES == 1 else 3
        return [(begin, min(begin + step, count)) for begin in range(0, count, step)]

    def start(self, begin, end):
        return nullcontext(self.read(begin, end))


class FakeSolver:
    """A solver whose values depend on the global cell and on `steps` only."""

    field_names = ("rho", "u", "vorticity", "q_criterion")
    device = SimpleNamespace(unified=True, opaque=False)

    def __init__(self, case, slab, steps=0):
        self.case, self.slab, self.steps = case, slab, steps
        self.Q, self.D = case.lattice.Q, case.lattice.D
        self.dtype = np.dtype(case.precision.compute)
        storage = case.precision.storage
        self.state_groups = (Group("", self.Q, storage),)
        self.f = self.numbers(self.Q, storage, 1).transpose(0, 3, 1, 2).copy()
        self.bad, self.before = None, 0.0
        self.entry_states = ()
        self.moving = None

    def numbers(self, components, dtype, seed):
        planes, rows, nx = self.slab.shape
        cells = np.random.default_rng([seed, self.steps]).random((planes, rows, nx, components))
        return (cells[self.slab.begin : self.slab.end] - 0.5).astype(dtype)

    def fields(self, names, begin, end):
        found = {
            "rho": self.numbers(1, self.dtype, 2)[..., 0],
            "u": self.numbers(self.D, self.dtype, 3) / 10,
            "vorticity": self.numbers(3, self.dtype, 4)[..., : 3 if self.D == 3 else 1],
        }
        if self.D == 2:
            found["vorticity"] = found["vorticity"][..., 0]
        if self.bad:
            plane, row, x = self.bad
            if 0 <= plane - self.slab.begin < self.slab.planes:
                found["u"][plane - self.slab.begin, row, x, 0] = np.nan
        return {name: found[name][begin:end] for name in names}

    def prepare(self, names):
        pass

    def copies(self, ahead, host_bytes, plane_bytes=0):
        return SimpleNamespace(
            fields=lambda names: FakeCopies(lambda *planes: self.fields(names, *planes)),
            state=lambda label: FakeCopies(lambda *planes: {"f": self.read_state(label, *planes)}),
        )

    sum_names = "mass", "momentum_x", "max_speed", "nonfinite"

    def start_sums(self):
        fields = self.fields(("rho", "u"), 0, self.slab.planes)
        rho, u = fields["rho"].astype(float), fields["u"].astype(float)
        speed = np.sqrt((u**2).sum(axis=3)).max(axis=(1, 2))
        nonfinite = (~np.isfinite(u)).any(axis=3).sum(axis=(1, 2))
        columns = [rho.sum(axis=(1, 2)), u[..., 0].sum(axis=(1, 2)), speed, nonfinite]
        return lambda: np.stack(columns, axis=1)

    def start_change(self):
        before = self.before
        self.before = self.fields(("u",), 0, self.slab.planes)["u"].astype(float)
        changes = [np.sum((self.before - before) ** 2, (1, 2, 3)), (self.before**2).sum((1, 2, 3))]
        return lambda: np.stack(changes, axis=1)

    def speeds(self):
        return tuple(self.start_sums()().T[2:])

    def read_state(self, label, begin, end):
        return self.f[begin:end]

    def write_state(self, label, begin, array, step):
        self.f[begin : begin + len(array)] = array

    def resume(self, step):
        self.steps = step

    def solid(self, begin, end):
        rows, nx = self.slab.shape[1:]
        solid = np.zeros((end - begin, rows, nx), bool)
        if self.case.bodies and self.slab.begin + begin <= 2 < self.slab.begin + end:
            solid[2 - self.slab.begin - begin, 0, 1] = True
        return solid


BODY = [
    {
        "label": "ball",
        "shape": {"name": "box", "lower": [1, 0, 2], "upper": [2, 1, 3]},
        "boundary": {"name": "bounce_back"},
    }
]


def make_context(directory, case=None, comm=None, first_step=0, steps=0):
    """The context of a writer, with a FakeSolver."""
    case, comm = case or make_case(), comm or Serial()
    slabs = split(case.shape, comm.size, True)
    slab = slabs[comm.rank]
    solver = FakeSolver(case, slab, steps)
    return Context(
        case=case, slab=slab, slabs=slabs, comm=comm, solver=solver, directory=directory,
        first_step=first_step,
    )  # fmt: skip


def flip_bit(path, place: int, bit: int = 0):
    """Flip a bit of a file."""
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def offset_of(path, name: str) -> int:
    """The offset of the values of a dataset in its file, in bytes."""
    with h5py.File(path) as file:
        return file[name].id.get_offset()


def damage(path, how):
    """Damage a checkpoint in one of several ways."""
    size = path.stat().st_size
    if how == "cut short":
        os.truncate(path, size // 2)
    elif how == "no checkpoint":
        path.write_bytes(b"text")
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "zeros":
        path.write_bytes(bytes(size))
    elif how == "more":
        path.write_bytes(path.read_bytes() + b"more")
    elif how == "no digest":  # as HDF5 leaves a file that it opened for writing
        with h5py.File(path, "r+") as file:
            file.attrs["step"] = file.attrs["step"]
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "solid":
        flip_bit(path, offset_of(path, "solid.crc32"))
    else:
        flip_bit(path, offset_of(path, "fluid/f") + 4)

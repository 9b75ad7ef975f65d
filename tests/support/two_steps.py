"""Cases, tiles and devices for tests of two steps in one pass over memory."""

import ctypes
from types import SimpleNamespace

from mpilbm.backends.cuda import tiles
from mpilbm.backends.cuda.tiles import Tile
from mpilbm.backends.interfaces import Parts
from mpilbm.halo.local import alone
from mpilbm.solver import two_steps
from support.emulated_device import EmulatedDevice, encode_tiled
from support.slabs import PRECISIONS, box

FORCE = {"force": {"name": "guo", "value": [1e-4, -2e-4, 3e-4]}}
FORMULAS = {"force": {"name": "guo", "value": ["1e-4*x*(nx-x)/nx**2", "2e-4*y/ny", "1e-4*z*y/ny"]}}

BALL = {"name": "sphere", "centre": [9.3, 8.4, 3], "radius": 2.4}
FILLED = {"label": "ball", "shape": BALL, "boundary": {"name": "partially_saturated"}}


def small_tiles(monkeypatch) -> None:
    """Small tiles of a single step, and a driver that knows tensor maps alone."""
    load, library = ctypes.CDLL, SimpleNamespace(cuTensorMapEncodeTiled=encode_tiled)
    monkeypatch.setattr(ctypes, "CDLL", lambda n: library if n == "libcuda.so.1" else load(n))
    monkeypatch.setattr(tiles, "CANDIDATES", (Tile(8, 4, 2, 1, planes=3),))


def two_are_faster(monkeypatch) -> None:
    """On all devices two steps in one pass are faster, in boxes of any size."""
    monkeypatch.setattr(two_steps, "SMALL", 0)
    monkeypatch.setattr(two_steps, "fastest_way", lambda device, key, cells, ways: list(ways)[-1])


def edges_of_thick_slabs(planes, faces, columns, wave, most, sent) -> Parts | None:
    """Three edge planes and bulk blocks of two in slabs of 12 planes."""
    return Parts(3, 2) if planes >= 12 else None


def tile(tx, ty, cells, stages=1, planes=64) -> Tile:
    return Tile(tx, ty, stages, 1, cells, planes, bulk=False, steps=2)


def moments(lattice="D3Q19", precision="single", size=(42, 9, 7), **more) -> dict:
    tables = {"layout": {"name": "moments"}, "collision": {"name": "regularized"}} | more
    return box(lattice, size, precision=PRECISIONS[precision], **tables)


def walled(closed: str, lattice="D3Q19", precision="single", size=(42, 9, 7), **more) -> dict:
    """A box with walls along some axes, the last of which moves.

    Tiles of 12 x 8 cells own 8 x 4: in 42 and 34 cells along x, in 9 and 5 along y, the last wall
    is one or two cells beyond a tile.
    """
    periodic = [axis not in closed for axis in "xyz"]
    faces = [axis + side for axis in closed for side in "-+"]
    walls = {"name": "bounce_back", "where": faces[:-1]}
    lid = {"name": "bounce_back", "where": faces[-1:], "velocity": [0.05, 0.03, -0.02]}
    boundaries = {"boundary": [lid, walls], "domain": {"size": list(size), "periodic": periodic}}
    return moments(lattice, precision, size, **(boundaries | more))


def at_faces(boundaries, size, lattice="D3Q19", precision="single", **more) -> dict:
    """A box with these boundaries; axes that none of them closes are periodic."""
    closed = {
        face[0] for each in boundaries if each["name"] != "pressure_jump" for face in each["where"]
    }
    domain = {"size": list(size), "periodic": [axis not in closed for axis in "xyz"]}
    return moments(lattice, precision, size, boundary=boundaries, domain=domain, **more)


class Recorder(EmulatedDevice):
    """Enqueues again what it has recorded."""

    records = True

    def recording(self, work):
        return work


class Launcher(EmulatedDevice):
    """Records nothing."""

    records = False


class Alone:
    """One slab, its own neighbour."""

    def exchanger(self, rank, slab, device):
        return alone(slab, device)

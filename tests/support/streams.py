"""A flow and a communicator for tests of the order of work in streams."""

from types import SimpleNamespace

from mpilbm.registry import make
from support.settings import tables


def flow(layout, setting):
    collision = "trt" if make("layouts", layout).populations else "regularized"
    return tables("D2Q9", layout, collision, setting, "single")


def comm(identities=(), rank=1):
    return SimpleNamespace(
        rank=rank, size=2, bcast=lambda value: value or (7,) * 128, Barrier=lambda: None,
        allgather=lambda value: list(identities),
    )  # fmt: skip

"""Copies of cells between the memory of a slab and that of a window, see solids/windows.py."""

from dataclasses import replace

from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.program import WHOLE
from mpilbm.layouts import HERE
from mpilbm.layouts.cells import CellNames
from mpilbm.solids.windows import REACH

THERE = CellNames(plane="there_plane", row="there_row", x="there_x")
TYPES = {"plane": "int64", "row": "int", "x": "int"}


def window_copies(fluid: FluidKernels) -> list[KernelText]:
    """Kernels over the cells of a window: `gather` from the slab, `scatter` back to it.

    Near the cut, where values are wrong after two steps, `scatter` copies nothing.
    """
    near = " || ".join(
        f"({name} + {REACH} >= cut_{name} && {name} < cut_{name} + {REACH})" for name in TYPES
    )
    gather = _copy(fluid, "gather", "f = whole", "")
    scatter = _copy(fluid, "scatter", "whole = f", f"if ({near}) return;")
    return [gather, scatter]


def _copy(fluid: FluidKernels, role: str, equations: str, first: str) -> KernelText:
    kernel, grid = KernelText(role, fluid.grid.over, equations, phase="copy"), fluid.grid
    whole = replace(grid, name=WHOLE, wraps=None)
    kernel.optional = True
    kernel.sizes(grid)
    kernel.sizes(whole)
    kernel.declare(f="store*", whole="store*")
    if first:
        kernel.do(first)
    for name, type in TYPES.items():
        cut = kernel.argument(f"cut_{name}", type), kernel.argument(f"skipped_{name}", type)
        kernel.do(f"const {type} there_{name} = {name} + ({name} >= {cut[0]} ? {cut[1]} : 0);")
    for slot, _ in fluid.stored_places(0):
        here, there = grid.address(slot, HERE), whole.address(slot, HERE, THERE)
        ends = (WHOLE, there, "f", here) if role == "scatter" else ("f", here, WHOLE, there)
        suffix = kernel.macro("", grid, slot)
        text = "PUT_BITS{0}({1}, {2}, BITS{0}({3}, {4}));".format(suffix, *ends)
        kernel.do(text, writes=ends[0])
    return kernel

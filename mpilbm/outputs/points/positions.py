"""Positions in the box, the nodes around them, and the weights of an interpolation."""

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mpilbm.case.case import Case

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Values at n positions from those at nodes of the box.

        value(p) = sum_k weight[p, k] value(node[p, k]),   sum_k weight[p, k] = 1

    nodes    int (m, 3): plane, row and x of each node that is used, once, in ascending order
    at       int (n, c): for each position the numbers of its nodes
    weights  float64 (n, c)
    """

    nodes: Ints
    at: Ints
    weights: Floats

    @classmethod
    def create(cls, case: "Case", positions: Floats, linear: bool) -> "Interpolation":
        """The cells that contain the positions, or trilinearly the nearest 2^D cell centres.

        Positions (n, D) in cells; the centres of cells are at 0.5, 1.5, … Linear interpolation
        wraps around at periodic faces; cells beyond a wall have the weight 0, and those beyond the
        faces of a pressure_jump, where the density differs.
        """
        size, wraps = np.array(case.domain.size), np.array(case.domain.periodic)
        jumps = [face[0] for b in case.boundaries if b.joins_faces for face in b.where]
        wraps &= ~np.isin([*"xyz"[: len(size)]], jumps)
        D = len(size)
        shifted = positions - 0.5 if linear else positions
        base = np.floor(shifted).astype(np.int64)
        part = shifted - base
        nodes, weights = [], []
        for step in product((0, 1), repeat=D) if linear else [(0,) * D]:
            node = base + np.array(step)
            beyond = (node < 0) | (node >= size)
            node = np.where(wraps, node % size, np.clip(node, 0, size - 1))
            weight = np.prod(np.where(step, part, 1 - part), axis=1) if linear else 1.0
            weights.append(weight * ~(beyond & ~wraps & linear).any(axis=1))
            nodes.append(node)
        return cls(*_once(case, np.stack(nodes, axis=1)), _normalised(np.stack(weights, axis=1)))

    def of_fluid(self, solid: NDArray[np.bool_]) -> "Interpolation":
        """The interpolation over fluid nodes only; `solid` (m,).

        A position with solid nodes only keeps its weights.
        """
        weights = self.weights * ~solid[self.at]
        none = weights.sum(axis=1) == 0
        weights[none] = self.weights[none]
        return Interpolation(self.nodes, self.at, _normalised(weights))

    def inside(self, solid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the nearest node of each position is solid, (n,)."""
        nearest = self.weights.argmax(axis=1)
        return solid[self.at[np.arange(len(self.at)), nearest]]

    def values(self, at_nodes: NDArray) -> Floats:
        """float64 (n, …) from the values (m, …) at the nodes."""
        at_nodes = at_nodes.astype(np.float64)
        shape = (*self.weights.shape[:1], *(1,) * (at_nodes.ndim - 1))
        found = np.zeros((len(self.at), *at_nodes.shape[1:]))
        for k in range(self.at.shape[1]):  # in a fixed order, for the same bits on all ranks
            found += self.weights[:, k].reshape(shape) * at_nodes[self.at[:, k]]
        return found


def _once(case: "Case", nodes: Ints) -> tuple[Ints, Ints]:
    """Each of the nodes (n, c, D) once as (m, 3), in ascending order, and their numbers (n, c)."""
    planes, rows, nx = case.shape[0], *box_rows(case)
    plane, x = nodes[..., -1], nodes[..., 0]
    row = nodes[..., 1] if nodes.shape[-1] == 3 else np.zeros_like(x)
    flat = np.ravel_multi_index((plane, row, x), (planes, rows, nx))
    once, at = np.unique(flat, return_inverse=True)
    found = np.stack(np.unravel_index(once, (planes, rows, nx)), axis=1)
    return found.astype(np.int64), at.reshape(flat.shape)


def box_rows(case: "Case") -> tuple[int, int]:
    """Rows of a plane and nodes of a row, of the complete box."""
    nx, *rest = case.domain.size
    return prod(rest[:-1]), nx


def _normalised(weights: Floats) -> Floats:
    return weights / weights.sum(axis=1, keepdims=True)


def shown(position: NDArray) -> str:
    """A position in a message: `[1, 2.5, 3]`."""
    return f"[{', '.join(f'{value:g}' for value in position)}]"

"""The default layout: chosen by measured rules from device, case, geometry, memory and steps.

Which bits a run has must not depend on anything that a user does not see as a change of the case or
of the device: not on the number of ranks, the memory, the number of steps, or a restart. Layouts of
populations have the same bits as each other; `moments` rounds differently. Therefore

- whether `auto` takes `moments` depends on the case and on the kind of the device alone;
- on CPUs it does not: there `moments` is 2.5 to 5 times slower than `aa` (RULES);
- on a GPU it does only with fused multiply-add (the default), with which the bits of a GPU are not
  those of a CPU in any layout. With `backend.fused` = false, which gives the bits of a CPU, `auto`
  takes populations on both;
- and only where the flow is that of the other layouts up to rounding, see Layout.deviations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.registry import make, register
from mpilbm.layouts import AnyGrid, Layout
from mpilbm.layouts.ab import AB
from mpilbm.layouts.formats import Formats
from mpilbm.model.case import Case
from mpilbm.physics.lattices import Lattice

SAVED = 0.1  # of the traffic, from which `indirect` is faster than dense layouts


@dataclass(frozen=True)
class Facts:
    """Facts about a run that determine the layout; the same on all ranks.

    device  kind of the device: "cpu", "cuda" or "opencl"
    steps   number of time steps
    fits    whether a rank's arrays in a layout fit its memory
    saved   share of the memory traffic of a step that `indirect` saves compared to dense layouts,
            boundary lists included; negative if it needs more
    swept   whether the device updates the cells of the case by the special kernel of a layout, with
            the same flow as in layouts of populations up to rounding
    """

    device: str
    steps: int = 0
    fits: Callable[[Layout], bool] = lambda layout: True
    saved: float = -1.0
    swept: Callable[[Layout], bool] = lambda layout: False


class Rule(NamedTuple):
    """A layout, its reason, and the condition; the first rule whose condition is true applies."""

    layout: str
    why: str
    applies: Callable[[Facts, Layout], bool]


def _many_solids(facts: Facts, layout: Layout) -> bool:
    """Whether skipping solid cells outweighs the tables, whose set-up takes as long as N steps."""
    enough = 100 if facts.device == "cpu" else 10_000
    return facts.saved > SAVED and facts.steps >= enough and facts.fits(layout)


# D3Q19, float32. Files in tools/measured/.
RULES = (
    # fluid cells, MLUPS on an EPYC: porosity 0.9 aa 59, indirect 62; 0.8: 40, 54; 0.6: 23, 48
    # (indirect_cpu.json); GLUPS on an H200: 0.62: ab 9.0, moments 8.5, indirect 16.6
    # (h200_bench_settings_…)
    Rule("indirect", "stores no solid cells", _many_solids),
    # GLUPS on an H200: ab 27.4, moments 67.2; a cavity of 256³: 26.7, 45.5 (h200_bench_moments_…);
    # on an H100 a sphere in a channel of 1024 x 384 x 384: 18.3, 25.5. In many solids never, so
    # that the bits depend neither on the steps nor on the memory.
    Rule(
        "moments",
        "with this collision the fastest on NVIDIA GPUs",
        lambda facts, layout: facts.saved <= SAVED and facts.swept(layout),
    ),
    # MLUPS on an EPYC, ab, aa, esopull: 204, 243, 237; float64: 104, 164, 144; D3Q27: 136, 131,
    # 144, float64: 69, 78, 76 (epyc_kernel_bandwidth_…); on a Xeon, ab, aa, esopull, moments: 97,
    # 120, 118, 47; a cavity: 88, 104, 109, 29; D3Q27: 59, 69, 78, 27; D2Q9: 250, 433, 380, 128
    # (xeon_moments_…)
    Rule("aa", "the fastest on CPUs", lambda facts, layout: facts.device == "cpu"),
    # GLUPS on an H200: ab 27.1, aa 26.7, esopull 26.7 (h200_bench_populations_…)
    Rule("ab", "the fastest on GPUs", lambda facts, layout: facts.fits(layout)),
    Rule("esopull", "half the memory of ab, which does not fit", lambda facts, layout: True),
    Rule("moments", "the only one with this storage", lambda facts, layout: True),
)


@register("layouts", "auto")
class Auto(AB):
    """Chooses `ab`, `aa`, `esopull`, `indirect` or `moments`: the fastest one for a run.

    It chooses from device, case, geometry, memory and steps, and only layouts that the case accepts
    by name. Layouts of populations give the same populations in all bits; sums of `indirect`, which
    skips solid cells, differ in the last digits. `moments` rounds differently. It is chosen

    - on NVIDIA GPUs of compute capability 8.0 or later with `backend.fused` = true, whose bits are
      not those of a CPU anyway, for collisions that `moments` accepts, unless many cells are
      solid, the box has at most 32 cells along x, a force is given for each cell, or the flow would
      differ by more than rounding: with `storage` = "float16", and with `recursive_regularized` and
      a force or `partially_saturated`
    - on all devices with `storage` = "mixed", which no other layout has

    So the bits depend on the case and the kind of the device, not on ranks, memory, steps or
    restarts. A run reports its choice at its start and in summary.json; `mpilbm check` shows it,
    too. The Python objects of a case whose device is unknown use the places of `ab`.
    """

    automatic: ClassVar[bool] = True
    shares = {}  # it has those of the layout that replaces it

    def resolve(self, facts: Facts, allowed: Callable[[Layout], bool]) -> tuple[Layout, str]:
        """The layout of the first rule that applies, and the reason.

        `allowed`: whether the case can use a layout; it costs more than the condition of a rule.
        """
        for rule in RULES:
            layout = make("layouts", rule.layout)
            if rule.applies(facts, layout) and allowed(layout):
                return layout, rule.why
        return make("layouts", "ab"), "the case allows no other layout"

    def conflicts(self, case: Case) -> list[str]:
        """The conflicts of the case with all layouts that it may choose; none if one has none."""
        storage = case.precision.storage
        if storage in self.storages:
            return super().conflicts(case)
        only = _with(storage)
        return [
            f'takes {only.name} for precision.storage = "{storage}", and {only.name} {conflict}'
            for conflict in only.conflicts(case)
        ]

    def formats(self, lattice: Lattice, storage: str) -> Formats:
        """The formats of `ab` or, for a storage that it lacks, of the only layout that has it."""
        if storage in self.storages:
            return super().formats(lattice, storage)
        return _with(storage).formats(lattice, storage)

    def grid(
        self,
        lattice: Lattice,
        planes: int,
        rows: int,
        nx: int,
        fluid: NDArray[np.integer] | None = None,
        ghost: int = 1,
        storage: str = "float32",
    ) -> AnyGrid:
        """The memory in `ab` or, for a storage that it does not have, in the layout that has it."""
        sizes = planes, rows, nx, fluid, ghost, storage
        if storage in self.storages:
            return super().grid(lattice, *sizes)
        return _with(storage).grid(lattice, *sizes)


def _with(storage: str) -> Layout:
    """The layout of RULES that has this storage."""
    layouts: Sequence[Layout] = [make("layouts", rule.layout) for rule in RULES]
    return next(layout for layout in layouts if storage in layout.storages)

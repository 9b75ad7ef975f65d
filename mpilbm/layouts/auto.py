"""The default layout: chosen by measured rules from device, geometry, memory and steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from mpilbm.core.registry import make, register
from mpilbm.layouts import Layout
from mpilbm.layouts.ab import AB


@dataclass(frozen=True)
class Facts:
    """Facts about a run that determine the layout; the same on all ranks.

    device  kind of the device: "cpu", "cuda" or "opencl"
    steps   number of time steps
    fits    whether a rank's arrays in a layout fit its memory
    saved   share of the memory traffic of a step that `indirect` saves compared to dense layouts,
            boundary lists included; negative if it needs more
    """

    device: str
    steps: int = 0
    fits: Callable[[Layout], bool] = lambda layout: True
    saved: float = -1.0


class Rule(NamedTuple):
    """A layout, its reason, and the condition; the first rule whose condition is true applies."""

    layout: str
    why: str
    applies: Callable[[Facts, Layout], bool]


def _many_solids(facts: Facts, layout: Layout) -> bool:
    """Whether skipping solid cells outweighs the tables, whose set-up takes as long as N steps."""
    enough = 100 if facts.device == "cpu" else 10_000
    return facts.saved > 0.1 and facts.steps >= enough and facts.fits(layout)


# D3Q19, float32. Files in tools/measured/.
RULES = (
    # fluid cells, MLUPS on an EPYC: porosity 0.9 aa 59, indirect 62; 0.8: 40, 54; 0.6: 23, 48
    # (indirect_cpu.json); GLUPS on an H200: 0.62: ab 9.0, indirect 16.6 (h200_bench_settings_…)
    Rule("indirect", "stores no solid cells", _many_solids),
    # MLUPS on an EPYC, ab, aa, esopull: 204, 243, 237; float64: 104, 164, 144; D3Q27: 136, 131,
    # 144, float64: 69, 78, 76 (epyc_kernel_bandwidth_…)
    Rule("aa", "the fastest on CPUs", lambda facts, layout: facts.device == "cpu"),
    # GLUPS on an H200: ab 27.1, aa 26.7, esopull 26.7 (h200_bench_populations_…)
    Rule("ab", "the fastest on GPUs", lambda facts, layout: facts.fits(layout)),
    Rule("esopull", "half the memory of ab, which does not fit", lambda facts, layout: True),
)


@register("layouts", "auto")
class Auto(AB):
    """Chooses `ab`, `aa`, `esopull` or `indirect` from device, geometry, memory and steps.

    It chooses only layouts that the case accepts by name. These layouts give the same populations
    in all bits; sums of `indirect`, which skips solid cells, differ in the last digits. `moments`
    is never chosen. A run reports its choice at its start and in summary.json; `mpilbm check` shows
    it, too. The Python objects of a case whose device is unknown use the places of `ab`.
    """

    automatic: ClassVar[bool] = True

    def resolve(self, facts: Facts, allowed: Callable[[Layout], bool]) -> tuple[Layout, str]:
        """The layout of the first rule that applies, and the reason.

        `allowed`: whether the case can use a layout.
        """
        for rule in RULES:
            layout = make("layouts", rule.layout)
            if allowed(layout) and rule.applies(facts, layout):
                return layout, rule.why
        return make("layouts", "ab"), "the case allows no other layout"

"""Flows for tests of devices. Each has the kernels of many outputs, to test them in one text.

A flow of FLOWS has a box with free slip at y- and a wall at y+, and two bodies across the slabs.
The flows differ in layout, wall of the bodies and precision, which choose the macros of a device.
"""

from collections.abc import Callable, Sequence

import numpy as np

from support import coupled, free_energy, scalars
from support.body_forces import OUTPUT, sample
from support.sampled_flows import KINDS, means, sampled, with_statistics
from support.slabs import PRECISIONS, Cluster, assert_same
from support.walls import CENTRAL, QUADRATIC, rocks

FLUX = {"name": "permeability", "every": 1}
STATISTICS = {"name": "statistics", "every": 1, "average": ["x"]}


def turning(layout: str, wall: dict, precision: str) -> dict:
    """Tables of a flow in which one body turns, so that each link has a velocity."""
    tables = rocks({"name": layout}, wall) | {"precision": PRECISIONS[precision]}
    tables["boundary"] = [
        {"name": "free_slip", "where": ["y-"]},
        {"name": "bounce_back", "where": ["y+"]},
    ]
    populations = layout != "moments"
    tables["collision"] = {"name": "trt" if populations else "regularized"}
    tables["force"] = {"name": "guo", "value": [1e-5, 0]}
    held = {"iterate": 3} if populations else {}  # an odd number of steps that hold the velocity
    tables["initial"] = tables["initial"] | {"non_equilibrium": True} | held
    tables["output"] = [OUTPUT | {"split": layout in ("aa", "indirect", "moments")}, STATISTICS]
    return tables


def at_rest(layout: str, wall: dict, precision: str) -> dict:
    """Tables of a flow with bodies at rest, whose permeability is measured."""
    tables = turning(layout, wall, precision)
    del tables["body"][0]["boundary"]["velocity"]
    tables["output"] = [*tables["output"], FLUX]
    return tables


def moving() -> dict:
    """Tables of a flow with a disc and a turning box, which cross slabs and come to a wall.

    And a ring, which moves by a field of distances.
    """
    tables = turning("aa", {"name": "bounce_back"}, "single")
    parts: list[tuple[dict, dict]] = [
        (
            {"name": "sphere", "centre": [4.3, 5.2], "radius": 2.1},
            {"name": "translation", "velocity": ["0.05*t/(1 + t)", 0.08]},
        ),
        (
            {"name": "box", "lower": [7.1, 1.3], "upper": [9.8, 4.0]},
            {"name": "rotation", "rate": 0.03, "point": [8, 4]},
        ),
        (
            {"name": "torus", "centre": [12.6, 8.3], "radius": 2.7, "tube": 1.2},
            {"name": "translation", "velocity": [0.05, -0.06]},
        ),
    ]
    tables["domain"]["size"], boundary = [18, 13], {"name": "partially_saturated"}
    tables["body"] = [{"shape": s, "motion": m, "boundary": boundary} for s, m in parts]
    for number, body in enumerate(tables["body"]):
        body["label"] = f"body_{number}"
    tables["output"] = [OUTPUT, STATISTICS]
    return tables


def free() -> dict:
    """As `moving`, with a disc, a box and the ring that move freely."""
    tables = moving()
    disc, box, ring = tables["body"]
    disc["motion"] = {"name": "free", "density": 0.8, "velocity": [0.03, 0.06], "rate": 0.01}
    box["motion"] = {"name": "free", "density": 4.0, "gravity": 3e-3, "rate": 0.03}
    ring["motion"] = {"name": "free", "density": 2.0, "velocity": [0.05, -0.06], "rate": 0.02}
    return tables


FLOWS: dict[str, Callable[[], dict]] = {
    "two arrays": lambda: turning("ab", CENTRAL, "half"),
    "in place": lambda: turning("aa", QUADRATIC, "single"),
    "pulled": lambda: at_rest("esopull", {"name": "full_way"}, "double"),
    "nodes": lambda: at_rest("indirect", {"name": "tamm_mott_smith"}, "half"),
    "moments": lambda: turning("moments", {"name": "bounce_back"}, "single"),
    "moving bodies": moving,
    "free bodies": free,
    "moments at rest": lambda: at_rest("moments", {"name": "bounce_back"}, "half"),
    "wall models": lambda: turning("aa", {"name": "wall_model", "law": "spalding"}, "single"),
}
LINEAR = {"name": "shan_chen", "G": -1.0, "psi": "rho"}


def two_fluids() -> dict:
    """Tables of two fluids; without exp and sin, whose bits in OpenCL are not those of a CPU."""
    tables = with_statistics(coupled.two_fluids("D2Q9", layout={"name": "aa"}))
    tables["fluid"][0]["force"]["value"] = ["1e-3*y/ny*(1 - y/ny)", "1e-4*t"]
    return tables


COUPLED: dict[str, Callable[[], dict]] = {
    "one fluid": lambda: coupled.one_fluid("D2Q9", coupling=LINEAR, **coupled.walled("D2Q9", None)),
    "two fluids": two_fluids,
    "free energy": lambda: with_statistics(free_energy.waves("D2Q9")),
}
NUSSELT = {"name": "nusselt", "every": 1, "scalar": "T", "axis": "y", "difference": 1.0}


def carrying(lattice: str, layout: str, precision: str, setting: str) -> dict:
    """Tables of a flow that carries T and a scalar c with a source; fluxes through a body."""
    more = scalars.setting(setting, int(lattice[1]))
    tables = scalars.flow(lattice, layout, precision, **more)
    tables["scalar"] = [*tables["scalar"], scalars.carried("c", source="-0.01*c*T")]
    tables["output"] = [STATISTICS, *([NUSSELT] if setting == "body" else [])]
    return tables


def flux(cluster: Cluster) -> np.ndarray:
    """The sums of each plane for the permeability."""
    return np.concatenate(cluster.each(lambda s: s.diagnostics.start_flux()()))


def assert_same_flow(tables: dict, device) -> None:
    """Slabs on the device and on a CPU: the start, and all outputs of seven steps."""
    clusters = Cluster(tables, 2).start(), Cluster(tables, 2, device).start()
    assert_same(*clusters)
    for kind in KINDS:
        assert_same_statistics(clusters, kind)
    assert_same(*(each.run(1) for each in clusters))
    shown = [sample] * bool(clusters[0].case.needs.weighed)
    shown += [flux] * ("flux" in clusters[0].case.needs.roles)
    for parity in range(2):
        for values in shown:
            expected, found = (values(each) for each in clusters)
            assert np.any(expected), values.__name__
            assert np.array_equal(found, expected), (values.__name__, parity)
        assert_same(*(each.run(1) for each in clusters))


def assert_same_statistics(clusters: Sequence[Cluster], kind: str) -> None:
    """Sums of cells, columns or rows over two steps, in every bit, and the means of cells."""
    pairs = zip(*(sampled(each, kind, 2) for each in clusters), strict=True)
    for k, kept in enumerate(pairs):
        expected, found = (each.read(0, each.planes) for each in kept)
        assert np.array_equal(found, expected), kind
        if kind == "cells":
            solvers = [each.solvers[k] for each in clusters]
            expected, found = (means(*each) for each in zip(solvers, kept, strict=True))
            for name, values in expected.items():
                assert np.array_equal(found[name], values, equal_nan=True), name
            merged = [each.over_planes(None) for each in kept]
            assert all(np.array_equal(*each) for each in zip(*merged, strict=True))

"""Verdicts on the relaxation time, the Mach number and the stability of a flow.

Each function returns a sentence and a level: good, fair or poor. Stability is that of measured
flows, `stability.json` beside this file:

    tools/stability_map --known tools/measured/h200_stability_2026-11-22.json --table mpilbm/stability.json

[lattice][collision][flow] holds, for each Mach number, the largest stable grid Reynolds number u/nu
and the least at which the flow failed (null: at none). `vortex` is a periodic box, `cavity` a
box under a sliding lid, `body` a sphere or cylinder between an inlet and an outlet.
"""  # noqa: E501

import json
from functools import cache
from math import log
from pathlib import Path

FLOWS = {
    "vortex": "in a periodic vortex flow",
    "cavity": "in a lid-driven cavity",
    "body": "in the flow past a body between an inlet and an outlet",
}
MARGIN = 0.75  # of a limit, from which on a flow is called near it
UNMEASURED = 8  # grid Reynolds number up to which a collision that was not measured is called fine


def judge_tau(tau: float) -> tuple[str, str]:
    """Verdict and level of a relaxation time."""
    if tau < 0.501:
        return "very near 1/2: see the grid Reynolds number; a finer box increases it", "poor"
    if tau < 0.51:
        return "near 1/2: stable only where the flow is well resolved", "fair"
    if tau > 2:
        return "large: inaccurate; lower velocity and viscosity together", "fair"
    return "fine", "good"


def judge_mach(number: float) -> tuple[str, str]:
    """Verdict and level of a Mach number; the compressibility error goes with its square."""
    error = f"compressibility error about Ma^2 = {number**2:.1%}"
    if number > 0.3:
        return f"too fast: {error}; lower the velocity, and the viscosity with it", "poor"
    return (f"fine: {error}", "good") if number < 0.2 else (f"fast: {error}", "fair")


def judge_stability(
    number: float, mach: float, lattice: str, collision: str, flows: tuple[str, ...] = ("vortex",)
) -> tuple[str, str]:
    """Verdict and level of a grid Reynolds number u / nu.

    `collision` is its registered name, with a closure "trt+smagorinsky". `flows` are the measured
    flows that are like this one; the least stable of them counts. "walls", for walls at rest
    without inlet, is less than `cavity`: what fails there alone is fair, not poor.
    """
    walls = "walls" in flows
    found = [
        (limit(lattice, collision, flow, mach), flow)
        for flow in FLOWS
        if flow in flows or (walls and flow == "cavity")
    ]
    found = [(*known, flow) for known, flow in found if known is not None]
    if not found:
        level = "good" if number <= UNMEASURED else "fair"
        return f"the stability of {collision} on {lattice} has not been measured", level
    most, failed, flow = min(found, key=lambda one: one[0])
    bound = f"{collision} was stable up to {most:g} {FLOWS[flow]}"
    if number <= MARGIN * most:
        return f"fine: {bound}", "good"
    if number <= most:
        return f"near the limit: {bound}", "fair"
    if not failed:
        return f"not measured: {bound}, the largest tried", "fair"
    there = f"{bound}, Mach {mach:.2g}; {_way_out(number, mach, lattice, flow)}"
    if walls and judge_stability(number, mach, lattice, collision)[1] != "poor":
        return f"possibly unstable: {there}", "fair"
    return f"likely unstable: {there}", "poor"


def limit(lattice: str, collision: str, flow: str, mach: float) -> tuple[float, bool] | None:
    """The largest stable grid Reynolds number, and whether the flow failed above it.

    At the nearest measured Mach number; None where nothing has been measured.
    """
    place = measured().get(lattice, {"mach": [], "collisions": {}})
    limits = place["collisions"].get(collision, {}).get(flow)
    if limits is None:
        return None
    apart = [abs(log(one / mach)) for one in place["mach"]]
    stable, failed = limits[apart.index(min(apart))]
    return stable, bool(failed)


def stable_collisions(number: float, mach: float, lattice: str, flow: str) -> list[str]:
    """Collisions on a lattice, without closure, that are stable at this grid Reynolds number."""
    names = measured().get(lattice, {}).get("collisions", {})
    known = {name: limit(lattice, name, flow, mach) for name in names if "+" not in name}
    return [name for name, found in known.items() if found and number <= found[0]]


def _way_out(number: float, mach: float, lattice: str, flow: str) -> str:
    """What remains stable: collisions of this lattice, then of others of as many dimensions."""
    named = stable_collisions(number, mach, lattice, flow)
    parts = [", ".join(named)] if named else []
    for other in measured():
        if other[:2] == lattice[:2] and other != lattice:
            more = [n for n in stable_collisions(number, mach, other, flow) if n not in named]
            parts += [f"{', '.join(more)} on {other}"] if more else []
            named += more
    finer = "use a finer box or a lower Reynolds number"
    return f"stable there: {'; '.join(parts)}; or {finer}" if parts else finer


@cache
def measured() -> dict:
    """The table of limits."""
    return json.loads(Path(__file__).with_name("stability.json").read_text())

"""Checks of bodies that move freely: where they start, density, and speed of fall."""

from collections.abc import Iterator
from dataclasses import replace
from math import log, pi, sqrt

import numpy as np

from mpilbm.case.model import Case
from mpilbm.core.errors import BodyError
from mpilbm.core.units import VELOCITY
from mpilbm.physics.motions import Responding
from mpilbm.solids.contacts import Contacts
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.moving_bodies import MovingBody

LARGEST_RE = 2e5  # of the correlations for the drag
HALVINGS = 100


def free_problems(case: Case) -> Iterator[str]:
    """Errors of all free bodies together, whose own parameters are valid."""
    bodies = MovingBody.all(case)
    paths = {each.number: path for each in bodies if (path := path_of(each))}
    if not paths:
        return
    for number, path in paths.items():
        (body,) = (each for each in bodies if each.number == number)
        lag = lagging_share(body)
        if path.motion.density <= lag:
            yield (
                f"body.{path.label}.motion.density: found {path.motion.density:.3g}; allowed for "
                f"so few cells: above {lag:.3g}, the share of the fluid in the body that follows "
                "it late (see the manual); use smaller cells, or a larger density"
            )
    masks = [each.label for each in case.bodies if each.mask is not None]
    if masks:
        yield (
            f"body.{masks[0]}: is given by a mask, and body '{next(iter(paths.values())).label}' "
            "moves freely: its distance from a mask is not known; give a shape"
        )
        return
    sheets = [each.label for each in case.bodies if each.shape and each.shape.cuts]
    if sheets:
        yield (
            f"body.{sheets[0]}.shape: has sheets (thin = true), and body "
            f"'{next(iter(paths.values())).label}' moves freely: contacts with sheets are not "
            "found; close the surface and remove thin, or give the motion as a path"
        )
        return
    with_paths = (replace(b, motion=paths.get(b.number, b.motion)) for b in bodies)
    try:
        Contacts(case, tuple(with_paths)).loads(0)
    except BodyError as error:
        problem, _, _ = str(error).partition(" in step 1;")
        yield (
            f"{problem} at the start; bodies do not overlap walls or each other; move the body, or "
            "use a smaller shape"
        )


def path_of(body: MovingBody) -> FreePath | None:
    """The path of a free body, with its state at t = 0; None for other bodies."""
    if not isinstance(body.motion, Responding):
        return None
    label = body.case.bodies[body.number].label
    return FreePath(body.case, label, body.motion, body.shape, body.size)


def lagging_share(body: MovingBody) -> float:
    """1 - b: the share of V in cells that are partly solid and follow the body late.

    1 - b = S/V (1/2 - mean of B), with B over the solid share e of cells at the surface S, e
    between 0 and 1, B = e k / (1 - e + k), k = tau - 1/2; see physics/rigid_body.py.
    """
    k = body.case.fluids[0].viscosity / float(body.case.lattice.cs2)
    mean = k * ((1 + k) * log((1 + k) / k) - 1)
    return body.shape.surface_to_volume * max(0.0, 0.5 - mean)


def drag_coefficient(Re: float, dimensions: int) -> float:
    """c_d of a sphere [Schiller & Naumann 1933], above Re 1000 0.44; in 2D of a cylinder.

    The latter by Sucker & Brauer 1975, Waerme- und Stoffuebertragung 8, 149.
    """
    if dimensions == 2:
        late = 4e-4 * Re / (1 + 3.64e-7 * Re**2)
        return 1.18 + 6.8 / Re**0.89 + 1.96 / sqrt(Re) - late
    return 24 / Re * (1 + 0.15 * Re**0.687) if Re < 1000 else 0.44


def falling_speed(body: MovingBody) -> tuple[float, float]:
    """The speed of a free body in unbounded fluid at which drag and weight are equal, and its Re.

    Of the sphere (in 2D the cylinder) of the same volume; at most the speed that it has at the end
    of the run without drag. (0, 0) for a body without weight, and where springs hold it.
    """
    path, case = path_of(body), body.case
    assert path, "a free body"
    inertia = path.inertia
    weight = float(np.linalg.norm(np.where(inertia.free & (inertia.spring == 0), path.weight, 0)))
    if not weight:
        return 0.0, 0.0
    flat = case.dimensions == 2 or bool(body.shape.endless)
    per = float(np.prod([body.size[a] for a in body.shape.endless]))
    V, W, nu = path.volume / per, weight / per, case.fluids[0].viscosity
    d = sqrt(4 * V / pi) if flat else (6 * V / pi) ** (1 / 3)
    area = d if flat else pi * d * d / 4
    low, high = 1e-12, LARGEST_RE * nu / d
    for _ in range(HALVINGS):
        v = sqrt(low * high)
        drag = v * v / 2 * area * drag_coefficient(v * d / nu, 2 if flat else 3)
        low, high = (v, high) if drag < W else (low, v)
    added = 1.0 if flat else 0.5
    most = W / ((path.motion.density + added) * V) * case.run.last
    speed = min(low, most)
    return speed, speed * d / nu


def speed_text(body: MovingBody) -> str:
    """The predicted speed of a body in words; "" for a body that does not fall."""
    speed, Re = falling_speed(body)
    if not speed:
        return ""
    units = body.case.units
    si = f", {units.to_si(speed, VELOCITY):.3g} m/s" if units else ""
    return f"falls or rises at about {speed:.3g} cells per step{si} (Re {Re:.3g})"

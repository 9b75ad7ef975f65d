"""Flows around bodies that move: equations, layouts, slabs; exact flows."""

import numpy as np
import pytest
from support.body_forces import FORCE, flow, sample
from support.slabs import Cluster

from mpilbm.outputs.body_motion import motion_of

IN_CELLS = {"name": "partially_saturated"}
LAYOUTS = ["ab", "aa", "esopull", "moments"]
DISC = {"name": "sphere", "centre": [8.7, 6.4], "radius": 2.1}
SWINGS = {"name": "translation", "velocity": ["0.05*sin(2*pi*t/40)", 0.02]}
TURNS = {"name": "rotation", "rate": "0.01*cos(t/9)", "point": [13.5, 5.0]}
CROSS = {
    "name": "union",
    "of": [
        {"name": "box", "lower": [3.1, 11.0], "upper": [10.2, 13.1]},
        {"name": "box", "lower": [5.4, 9.1], "upper": [7.8, 14.6]},
    ],
}
BAR = {"name": "box", "lower": [13.0, 4.3], "upper": [16.1, 7.2]}


def body(label: str, shape: dict, motion: dict | None) -> dict:
    more = {"motion": motion} if motion else {}
    return {"label": label, "shape": shape, "boundary": IN_CELLS} | more


def momentum(cluster: Cluster) -> np.ndarray:
    """The momentum of all cells."""
    c = np.array(cluster.case.lattice.c)
    states = cluster.each(lambda s: s.read_state("", 0, s.slab.planes))
    return np.einsum("ia,pirx->a", c, np.concatenate(states))


def test_layouts_and_slabs():
    """The same flow to rounding in every layout, the same bits on any number of slabs.

    A disc that crosses periodic faces, a bar that turns about a point outside of it and comes to a
    wall, a cross that turns by a field of distances, and a body at rest. Takes 4 s, for the kernels
    of four layouts.
    """
    bodies = [
        body("cross", CROSS, {"name": "rotation", "rate": 0.03}),
        body("disc", DISC, SWINGS),
        body("bar", BAR, TURNS),
        body("still", {"name": "box", "lower": [0, 0], "upper": [3.4, 2.2]}, None),
    ]
    faces = [{"name": "bounce_back", "where": ["y-", "y+"], "velocity": [0.02, 0]}]
    given = {"domain": {"size": [22, 15], "periodic": [True, False]}, "boundary": faces}
    found = {}
    for layout in LAYOUTS:
        tables = flow("D2Q9", size=[22, 15], body=bodies, layout={"name": layout}) | given
        clusters = [Cluster(tables, slabs).start().run(6) for slabs in (1, 3)]
        states, forces = ([of(c) for c in clusters] for of in (Cluster.state, sample))
        assert np.array_equal(*states)
        assert np.array_equal(*forces)
        assert np.abs(forces[0][:, :2]).min() > 1e-7
        found[layout] = clusters[0].fields("rho", "u") | {"forces": forces[0]}
    for layout in LAYOUTS[1:]:
        for name, values in found[layout].items():
            assert np.abs(values - found["ab"][name]).max() < 1e-13, (layout, name)


@pytest.mark.parametrize(("lattice", "layout"), [("D2Q9", "aa"), ("D3Q19", "esopull")])
def test_the_momentum_that_a_body_takes(lattice, layout):
    """p(t + 1) - p(t) = G sum of (1 - e) - F, to rounding; samples leave no trace in the flow."""
    D = 2 if lattice == "D2Q9" else 3
    disc = {"name": "sphere", "centre": [5.7, 5.4, 6.1][:D], "radius": 2.3}
    motion = {"name": "translation", "velocity": ["0.05*sin(t/7)", -0.03, 0.02][:D]}
    tables = flow(lattice, size=[11, 12, 10][:D], body=[body("a", disc, motion)])
    tables["layout"] = {"name": layout}
    cluster, other = (Cluster(tables).start() for _ in range(2))
    for _ in range(4):
        before, force = momentum(cluster), sample(cluster)[0, :D]
        gained = momentum(cluster.run(1)) - before
        (solver,) = cluster.solvers
        share = solver.device.download(solver.context.tables["solid_share"])
        fluid = np.prod([11, 12, 10][:D]) - share.sum() / 255
        assert gained == pytest.approx(np.array(FORCE[:D]) * fluid - force, rel=0, abs=1e-13)
        assert np.abs(force).min() > 1e-5
    assert np.array_equal(cluster.state(), other.run(4).state())


@pytest.mark.parametrize("layout", ["ab", "moments"])
def test_a_body_that_moves_with_the_fluid_exerts_no_force(layout):
    """A uniform flow stays as it is while the body crosses cells and a periodic face."""
    u = [0.08, -0.05]
    tables = flow(
        "D2Q9",
        size=[15, 13],
        body=[body("a", DISC, {"name": "translation", "velocity": u})],
        initial={"u": u},
        layout={"name": layout},
        run={"steps": 60},
    )
    del tables["force"]
    cluster = Cluster(tables, slabs=2).start()
    for _ in range(3):
        cluster.run(20)
        fields = cluster.fields("rho", "u")
        assert np.abs(fields["u"] - u).max() < 1e-14
        assert np.abs(fields["rho"] - 1).max() < 1e-14
    assert np.abs(sample(cluster)[0]).max() < 1e-12


def towed(u: float, stream: float, diameter: int = 8, Re: float = 20) -> dict:
    """A disc that moves with the velocity u in a fluid that at first has the velocity `stream`."""
    size = [6 * diameter, 4 * diameter]
    disc = {"name": "sphere", "centre": [20.2, size[1] / 2 + 0.1], "radius": diameter / 2}
    tables = flow(
        "D2Q9",
        size=size,
        body=[body("a", disc, {"name": "translation", "velocity": [u, 0]})],
        initial={"u": [stream, 0]},
        fluid={"viscosity": (u + abs(stream)) * diameter / Re},
        layout={"name": "ab"},
        collision={"name": "regularized"},
        run={"steps": 400},
    )
    del tables["force"]
    return tables


def test_a_towed_body_and_a_body_in_a_stream_have_the_same_drag():
    """The drag in steps 200 to 400, at Re 20 and 8 cells: the mean within 2 %, noise below 6 %.

    The flows are the same in frames that move with the body. A motion of the velocity 0 is rest.
    """
    found = []
    for tables in (towed(0.05, 0.0), towed(0.0, -0.05)):
        cluster = Cluster(tables).start().run(200)
        found.append([sample(cluster.run(4))[0, 0] for _ in range(50)])
    moving, still = np.array(found)
    error, noise = moving.mean() / still.mean() - 1, (moving - still).std() / -still.mean()
    print(f"drag of the towed body: {error:+.2%}, noise {noise:.2%}")
    assert abs(error) < 0.02
    assert noise < 0.06
    assert still.mean() < -0.01


def test_taylor_couette_flow():
    """The torque on an inner cylinder of 6 cells radius: -0.8 % at tau = 0.6, -0.1 % at twice that.

    T = -4 pi nu omega R_1^2 R_2^2 / (R_2^2 - R_1^2); the outer one has interpolated walls. Without
    noise, since the shares of a disc do not change when it turns.
    """
    R1, R2, nu, N = 6.0, 12.0, 0.1 / 3, 29
    centre, omega = [N / 2 + 0.13, N / 2 - 0.21], 0.03 / R1
    hole = {"name": "sphere", "centre": centre, "radius": R2}
    block = {"name": "box", "lower": [-1, -1], "upper": [N + 1, N + 1]}
    shell = {"name": "difference", "of": [block, hole]}
    rotor = body("rotor", hole | {"radius": R1}, {"name": "rotation", "rate": omega})
    tables = flow(
        "D2Q9",
        size=[N, N],
        body=[{"label": "shell", "shape": shell, "boundary": {"name": "interpolated"}}, rotor],
        initial={"u": [0, 0]},
        fluid={"viscosity": nu},
        layout={"name": "ab"},
        collision={"name": "regularized"},
        run={"steps": 1100},
    )
    del tables["force"]
    cluster = Cluster(tables).start().run(1000)
    shell_torque, torque = sample(cluster)[:, 2]
    exact = 4 * np.pi * nu * omega * R1**2 * R2**2 / (R2**2 - R1**2)
    moment = np.cross(centre, sample(cluster)[0, :2])
    error, balance = torque / -exact - 1, (shell_torque - moment) / -torque - 1
    print(f"torque of the inner cylinder: {error:+.2%}; of the outer one {balance:+.2%} of it")
    assert error == pytest.approx(-0.0085, abs=0.002)
    assert abs(balance) < 0.005


def test_the_added_mass_of_a_small_oscillation():
    """F = -V (c_m du/dt + …), c_m = 1 + 4 / sqrt(pi beta) + (pi beta)^-1.5, beta = D² / (T nu).

    +9.6 % at beta = 35 in a box of 6 D x 5 D, of which sound and the narrow box are a part; +7 % in
    7 D x 6 D.
    Without the inertia of the fluid inside, c_m would be larger by 1.
    [Wang 1968, J. Fluid Mech. 32, 55]
    """
    D, size, T, KC = 12, [72, 60], 206, 0.5
    amplitude, beta = KC * D / (2 * np.pi), 35.0
    displacement = [f"{amplitude}*(1 - cos(2*pi*t/{T}))", 0]
    disc = {"name": "sphere", "centre": [36.2, 30.1], "radius": D / 2}
    tables = flow(
        "D2Q9",
        size=size,
        body=[body("a", disc, {"name": "translation", "displacement": displacement})],
        initial={"u": [0, 0]},
        fluid={"viscosity": D * D / (beta * T)},
        layout={"name": "ab"},
        collision={"name": "regularized"},
        run={"steps": 2 * T + 9},
    )
    del tables["force"]
    cluster = Cluster(tables).start().run(T)
    motion, times, forces = motion_of(cluster.case, 0), [], []
    for step in range(T, 2 * T, 8):
        taken = sample(cluster)[0]
        forces.append(motion.corrected(step, taken[:2], taken[2:], None)[0][0])
        times.append((step + 0.5) / T)
        cluster.run(8)
    wt = 2 * np.pi * np.array(times)
    basis = np.stack([-np.sin(wt), -np.cos(wt)], axis=1)
    _, inertia = np.linalg.lstsq(basis, np.array(forces), rcond=None)[0]
    c_m = inertia / (np.pi * D**2 / 4 * amplitude * (2 * np.pi / T) ** 2)
    exact = 1 + 4 / np.sqrt(np.pi * beta) + (np.pi * beta) ** -1.5
    print(f"c_m = {c_m:.3f}, {c_m / exact - 1:+.1%} relative to Wang")
    assert c_m == pytest.approx(1.096 * exact, rel=0.02)

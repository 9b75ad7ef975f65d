"""Flows with scalars whose solution is known; used by tools/heat_accuracy and tests."""

import numpy as np

import mpilbm
from mpilbm.case.case import parse_case
from mpilbm.core.registry import make

DOUBLE = {"compute": "float64", "storage": "float64"}


def still(name: str, faces: list[str], **keys) -> dict:
    """A boundary table."""
    return {"name": name, "where": faces} | keys


def simulation(
    size: list[int], viscosity: float, scalar: dict, steps: int, **tables
) -> mpilbm.Simulation:
    """A simulation of `steps` steps on D2Q9 in double precision; by default it is periodic."""
    case = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": size, "periodic": [True, True]},
        "fluid": {"viscosity": viscosity},
        "collision": {"name": "trt"},
        "precision": DOUBLE,
        "scalar": [{"label": "T"} | scalar],
        "run": {"steps": steps},
    }
    return mpilbm.Simulation(parse_case(case | tables, "heat_flows.toml"))


def cavity(N: int, rayleigh: float, until: float, fall=0.1, lattice="D2Q5") -> dict[str, float]:
    """Nusselt numbers of the square cavity after `until` H/U, Pr = 0.71 [de Vahl Davis 1983]."""
    viscosity = fall * N * (0.71 / rayleigh) ** 0.5
    ends = [still("value", ["x-"], value=0.5), still("value", ["x+"], value=-0.5)]
    scalar = {"prandtl": 0.71, "initial": {"value": "0.5 - x/nx"}, "boundary": ends,
              "lattice": lattice}  # fmt: skip
    with simulation(
        [N, N], viscosity, scalar, round(until * N / fall),
        domain={"size": [N, N]},
        boundary=[still("bounce_back", ["x-", "x+", "y-", "y+"])],
        buoyancy={"gravity": [0, -(fall**2) / N], "T": {"beta": 1.0}},
    ) as sim:  # fmt: skip
        sim.run()
        T, u = sim.field("T"), sim.field("u")
    return {
        "volume": 1 + (u[..., 0] * T).mean() * N * 0.71 / viscosity,
        "wall": N * (4 - 9 * T[:, 0] + T[:, 1]).mean() / 3,
    }


def growth(N: int, rayleigh: float, fall=0.1) -> float:
    """Growth rate in D/H^2 of rolls of length 2 H between rigid walls, N cells apart; Pr = 1."""
    viscosity = fall * N / rayleigh**0.5
    ends = [still("value", ["y-"], value=0.5), still("value", ["y+"], value=-0.5)]
    value = "0.5 - y/ny + 0.0001*sin(pi*y/ny)*cos(2*pi*x/nx)"
    scalar = {"prandtl": 1.0, "initial": {"value": value}, "boundary": ends}
    unit, sizes = round(N**2 / viscosity), []
    with simulation(
        [2 * N, N], viscosity, scalar, 2 * unit,
        domain={"size": [2 * N, N], "periodic": [True, False]},
        boundary=[still("bounce_back", ["y-", "y+"])],
        buoyancy={"gravity": [0, -(fall**2) / N], "T": {"beta": 1.0}},
    ) as sim:  # fmt: skip
        for _ in range(2):
            sim.run(unit)
            sizes.append(abs(np.fft.rfft(sim.field("T"), axis=1)[:, 1]).sum())
    return float(np.log(sizes[1] / sizes[0]))


def dispersion(N: int, peclet: float, D=0.05, lattice="D2Q9") -> float:
    """D_eff/D of long waves in Poiseuille flow between walls N cells apart; peclet: U N/D."""
    U, L, viscosity = peclet * D / N, 64 * N, 0.1
    scalar = {"diffusivity": D, "lattice": lattice,
              "initial": {"value": "1 + 0.1*cos(2*pi*x/nx)"}}  # fmt: skip
    sizes, steps = [], round(2 * N**2 / D / 4)
    with simulation(
        [L, N], viscosity, scalar, 2 * steps,
        domain={"size": [L, N], "periodic": [True, False]},
        boundary=[still("bounce_back", ["y-", "y+"])],
        force={"name": "guo", "value": [12 * viscosity * U / N**2, 0]},
        initial={"u": [f"{6 * U}*y/ny*(1 - y/ny)", 0]},
    ) as sim:  # fmt: skip
        for _ in range(2):
            sim.run(steps)
            sizes.append(abs(np.fft.rfft(sim.field("T").mean(axis=0))[1]))
    return float(np.log(sizes[0] / sizes[1]) / steps / (2 * np.pi / L) ** 2 / D)


def graetz(N: int, peclet: float, lattice="D2Q5") -> float:
    """Nu = 2 N q/(D (T_m - T_wall)) far downstream between cold walls; peclet: U 2 N/D."""
    D, U, viscosity = 0.05 * 2 * N / peclet, 0.05, 0.1
    L = round(0.1 * 2 * N * peclet)
    profile = [f"{6 * U}*y/ny*(1 - y/ny)", 0.0]
    ends = [still("value", ["y-", "y+"], value=0.0), still("value", ["x-"], value=1.0),
            still("outflow", ["x+"])]  # fmt: skip
    scalar = {"diffusivity": D, "lattice": lattice, "boundary": ends}
    with simulation(
        [L, N], viscosity, scalar, round(3 * L / U),
        domain={"size": [L, N]},
        boundary=[still("bounce_back", ["y-", "y+"]), still("zou_he", ["x-"], velocity=profile),
                  still("zou_he", ["x+"], rho=1.0)],
        initial={"u": profile},
    ) as sim:  # fmt: skip
        sim.run()
        T, u = sim.field("T"), sim.field("u")[..., 0]
    here = round(0.7 * L)
    T, u = T[:, here], u[:, here]
    slope = (9 * (T[0] + T[-1]) - (T[1] + T[-2])) / 6  # the mean of both walls
    return float(2 * N * slope / ((u * T).sum() / u.sum()))


def diffusivity_in_flow(u: float, lattice: str, D=0.05, N=64) -> float:
    """The diffusivity that a wave of N cells shows in a uniform flow along it, over D."""
    scalar = {"diffusivity": D, "lattice": lattice,
              "initial": {"value": f"1 + 0.1*cos(2*pi*x/{N})"}}  # fmt: skip
    steps, sizes = round(N**2 / D / 40), []
    with simulation([N, 2], 0.1, scalar, 2 * steps, initial={"u": [u, 0.0]}) as sim:
        for _ in range(2):
            sim.run(steps)
            sizes.append(abs(np.fft.rfft(sim.field("T")[0])[1]))
    return float(np.log(sizes[0] / sizes[1]) / steps / (2 * np.pi / N) ** 2 / D)


def overshoot(collision: dict, odd: float, shape: str, u=0.1, N=128, lattice="D2Q5") -> float:
    """How far T leaves [0, 1] after the flow has passed the box; infinite if it is unstable.

    odd: tau - 1/2. `shape`: a step along x, or a Gaussian of 3 cells in a diagonal flow.
    """
    step = f"(tanh(20*(x - {N / 4})) - tanh(20*(x - {N / 2})))/2"
    gauss = f"exp(-((x - {N / 2})**2 + (y - {N / 2})**2)/18)"
    flat, found = shape == "step", make("scalar_lattices", lattice)
    scalar = {
        "diffusivity": odd * float(found.cs2),
        "lattice": lattice,
        "collision": collision,
        "initial": {"value": step if flat else gauss},
    }
    size, flow = [N, 2 if flat else N], [u, 0.0 if flat else u]
    more = {}
    if found.D == 3:
        size, flow = [*size, 2], [*flow, 0.0]
        more = {"lattice": {"name": "D3Q19"}, "domain": {"size": size, "periodic": [True] * 3}}
    try:
        with simulation(size, 0.1, scalar, round(N / u), initial={"u": flow}, **more) as sim:
            sim.run()
            T = sim.field("T")
    except mpilbm.NonFiniteError:
        return float("inf")
    return float(max(T.max() - 1, -T.min(), 0))


def cylinders(radius: float, wall: str, lattice="D2Q5") -> float:
    """Relative L2 error of T between circles of r and 2.5 r, T = 1 and 0: a logarithm."""
    outer, half = 2.5 * radius, round(2.5 * radius) + 3
    centre = [half + 0.3, half + 0.2]
    box = {"name": "box", "lower": [-1, -1], "upper": [2 * half + 1] * 2}
    hole = {"name": "cylinder", "centre": centre, "radius": outer}
    shapes = {
        "inner": {"name": "cylinder", "centre": centre, "radius": radius},
        "outer": {"name": "difference", "of": [box, hole]},
    }
    bodies = [
        {"label": label, "shape": shape, "boundary": {"name": wall},
         "scalar": {"T": {"value": float(label == "inner")}}}
        for label, shape in shapes.items()
    ]  # fmt: skip
    scalar = {"diffusivity": 0.15, "lattice": lattice}
    steps = round(3 * (outer - radius) ** 2 / 0.15)
    with simulation([2 * half, 2 * half], 0.1, scalar, steps, body=bodies) as sim:
        sim.run()
        T, fluid = sim.field("T"), ~sim.field("solid")
    y, x = np.mgrid[: 2 * half, : 2 * half] + 0.5
    r = np.hypot(x - half - 0.3, y - half - 0.2)
    exact = np.log(outer / np.maximum(r, 1)) / np.log(2.5)
    return float(np.sqrt(((T - exact)[fluid] ** 2).mean() / (exact[fluid] ** 2).mean()))


def across(points: int):
    """y of cells between walls at 0 and 1, u/U there, and d2/dy2 without flux through the walls."""
    y = (np.arange(points) + 0.5) / points
    second = np.diag(-2.0 * np.ones(points))
    second += np.diag(np.ones(points - 1), 1) + np.diag(np.ones(points - 1), -1)
    second[0, 0] = second[-1, -1] = -1
    return y, 6 * y * (1 - y), second * points**2


def dispersion_of_wave(peclet: float, length=64) -> float:
    """D_eff/D of waves of `length` H: the slowest mode of D (d2/dy2 - k^2) - i k u.

    1 + Pe^2/210 in the limit of long waves [Taylor 1953; Aris 1956, Proc. R. Soc. A 235, 67].
    """
    _, u, second = across(200)
    k = 2 * np.pi / length
    modes = np.linalg.eigvals(second - np.diag(k**2 + 1j * k * peclet * u))
    return float(-modes.real.max() / k**2)


def slowest(second, speed):
    """The slowest mode theta exp(-a x) of theta'' + a (a + speed) theta = 0, by iteration.

    -second has an inverse without negative numbers, so that the mode has one sign.
    """
    inverse, a, theta = np.linalg.inv(-second), 1.0, np.ones(len(second))
    theta /= np.linalg.norm(theta)
    for _ in range(200):
        longer = inverse @ ((a + speed) * theta)
        size = np.linalg.norm(longer)
        a, theta = 0.5 * a + 0.5 / size, longer / size
    return theta


def graetz_exact(peclet: float) -> float:
    """Nu of the mode theta(y) exp(-a x) with theta'' + (a^2 + Pe u a/(2 U)) theta = 0.

    7.541 without conduction along x, Pe -> infinity [Shah & London 1978]. Lengths in units of H.
    """
    _, u, second = across(300)
    second[0, 0] = second[-1, -1] = -3 * 300**2  # walls of T = 0
    theta = slowest(second, peclet * u / 2)
    slope = (9 * theta[0] - theta[1]) * 300 / 3
    return float(2 * slope * u.mean() * 300 / (u * theta).sum())


def sphere(diameter: int, reynolds: float, u=0.06, prandtl=0.71, wall="interpolated") -> float:
    """Nu of a hot sphere in a flow, from the heat that leaves downstream; box of 5 diameters.

    About 2 + 0.6 Re^1/2 Pr^1/3 [Ranz & Marshall 1952, Chem. Eng. Prog. 48, 141].
    """
    side, length = 5 * diameter, 7 * diameter
    viscosity = u * diameter / reynolds
    ends = [still("value", ["x-"], value=0.0), still("outflow", ["x+"])]
    ball = {"name": "sphere", "centre": [2.5 * diameter, side / 2, side / 2]}
    body = {"label": "ball", "shape": ball | {"radius": diameter / 2},
            "boundary": {"name": wall}, "scalar": {"T": {"value": 1.0}}}  # fmt: skip
    with simulation(
        [length, side, side], viscosity, {"prandtl": prandtl, "boundary": ends},
        round(2.5 * length / u),
        lattice={"name": "D3Q19"},
        domain={"size": [length, side, side], "periodic": [False, True, True]},
        boundary=[still("equilibrium", ["x-"], velocity=[u, 0, 0]),
                  still("equilibrium", ["x+"], rho=1.0)],
        body=[body],
        initial={"u": [u, 0, 0]},
        precision={"compute": "float32", "storage": "float32"},
    ) as sim:  # fmt: skip
        sim.run()
        T, v = sim.field("T").astype(float), sim.field("u")[..., 0].astype(float)
    planes = range(5 * diameter, 6 * diameter)
    D = viscosity / prandtl
    heat = [(v * T)[..., k].sum() - D * (T[..., k + 1] - T[..., k - 1]).sum() / 2 for k in planes]
    return float(np.mean(heat) / (np.pi * diameter * D))


def pipe(diameter: int, peclet=50.0) -> float:
    """Nu = d q/(D (T_m - T_wall)) far downstream in a pipe with a cold wall; peclet: U d/D.

    From the decay of the heat along the pipe. 3.657 for Pe -> infinity [Shah & London 1978].
    """
    U, viscosity = 0.04, 0.1
    D, side, L = U * diameter / peclet, diameter + 4, round(0.1 * diameter * peclet)
    mid = side / 2
    r2 = f"((y - {mid})**2 + (z - {mid})**2)/{diameter**2 / 4}"
    profile = [f"{2 * U}*max(1 - {r2}, 0)", 0.0, 0.0]
    box = {"name": "box", "lower": [-1] * 3, "upper": [L + 1, side + 1, side + 1]}
    hole = {"name": "cylinder", "centre": [L / 2, mid, mid], "radius": diameter / 2, "axis": "x"}
    wall = {"shape": {"name": "difference", "of": [box, hole]}, "label": "wall",
            "boundary": {"name": "interpolated"}, "scalar": {"T": {"value": 0.0}}}  # fmt: skip
    ends = [still("value", ["x-"], value=1.0), still("outflow", ["x+"])]
    with simulation(
        [L, side, side], viscosity, {"diffusivity": D, "boundary": ends}, round(3 * L / U),
        lattice={"name": "D3Q19"},
        domain={"size": [L, side, side], "periodic": [False, True, True]},
        boundary=[still("equilibrium", ["x-"], velocity=profile),
                  still("equilibrium", ["x+"], rho=1.0)],
        body=[wall],
        initial={"u": profile},
    ) as sim:  # fmt: skip
        sim.run()
        T, u, fluid = sim.field("T"), sim.field("u")[..., 0], ~sim.field("solid")
    T, u = np.where(fluid, T, 0), np.where(fluid, u, 0)
    here = round(0.7 * L)
    flux = [(u * T)[..., k].sum() - D * (T[..., k + 1] - T[..., k - 1]).sum() / 2
            for k in (here - 3, here + 3)]  # fmt: skip
    lost = (flux[0] - flux[1]) / 6 / (np.pi * diameter)
    mean = (u * T)[..., here].sum() / u[..., here].sum()
    return float(lost * diameter / (D * mean))


def pipe_exact(peclet: float, points=400) -> float:
    """Nu of the slowest mode theta(r) exp(-a x), with conduction along the pipe."""
    r = (np.arange(points) + 0.5) / (2 * points)  # in units of the diameter
    h, faces = 1 / (2 * points), np.arange(1, points) / (2 * points)
    second = np.diag(-np.r_[faces, 0] - np.r_[0, faces]) + np.diag(faces, 1) + np.diag(faces, -1)
    second[-1, -1] -= 2 * 0.5
    second /= (r * h**2)[:, None]
    u = 2 * (1 - 4 * r**2)
    theta = slowest(second, peclet * u)
    slope = 2 * theta[-1] / h  # as in the last row
    return float(slope * (u * r).sum() / (u * theta * r).sum())

"""Cases with bodies of each kind of wall."""

import numpy as np

from support.faces import closed
from support.slabs import PRECISIONS, Cluster


def body(boundary, label="0", **shape) -> dict:
    return {"label": label, "shape": shape, "boundary": boundary}


LINEAR, QUADRATIC = {"name": "interpolated"}, {"name": "interpolated", "order": 2}
CENTRAL = {"name": "central_linear"}


def rocks(layout, *walls: dict) -> dict:
    """For each wall a rotating disc and a box across the slabs, side by side along x."""
    bodies = []
    for k, wall in enumerate(walls):
        x = 9 * k
        turning = wall | {"velocity": ["-0.02*(y - 6.3)", f"0.02*(x - {x + 4.1})*cos(t/5)"]}
        bodies += [
            body(turning, f"disc{k}", name="sphere", centre=[x + 4.1, 6.3], radius=2.2),
            body(wall, f"block{k}", name="box", lower=[x + 7.4, 7.8], upper=[x + 9, 9.4]),
        ]
    tables = closed("D2Q9", [9 * len(walls), 13], [{"name": "bounce_back", "where": ["y-", "y+"]}],
                    body=bodies, layout=layout, precision=PRECISIONS["single"])  # fmt: skip
    tables["domain"]["periodic"] = [True, False]
    return tables


def between_cylinders(wall: dict, n: int, rho: float = 1) -> float:
    """Error of the flow between two cylinders, the inner of radius n turning, the outer of 2n."""
    centre, omega, box = [2.4 * n + 0.2, 2.4 * n - 0.1], 0.1 / n**2, round(4.8 * n)
    x, y = (f"({a} - {c})" for a, c in zip("xy", centre, strict=True))
    swirl = f"{omega}/3*where({x}**2 + {y}**2 > {n * n}, 4*{n * n}/({x}**2 + {y}**2) - 1, 3)"
    swirl = f"where({x}**2 + {y}**2 > {4 * n * n}, 0, {swirl})"
    turning = wall | {"velocity": [f"-{omega}*{y}", f"{omega}*{x}"]}
    bodies = [
        body(turning, "inner", name="cylinder", centre=centre, radius=n),
        body(wall, "outer", name="torus", centre=centre, radius=2.2 * n, tube=0.2 * n),
    ]
    sides = {"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}
    tables = closed("D2Q9", [box, box], [sides],
                    body=bodies, fluid={"viscosity": 0.1}, collision={"name": "trt"},
                    initial={"rho": rho, "u": [f"-{swirl}*{y}", f"{swirl}*{x}"]})  # fmt: skip
    u = Cluster(tables).start().run(8 * n * n).fields("u")["u"][:, 0]
    y, x = (np.mgrid[:box, :box] + 0.5) - np.reshape(centre[::-1], (2, 1, 1))
    r = np.hypot(x, y)
    expected = omega / 3 * (4 * n * n / r**2 - 1) * np.array([-y, x])
    error = np.hypot(*(np.moveaxis(u, -1, 0) - expected))[(r > n) & (r < 2 * n)]
    return float(np.sqrt((error**2).mean())) / (omega * n)

"""A plane channel of height H with a parabolic inlet of mean velocity U, and its exact pressure."""

L, H, NU, U = 16, 8, 0.2, 0.02
IN, OUT = 2.5, 13.5  # the planes of its output
PLANES = [
    {"label": "in", "normal": "x", "position": IN},
    {"label": "out", "normal": "x", "position": OUT},
]
OUTPUT = {"name": "flow_rate", "every": 800, "plane": PLANES, "between": ["in", "out"]}
MEAN = U * (1 + 1 / (2 * H**2))  # of the parabola at the centres of cells
DROP = 12 * NU * U / H**2 * (OUT - IN)


def channel(**more) -> dict:
    """Its tables. The collision has exact walls, and the equilibrium no error of compression."""
    parabola = [f"6*{U}*y*(ny-y)/ny**2", 0]
    return {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [L, H]},
        "fluid": {"viscosity": NU},
        "collision": {"name": "trt", "equilibrium": {"name": "incompressible"}},
        "precision": {"compute": "float64", "storage": "float64"},
        "initial": {"u": parabola},
        "boundary": [
            {"name": "bounce_back", "where": ["y-", "y+"]},
            {"name": "zou_he", "where": ["x-"], "velocity": parabola},
            {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        ],
        "run": {"steps": 1600},
        "backend": {"name": "cpu"},
        "output": [OUTPUT],
    } | more

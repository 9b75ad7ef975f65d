"""A channel between wall models with all that they may have: moving, rough, with formulas."""

SIZE, AREA = [5, 8, 6], 5 * 6
PUSH = [1e-5, 0, 2e-6]


def channel(**more) -> dict:
    """Its tables, in double precision; each step writes the momentum and the stresses."""
    return {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": SIZE, "periodic": [True, False, True]},
        "fluid": {"viscosity": 1e-3},
        "collision": {"name": "recursive_regularized", "omega_bulk": 1},
        "force": {"name": "guo", "value": PUSH},
        "precision": {"compute": "float64", "storage": "float64"},
        "initial": {"u": ["0.05 + 0.01*sin(2*pi*x/nx)", 0, "0.02 + 0.01*cos(2*pi*x/nx)"]},
        "boundary": [
            {"name": "wall_model", "law": "spalding", "where": ["y-"]},
            {
                "name": "wall_model",
                "law": "log",
                "roughness": 0.2,
                "sample": 3,
                "where": ["y+"],
                "velocity": ["0.01*sin(t) + 0.001*x", 0, 0.01],
                "ramp": 4,
            },
        ],
        "run": {"steps": 6},
        "backend": {"name": "cpu"},
        "output": [{"name": "wall_stress", "every": 1}, {"name": "monitor", "every": 1}],
    } | more

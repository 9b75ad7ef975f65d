"""Cases in which a run has to notice that a scalar or the flow is wrong."""

from support.outputs_cases import make_case

PROFILE = ["6*0.05*y*(ny-y)/ny**2", 0]
COLD, HOT = 300, 400


def heated(steps, outputs=(), conditions=None, boundary=None, size=(24, 8), others=(), **scalar):
    """A channel with a cold inlet and hot walls; with a tiny diffusivity the scalar grows.

    `others`: the tables of further scalars, less what they have in common with this one.
    """
    conditions = conditions or [
        {"name": "value", "where": ["x-"], "value": COLD},
        {"name": "value", "where": ["y-", "y+"], "value": HOT},
        {"name": "outflow", "where": ["x+"]},
    ]
    table = {"label": "T", "diffusivity": 1e-5, "initial": {"value": COLD}, "boundary": conditions}
    return make_case(
        size,
        list(outputs),
        fluid={"viscosity": 0.02},
        collision={"name": "trt"},
        domain={"size": list(size), "periodic": [False, False]},
        initial={"u": PROFILE},
        boundary=[
            {"name": "equilibrium", "where": ["x-"], "velocity": PROFILE},
            {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
            {"name": "bounce_back", "where": ["y-", "y+"]},
        ],
        scalar=[table | scalar | one for one in ({}, *others)],
        run={"steps": steps},
        **(boundary or {}),
    )


def alternating(steps, amplitude, layout="ab"):
    """A channel with this part of its inlet velocity, a formula, in turn added and subtracted."""
    return make_case(
        (16, 8),
        [],
        layout={"name": layout},
        domain={"size": [16, 8], "periodic": [False, True]},
        fluid={"viscosity": 0.05},
        initial={"u": [0.05, 0]},
        boundary=[
            {
                "name": "equilibrium",
                "where": ["x-"],
                "velocity": [f"0.05*(1 + ({amplitude})*cos(pi*t))", 0],
            },
            {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
        ],
        run={"steps": steps},
    )


def sounding(steps, outlet="equilibrium", u=-0.02, along="y", **more):
    """A duct with a uniform inlet of 0.05; with another initial velocity u, sound stays in it."""
    size = (8, 40) if along == "y" else (40, 8)
    given, rest = ([0, 0.05], [0, u]) if along == "y" else ([0.05, 0], [u, 0])
    across = "x" if along == "y" else "y"
    tables = {
        "domain": {"size": list(size), "periodic": [False, False]},
        "fluid": {"viscosity": 0.02},
        "collision": {"name": "trt"},
        "initial": {"u": rest},
        "boundary": [
            {"name": "equilibrium", "where": [f"{along}-"], "velocity": given},
            {"name": outlet, "where": [f"{along}+"], "rho": 1.0},
            {"name": "free_slip", "where": [f"{across}-", f"{across}+"]},
        ],
        "run": {"steps": steps},
    }
    return make_case(size, [], **tables | more)

"""Cases with bodies of each kind of wall."""

from support.faces import closed
from support.slabs import PRECISIONS


def body(boundary, label="0", **shape) -> dict:
    return {"label": label, "shape": shape, "boundary": boundary}


LINEAR, QUADRATIC = {"name": "interpolated"}, {"name": "interpolated", "order": 2}
CENTRAL = {"name": "central_linear"}


def rocks(layout, wall: dict) -> dict:
    """A rotating disc and a box across the slabs."""
    turning = wall | {"velocity": ["-0.02*(y - 6.3)", "0.02*(x - 4.1)*cos(t/5)"]}
    bodies = [
        body(turning, "disc", name="sphere", centre=[4.1, 6.3], radius=2.2),
        body(wall, "block", name="box", lower=[7.4, 7.8], upper=[9, 9.4]),
    ]
    tables = closed("D2Q9", [9, 13], [{"name": "bounce_back", "where": ["y-", "y+"]}],
                    body=bodies, layout=layout, precision=PRECISIONS["single"])  # fmt: skip
    tables["domain"]["periodic"] = [True, False]
    return tables

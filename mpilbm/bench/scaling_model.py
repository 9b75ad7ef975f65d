"""The model of the time of a step (preflight/step_model.py) with the numbers of a measured row."""

import tomllib
from typing import Any

from mpilbm.preflight.step_model import Model
from mpilbm.registry import find


def model(kind: str, rows: list[dict[str, Any]]) -> Model | None:
    """The model from the row with most ranks; None if no row has a link and an overhead."""
    rows = [row for row in rows if row.get("link") and row.get("overhead") is not None]
    if not rows:
        return None
    row = max(rows, key=lambda one: (one["ranks"], one["time"]))
    weak, planes = kind == "weak", row["size"][-1]
    listed = find("layouts", row["layout"]).listed
    return Model(
        weak=weak,
        planes=planes // row["ranks"] if weak else planes,
        plane_cells=row["fluid_cells" if listed else "cells"] / planes,
        plane_fluid=row["fluid_cells"] / planes,
        bytes_per_update=row["bytes_per_update"],
        copy=row["copy_bandwidth"] / row["ranks"],
        overhead=row["overhead"],
        face_bytes=max(row["halo"]["bytes"]) * (2 if _one_sided(row) else 1),
        latency=row["link"]["latency"],
        bandwidth=row["link"]["bandwidth"],
    )


def _one_sided(row: dict[str, Any]) -> bool:
    """Whether no rank has two neighbours: two ranks between walls."""
    periodic = tomllib.loads(row["case"])["domain"].get("periodic", [False])
    return row["ranks"] == 2 and not periodic[-1]

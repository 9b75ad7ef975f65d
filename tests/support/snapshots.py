"""Snapshots that are written without a run, whose values are known exactly."""

from pathlib import Path

import h5py
import numpy as np


def write_snapshot(folder: Path, case: str, u: np.ndarray, step: int = 7, name: str = "u"):
    """A snapshot as the program writes it; u is (nz, ny, nx, 3)."""
    with h5py.File(folder / f"snapshot_{step:09d}.vtkhdf", "w") as file:
        file[f"VTKHDF/CellData/{name}"] = u
        image = file["VTKHDF"].attrs
        image["Type"], image["Origin"], image["Spacing"] = np.bytes_("ImageData"), [0] * 3, [1] * 3
        image["WholeExtent"] = [n for count in u.shape[2::-1] for n in (0, count)]
        origin = file.create_group("mpilbm").attrs
        origin["case"], origin["title"], origin["step"] = case, "Test", step


def last_snapshot(folder: Path) -> Path:
    """The snapshot of the latest step in a folder."""
    return max(folder.glob("snapshot_*.vtkhdf"))

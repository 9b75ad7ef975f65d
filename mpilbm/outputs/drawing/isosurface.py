"""Pictures of isosurfaces, drawn by PyVista in a child process without a display.

A graphics library that cannot draw may end its process. In a child process that cannot end a run.
"""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mpilbm.core import machine
from mpilbm.core.errors import CommandError, MpilbmError
from mpilbm.core.printable import one_line

SIZE = 1000, 800  # pixels
SECONDS = 300.0  # after which a picture is given up
BODY = "lightgrey"
MISSING = "requires PyVista, which is not installed; pip install 'mpilbm[volume]'"
BAR = {"vertical": True, "fmt": "%.3g", "n_labels": 5}
BAR |= {"position_x": 0.87, "position_y": 0.25, "height": 0.5, "width": 0.06}
BAR |= {"title_font_size": 14, "label_font_size": 14}  # of the colour bar
DATA, TEXTS, PICTURE = "data.npz", "texts.json", "picture.png"


class DrawingFailed(RuntimeError):
    """No picture was made; the message is the reason in a line."""


def png(
    values: np.ndarray,
    colours: np.ndarray,
    solid: np.ndarray,
    *,
    value: float,
    spacing: float,
    title: str,
    axes: tuple[str, str, str],
    label: str,
    limits: tuple[float, float] | None = None,
) -> bytes:
    """The picture of the surface values = `value`, coloured by `colours`, and of solid bodies.

    values, colours, solid   at points (z, y, x) with equal distances `spacing`
    label                    the name and unit of the colours, `limits` their range
    axes                     names and units of the axes x, y, z

    Raises DrawingFailed.
    """
    with TemporaryDirectory(prefix="mpilbm-") as folder:
        place = Path(folder)
        np.savez(place / DATA, values=values, colours=colours, solid=solid)
        texts = {"value": value, "spacing": spacing, "title": title, "axes": axes}
        texts |= {"label": label, "limits": limits}
        (place / TEXTS).write_text(json.dumps(texts), "utf-8")
        command = machine.module("mpilbm.outputs.drawing.isosurface", folder)
        try:
            done = machine.run(command, timeout=SECONDS, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise DrawingFailed(f"PyVista took more than {SECONDS:g} s") from None
        except (OSError, MpilbmError) as error:
            raise DrawingFailed(str(error)) from None
        if done.returncode or not (place / PICTURE).exists():
            raise DrawingFailed(_reason(done))
        return (place / PICTURE).read_bytes()


def _reason(done: subprocess.CompletedProcess) -> str:
    """Why no picture was made: the signal, and the last line that names an error, or the last."""
    end = f"ended with exit code {done.returncode}"
    if done.returncode < 0:
        end = f"was ended by signal {-done.returncode}"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    named = [line for line in lines if re.search(r"error\b|\bwarn", line, re.IGNORECASE)] or lines
    last = f" ({one_line(named[-1].strip(), 160)})" if named else ""
    return f"the process that draws {end}{last}"


def require_drawing(use: str) -> None:
    """CommandError if PyVista is not installed or cannot draw here."""
    if not find_spec("pyvista"):
        raise CommandError(f"{use}: {MISSING}")
    at = np.arange(4.0)
    values = np.broadcast_to(at, (4, 4, 4))
    try:
        texts: Any = {"title": "", "axes": ("x", "y", "z"), "label": ""}
        png(values, values, np.zeros((4, 4, 4), bool), value=1.5, spacing=1.0, **texts)
    except DrawingFailed as error:
        raise CommandError(
            f"{use}: PyVista cannot draw on this machine without a display: {error}; install "
            "libEGL or OSMesa (Debian: apt install libegl1 libosmesa6), or remove the surface and "
            "draw it later from an [[output]] box"
        ) from error


def draw(place: Path) -> None:
    """Draw what `png` has stored in a folder; in the child process."""
    import pyvista

    texts: dict[str, Any] = json.loads((place / TEXTS).read_text("utf-8"))
    with np.load(place / DATA) as data:
        values, colours, solid = (data[name] for name in ("values", "colours", "solid"))
    plotter: Any = pyvista.Plotter(off_screen=True, window_size=list(SIZE))
    spacing = texts["spacing"]
    start = (spacing / 2,) * 3  # cell centres are half a distance from the origin
    size = values.shape[::-1]
    grid = pyvista.ImageData(dimensions=size, spacing=(spacing,) * 3, origin=start)
    grid["value"] = _beyond(values, solid, texts["value"]).ravel()
    grid["colour"] = colours.astype(float).ravel()
    grid["solid"] = solid.astype(float).ravel()
    surface = grid.contour([texts["value"]], scalars="value")
    if surface.n_points:
        label = texts["label"].replace("|u|", "speed")  # VTK draws a table at |
        bar = {"title": label, **BAR}
        colour = {"scalars": "colour", "cmap": "viridis", "clim": texts["limits"]}
        plotter.add_mesh(surface, smooth_shading=True, scalar_bar_args=bar, **colour)
    else:
        plotter.add_text("no such value", position="lower_edge", font_size=10)
    if solid.any() and not solid.all():
        plotter.add_mesh(grid.contour([0.5], scalars="solid"), color=BODY, smooth_shading=True)
    plotter.add_mesh(grid.outline(), color="black")
    titles = dict(zip(("xtitle", "ytitle", "ztitle"), texts["axes"], strict=True))
    labels = dict.fromkeys(("n_xlabels", "n_ylabels", "n_zlabels"), 3)
    plotter.show_bounds(mesh=grid, font_size=10, location="outer", fmt="%.3g", **titles, **labels)
    plotter.add_text(texts["title"], position="upper_edge", font_size=9)
    plotter.view_isometric()
    plotter.camera.zoom(0.8)
    plotter.screenshot(str(place / PICTURE))
    plotter.close()


def _beyond(values: np.ndarray, solid: np.ndarray, value: float) -> np.ndarray:
    """Values with solid nodes just below `value`: the surface ends inside the bodies."""
    found = np.nan_to_num(values.astype(float), nan=value, posinf=value, neginf=value)
    size = float(np.abs(found - value).max()) or 1.0
    return np.where(solid, value - 1e-6 * size, found)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))

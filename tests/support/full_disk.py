"""A disk that is full for all files, and a small case for each kind of output."""

import errno
import os
import shutil

from mpilbm.case.case import parse_case
from mpilbm.storage import csv_log

BOX = {"from": [0, 0], "to": [8, 6]}
KINDS = {
    "body_forces": {},
    "flow_rate": {"plane": [{"label": "in", "normal": "x", "position": 0.5}]},
    "box": BOX,
    "checkpoint": {"background": False},
    "higher_moments": {"average": ["x"], "write": 5},
    "line": {"from": [0, 2.5], "to": [8, 2.5]},
    "line_spectra": {"average": ["x"], "write": 5},
    "monitor": {},
    "nusselt": {"axis": "y", "difference": 1.0},
    "permeability": {},
    "picture": {},
    "plane": {"normal": "z", "position": 2.5},
    "probe": {"points": [[3, 3]]},
    "snapshot": {},
    "spectrum": {},
    "statistics": {"write": 5},
    "surface": {},
    "wall_stress": {},
}
WITH_BODY = ("body_forces", "surface", "permeability")


def case_of(kind, **more):
    """A case of 20 steps with this output and checkpoints every 10 steps."""
    output = {"name": kind, "every": 5} | KINDS[kind] | more
    checkpoint = (
        [] if kind == "checkpoint" else [{"name": "checkpoint", "every": 10, "background": False}]
    )
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [8, 6], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1},
        "force": {"name": "guo", "value": [1e-5, 0]},
        "collision": {"name": "trt"},
        "run": {"steps": 20},
        "backend": {"name": "cpu"},
        "output": [output, *checkpoint],
    }
    if kind == "plane":
        tables |= {
            "lattice": {"name": "D3Q19"},
            "domain": {"size": [8, 6, 5], "periodic": [True, True, True]},
            "force": {"name": "guo", "value": [1e-5, 0, 0]},
        }
    if kind in WITH_BODY:
        shape = {"name": "sphere", "centre": [4, 3], "radius": 1.5}
        tables["body"] = [{"label": "ball", "shape": shape, "boundary": {"name": "bounce_back"}}]
    if kind == "wall_stress":
        wall = {"name": "wall_model", "law": "spalding", "where": ["y-", "y+"]}
        tables |= {"boundary": [wall], "fluid": {"viscosity": 1e-4}}
        tables["domain"]["periodic"] = [True, False]
    if kind == "nusselt":
        faces = [("y-", 1), ("y+", 0)]
        values = [{"name": "value", "where": [face], "value": v} for face, v in faces]
        tables["domain"]["periodic"] = [True, False]
        tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
        tables["scalar"] = [{"label": "T", "diffusivity": 0.1, "boundary": values}]
    return parse_case(tables, "full.toml")


def full_from(patch, of, step):
    """From the end of this step on no file can grow. `patch`: a MonkeyPatch; `of`: Solver.

    Returns a function that fills the disk earlier.
    """
    full = []
    original = of.step

    def counted(solver):
        original(solver)
        if solver.steps == step:
            full.append(step)

    def refuse():
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def limited(call):
        def called(*arguments):
            refuse()
            return call(*arguments)

        return called

    def add_all(rows, step, values, original=csv_log.Rows.add_all):
        with csv_log.system_errors(rows.path):
            refuse()
        original(rows, step, values)

    def usage(path, original=shutil.disk_usage):
        return original(path)._replace(free=0) if full else original(path)

    patch.setattr(of, "step", counted)
    patch.setattr(csv_log.Rows, "add_all", add_all)
    patch.setattr(shutil, "disk_usage", usage)
    for name in ("pwrite", "fsync", "posix_fallocate"):
        patch.setattr(os, name, limited(getattr(os, name)))
    return lambda: full.append(0)

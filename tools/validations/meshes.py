"""Bodies from STL files: the cylinder of Schaefer & Turek (1996), a sphere at Re 100."""

from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from validations import Finding, Validation, Variant, Verdict, changed
from validations.cylinder import CELLS, Cylinder, centre

SEGMENTS = 720  # of the cylinder, whose radius is 20 to 160 cells
SUBDIVISIONS = 5  # of an icosahedron: 20480 triangles
DIAMETER, SPEED, REYNOLDS = 16, 0.05, 100
BOX = (10, 6, 6)  # diameters
LENGTHS = 60  # diameters that the fluid passes


class Meshes(Validation):
    """An STL file in place of a built-in shape, with `interpolated`.

    2D-1: c_d and c_l inside the published intervals from 20 cells across on, for the section of a
    cylinder of 720 segments. Sphere at Re 100: c_d of 20480 triangles within 0.5 % of that of the
    built-in shape. Without --full: 20 cells across the cylinder, 16 across the sphere.
    """

    @cached_property
    def folder(self):
        """The folder of the files."""
        return TemporaryDirectory(prefix="mpilbm")

    def _file(self, name, surface):
        path = Path(self.folder.name) / name
        surface.export(path)
        return str(path)

    def variants(self, full):
        """2D-1 by cells across, and the sphere as a mesh and as a built-in shape."""
        sizes = CELLS["2D-1"] if full else CELLS["2D-1"][:1]
        n = 2 * DIAMETER if full else DIAMETER
        found = {f"2D-1, {size}": self._cylinder(size) for size in sizes}
        found["sphere, built-in"] = self._sphere(n, {"name": "sphere", "radius": n / 2})
        return found | {"sphere, mesh": self._sphere(n, self._mesh_of_sphere(n))}

    def _cylinder(self, n):
        from trimesh.creation import cylinder

        file = self._file("cylinder.stl", cylinder(radius=1, height=1, sections=SEGMENTS))
        mesh = {"name": "mesh", "file": file, "scale": n / 2, "at": centre(n)}
        variant = Cylinder()._variant("2D-1", n, 0.1, 80)
        body = variant.tables["body"][0] | {"shape": mesh}
        return Variant(changed(variant.tables, {"body": [body]}))

    def _mesh_of_sphere(self, n):
        from trimesh.creation import icosphere

        file = self._file("sphere.stl", icosphere(subdivisions=SUBDIVISIONS, radius=1))
        return {"name": "mesh", "file": file, "scale": n / 2}

    def _sphere(self, n, shape):
        size = [side * n for side in BOX]
        place = [3 * n, size[1] / 2, size[2] / 2]
        place = {"at": place} if shape["name"] == "mesh" else {"centre": place}
        steps = round(LENGTHS * n / SPEED)
        forces = {"name": "body_forces", "every": 50, "velocity": [SPEED, 0, 0]}
        return Variant({
            "title": "Sphere, Re = 100",
            "lattice": {"name": "D3Q19"},
            "domain": {"size": size, "periodic": [False, True, True]},
            "fluid": {"reynolds": REYNOLDS, "length": n, "velocity": SPEED},
            "collision": {"name": "mrt"},
            "initial": {"u": [SPEED, 0, 0]},
            "boundary": [
                {"name": "equilibrium", "where": ["x-"], "velocity": [SPEED, 0, 0]},
                {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
            ],
            "body": [{"label": "sphere", "shape": shape | place,
                      "boundary": {"name": "interpolated"}}],
            "run": {"steps": steps},
            "output": [forces | {"area": float(np.pi * n * n / 4)}],
        })  # fmt: skip

    def judge(self, run):
        """Coefficients of the last step."""
        if not run.label.startswith("2D-1"):
            rows = run.forces("sphere")
            return Verdict([Finding("c_d", rows["c_d"][-1])])
        return Cylinder().judge(run)

    def together(self, verdicts):
        """c_d of the mesh over that of the built-in sphere."""
        labels = "sphere, mesh", "sphere, built-in"
        if not all(label in verdicts and verdicts[label].findings for label in labels):
            return []
        mesh, shape = (verdicts[label].findings[0].found for label in labels)
        return [
            Finding("sphere: c_d of the mesh over that of the shape", mesh / shape, 0.995, 1.005)
        ]


VALIDATION = Meshes()

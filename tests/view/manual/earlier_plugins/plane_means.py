"""Mean velocity of each plane of the box, a CSV file each time."""

import numpy as np

from mpilbm.plugin import Output, register


@register("outputs", "plane_means")
class PlaneMeans(Output):
    """Mean of u over the fluid cells of each plane (z in 3D, y in 2D) as `means_<step>.csv`."""

    files = ("means_<step>.csv",)  # --overwrite replaces files with these names

    def open(self, context):
        """The writer of a run."""
        return PlaneMeansWriter(context)


class PlaneMeansWriter:
    """Called on all ranks; rank 0 writes."""

    def __init__(self, context):
        self.context = context

    def write(self, step):
        """One file with the planes of all ranks."""
        solver, rows = self.context.solver, []
        for plane in range(self.context.slab.planes):
            u = solver.fields(("u",), plane, plane + 1)["u"]
            rows.append(u[~solver.solid(plane, plane + 1)].mean(axis=0))
        parts = self.context.comm.gather(np.array(rows))
        if parts is not None:
            path = self.context.directory / f"means_{step:09d}.csv"
            np.savetxt(path, np.concatenate(parts), delimiter=",")

    def close(self):
        """Nothing is open between two files."""

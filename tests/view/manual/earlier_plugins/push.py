"""Two arrays: read in the cell, written into the neighbours."""

from mpilbm.plugin import HERE, Layout, Place, register


@register("layouts", "push")
class Push(Layout):
    """f_i is read at x in one array and written at x + c_i in the other."""

    buffers = 2  # arrays

    def gather(self, lattice, i, parity):
        """In the cell."""
        return Place(i, HERE)

    def scatter(self, lattice, i, parity):
        """Into the next cell along c_i."""
        return Place(i, lattice.offset(i))

"""Kernels that add what the links of entries transport, in chunks (see prelude.h)."""

from collections.abc import Iterator

from mpilbm.codegen.boundary_cell import BoundaryCell, Listed
from mpilbm.codegen.entries import EntryText, listed
from mpilbm.codegen.printer import c_text
from mpilbm.model.expressions import Expression


class ChunkText(EntryText):
    """A kernel over chunks of entries that adds the columns `columns` of their links.

    `wanted`: for each direction its values by name, such as "in" and "out".
    """

    ahead = True  # else a GPU waits for the value of a link before it loads that of the next link

    def __init__(self, of: Listed, text: str) -> None:
        super().__init__(f"{of.name}_measured", text, of.fluid, of.parity, "other", "chunks")
        self.lattice = of.fluid.lattice
        self.stored = "AS_STORED({})" if of.fluid.layout.populations else "{}"
        self.wanted: dict[int, dict[str, Expression]] = {}
        self.unstaged()
        if of.boundary.capabilities.per_link:
            self.links += f" const int64 staged = {self.per_entry('start', 'int64*')};"
        self.declare(chunk_first="int32*", chunk_entry="int32*", chunk_sums="double*")
        self.declare(values="real*", value="int32*")
        self.written.add("chunk_sums")

    @property
    def columns(self) -> list[str]:
        """Names of the sums."""
        raise NotImplementedError

    def places(self) -> Iterator[str]:
        """C text before the links of an entry."""
        return iter(())

    def link(self, i: int, values: dict[str, str]) -> Iterator[str]:
        """C text that adds what the link along c_i transports."""
        raise NotImplementedError

    def driver(self) -> str:
        """The loop over chunks, with the number of columns."""
        return f"FOR_CHUNKS({self.name}_at, {len(self.columns)})"

    def body(self) -> list[str]:
        """The links of an entry, one direction after another; then its sums are added."""
        lines, blocks, _ = self.by_direction({i: [*v.values()] for i, v in self.wanted.items()})
        lines = [*self.entry, self.links, *self.places(), *lines]
        lines += [f"double sum_{name} = 0;" for name in self.columns]
        for i, (block, values) in blocks.items():
            named = dict(zip(self.wanted[i], map(c_text, values), strict=True))
            lines += [f"if ({listed(i)}) {{", *block, *self.link(i, named), "}"]
        return lines + [f"total[{k}] += sum_{name};" for k, name in enumerate(self.columns)]


class FluxText(ChunkText):
    """A kernel that adds what the links of a list bring into the fluid in a step."""

    @property
    def columns(self) -> list[str]:
        """The flux into the fluid."""
        return ["flux"]

    def link(self, i: int, values: dict[str, str]) -> Iterator[str]:
        """C text that adds the incoming population less the outgoing one of the link."""
        yield f"sum_flux += (double){self.stored.format(values['in'])} - (double)({values['out']});"


def flux_kernel(of: Listed) -> FluxText:
    """Sum g_i - g_out_opp(i) over the links of a list of a scalar."""
    kernel = FluxText(of, "flux = g_i_in - g_opp_out")
    cell = BoundaryCell(kernel, of)
    for i, incoming in of.boundary.incoming(cell).items():
        kernel.wanted[i] = {"in": incoming, "out": cell.left[cell.lattice.opp[i]]}
    return kernel

"""A kernel over cells whose CUDA text updates two neighbours along x with each thread."""

from mpilbm.codegen.cell import HEAD, KernelText
from mpilbm.layouts.grid import Grid


class PairText(KernelText):
    """A kernel that only reads and writes places of one field, each value once.

    On a GPU a thread updates the cells x and x + 1, x even: rows start at multiples of many
    values, so the two values of a place are one access, unless the place lies beside the cell
    along x. That halves the addresses and half of the accesses; with 16-bit storage they hold
    back a kernel of one cell a thread. Both cells take the equations from one text, so that their
    bits are those of single cells.
    """

    parts = ("at", "pair")

    def __init__(self, name: str, equations: str, grid: Grid, unit: int = 1):
        super().__init__(name, "pairs", equations, unit)
        self.grid = grid

    def functions(self, declared):
        """The equations from array to array, and the function of two cells."""
        reals = [name for name in self._sorted() if self.arguments[name] == "real"]
        numbers = "".join(f", real {name}" for name in reals)
        given = "".join(f", {name}" for name in reals)
        values = f"{self.name}_values(const real* RESTRICT arrives, real* RESTRICT leaves{numbers})"
        lines = [f"real arrives[2][{len(self.reads)}], leaves[2][{len(self.writes)}];"]
        lines += [self._load(k, place) for k, place in enumerate(self.reads)]
        lines += [f"{self.name}_values(arrives[{k}], leaves[{k}]{given});" for k in (0, 1)]
        lines += ["FORGET_ADDRESSES"] if self.in_place() else []
        lines += [self._store(k, place) for k, place in enumerate(self.writes)]
        pair = f"{self.name}_pair({HEAD['pairs']}, {declared})"
        text = _function(values, self._values()) + _function(pair, lines)
        return f"{super().functions(declared)}#ifdef __CUDACC__\n{text}#endif\n"

    def _values(self) -> list[str]:
        """The body, with all that it reads in one array and all that it stores in another."""
        inner = KernelText(self.name, self.over, self.equations)
        inner.definitions = self.definitions
        inner.loads = {value: f"arrives[{k}]" for k, value in enumerate(self.loads)}
        inner.statements = [
            (f"leaves[{k}] = {{0}};", values) for k, (_, values) in enumerate(self.statements)
        ]
        return inner.body()

    def _load(self, k: int, place) -> str:
        (pointer,) = self.touched[0]
        if self.grid.staggered and place.offset[2]:
            return self._load_staggered(k, pointer, place)
        one, other = self._addresses(place)
        if other is None:
            return f"load_pair({pointer} + ({one}), arrives[0][{k}], arrives[1][{k}]);"
        return (
            f"arrives[0][{k}] = LOAD_OWN({pointer}, {one}), "
            f"arrives[1][{k}] = LOAD_OWN({pointer}, {other});"
        )

    def _store(self, k: int, place) -> str:
        (pointer,) = self.touched[1] or {pointer for pointer, _ in self.sent}
        one, other = self._addresses(place)
        if other is None:
            store = "send_pair" if self.sent else "store_pair"
            return f"{store}({pointer} + ({one}), leaves[0][{k}], leaves[1][{k}]);"
        apart = (
            f"STORE_OWN({pointer}, {one}, leaves[0][{k}]), "
            f"STORE_OWN({pointer}, {other}, leaves[1][{k}]);"
        )
        if not self.grid.staggered:
            return apart
        level, home = self._level(place)
        together = f"store_pair({pointer} + ({home}), leaves[0][{k}], leaves[1][{k}]);"
        return f"if ({level}) {together} else {apart}"

    def _level(self, place) -> tuple[str, str]:
        """Where rows are staggered: (C text: the neighbours have the cells' numbers, their pair).

        Else they are one cell of this pair and one beside it.
        """
        plane, row, beside = place.offset
        return "ODD" if beside < 0 else "!ODD", self.grid.address(place.slot, (plane, row, 0))

    def _load_staggered(self, k: int, pointer: str, place) -> str:
        """The pair of these numbers, and in every other row one of it with one beside it."""
        level, home = self._level(place)
        outside = self.grid.address(place.slot, place.offset)
        one, other = (0, 1) if place.offset[2] < 0 else (1, 0)
        return (
            f"load_pair({pointer} + ({home}), arrives[0][{k}], arrives[1][{k}]); "
            f"if (!({level})) arrives[{other}][{k}] = arrives[{one}][{k}], "
            f"arrives[{one}][{k}] = LOAD_OWN({pointer}, {outside});"
        )

    def _addresses(self, place) -> tuple[str, str | None]:
        """Of the values of both cells, None for the second where it follows the first."""
        plane, row, beside = place.offset
        first = self.grid.address(place.slot, (plane, row, 0))
        outside = self.grid.address(place.slot, place.offset)
        return {0: (first, None), -1: (outside, first), +1: (f"{first} + 1", outside)}[beside]


def _function(head: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"INLINE void {head}\n{{\n{body}\n}}\n"

"""What the outputs of a case need from kernels and geometry."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Needs:
    """What the outputs of a case need from kernels and geometry; by default nothing.

    weighed      numbers of the bodies whose forces are measured
    framed       whether one of these bodies reaches through a periodic face
    split        whether the pressure and viscous parts of these forces are needed
    by_cell      whether the forces on bodies of each cell next to them are needed
    sampled      whether samples of the flow are added, which takes kernels of their own
    roles        the roles of optional kernels, see `codegen.program.Kernel`
    transported  numbers of the scalars whose transport is measured, in walls and in the fluid
    """

    weighed: tuple[int, ...] = ()
    framed: bool = False
    split: bool = False
    by_cell: bool = False
    sampled: bool = False
    roles: frozenset[str] = frozenset()
    transported: tuple[int, ...] = ()

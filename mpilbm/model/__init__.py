"""What the folders below `case` use of a case.

    box.py          the box, the number types, what the outputs need from kernels and geometry
    case.py         a case, its fluids, scalars and bodies
    cell.py         a cell, as boundary conditions see it
    expressions.py  expressions in the cells of a kernel
    findings.py     settings of a case that are probably not intended
    limits.py       verdicts on accuracy and stability

`case.py` and `cell.py` consist of protocols: `case/` reads TOML into objects that have these
members. Their annotations name classes of higher folders, such as Collision and Layout, which are
imported for type checkers only.
"""

"""The layers of the package, from the lowest to the highest.

A module imports only from its own layer and from lower ones. Within the folders of one line the
order from left to right counts, too: `run` may import `preflight`, but not the other way round.
tests/test_imports.py checks this list; the chapter "How it works" shows it.
"""

LAYERS = (  # (folders and top-level modules, what they are)
    (
        "printable errors units quantity registry",
        "exit codes, names and their classes, lattice units",
    ),
    ("system", "terminal, child processes, kernel cache, files of the user"),
    ("choice", "a field of the case file that selects a registered class"),
    ("formulas", "formulas of the case file: parser, functions, values"),
    ("model", "what lower layers use of a case"),
    ("verdicts", "measured limits of accuracy and stability"),
    ("physics", "lattices, equilibria, collisions, closures, forcing, boundaries, couplings"),
    ("layouts", "how populations lie in memory"),
    ("parallel", "ranks, slabs, launchers, collective agreement"),
    ("links", "which populations must be supplied next to walls, and by which boundary"),
    ("codegen", "symbols to one kernel text for C, CUDA and OpenCL"),
    ("backends", "compiles and launches that text"),
    ("case", "the case file: tables, checks, messages, input files"),
    ("halo", "the ways in which planes travel to the neighbouring rank"),
    ("geometry", "bodies to solid cells to links; shapes; diagnosis"),
    ("solver", "one slab: state, passes, the time step"),
    ("storage", "result files: run folder, HDF5, CSV, background writing"),
    ("drawing", "figures from arrays"),
    ("outputs", "the outputs of a run, a file each"),
    ("results", "reads the files of a run"),
    ("plot preflight run", "pictures; check, info and list; the run"),
    ("bench comparison", "speed and scaling; a case with other precisions and models"),
    ("report", "pages in HTML"),
    ("manual plugin", "the manual; the public names for plug-ins"),
    ("cli __main__", "the command line"),
)

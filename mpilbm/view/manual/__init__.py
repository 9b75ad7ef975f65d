"""The manual: its chapters, the command that shows them, and their pages in HTML.

The chapters are the Markdown files of this folder, installed with the program, so that
`mpilbm manual` works without internet. `pages` finds and shows them, and builds the HTML pages.
`tools/manual` generates the chapters `case-file.md` and `python.md`. To add a chapter, add a file
`NAME.md` that begins with `# Title`, and its name to `pages.ORDER`.
"""

# A module imports only from its own folder and from folders above it in this list, which
# tests/test_imports.py checks and the chapter "How it works" shows.
LAYERS = (  # (folders and top-level modules, what they are)
    ("core", "errors, registry, units, quantities, formulas; files of the user, caches, processes"),
    ("model", "what lower layers use of a case; measured limits of accuracy and stability"),
    (
        "physics",
        "lattices, equilibria, collisions, closures, forcing, boundaries, wall laws, couplings",
    ),
    ("layouts", "how populations lie in memory"),
    ("parallel", "ranks, slabs, launchers, collective agreement"),
    (
        "solids",
        "bodies to solid cells; missing populations next to them, and their boundary",
    ),
    ("codegen", "symbols to one kernel text for C, CUDA and OpenCL"),
    ("backends", "compiles and launches that text"),
    ("halo", "the ways in which planes travel to the neighbouring rank"),
    ("case", "the case file: tables, checks, messages, input files"),
    ("solver", "one slab: state, passes, the time step"),
    ("storage", "result files: run folder, HDF5, CSV, background writing"),
    ("outputs", "the outputs of a run, a file each"),
    ("run", "the run; check, info and list"),
    ("view", "what reads results: plots, reports, comparisons, measurements of speed, the manual"),
    ("plugin", "the public names for plug-ins"),
    ("cli __main__", "the command line"),
)

"""`python -m mpilbm` is the command `mpilbm`.

Python then imports modules from the current folder first, until the lines below forbid it. Before
them it may already have executed a file of that folder: one called mpilbm.py, or like a module of
Python's own. In a folder of unknown origin use `mpilbm` or `python -P -m mpilbm`.
"""

import os
import sys

if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
    del sys.path[0]

from mpilbm.cli import main

main()

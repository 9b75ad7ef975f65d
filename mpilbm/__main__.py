"""`python -m mpilbm` is the command `mpilbm`.

`python -m` imports modules from the current folder first. The lines below remove that folder from
the search path, but Python may already have executed a file in it: mpilbm.py, or one with the name
of a standard module. In a folder from an unknown source use `mpilbm` or `python -P -m mpilbm`.
"""

import os
import sys

if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
    del sys.path[0]

from mpilbm.cli import main

main()

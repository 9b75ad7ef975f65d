"""`python -m mpilbm` is the command `mpilbm`."""

from mpilbm.cli import main

main()

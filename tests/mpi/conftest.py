"""All tests here run under mpirun: `mpirun -n 2 python -m pytest --with-mpi tests/mpi`."""

import pytest

from mpilbm.parallel.ranks import world


@pytest.fixture
def comm():
    return world()

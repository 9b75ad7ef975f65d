"""Tables of probes have the same bits on any number of ranks."""

import numpy as np
import pytest
from support.mpi_runs import run_on_rank_0, run_on_ranks
from support.outputs_cases import make_case

from mpilbm.outputs.core.tables import read

pytestmark = pytest.mark.mpi

BALL = [{"label": "ball", "shape": {"name": "sphere", "centre": [3, 2.5, 4], "radius": 1.4},
         "boundary": {"name": "bounce_back"}}]  # fmt: skip
POINTS = [[0.7, 0.2, 7.9], [3.1, 2.2, 5.6], [5.9, 4.1, 3.95], [1.5, 2.5, 0.2]]


@pytest.mark.parametrize("kind", ["indirect", "ab", "staggered"])
def test_a_probe_has_the_bits_of_one_rank(comm, kind, mpi_tmp_path):
    lattice, layout = ("D3Q13", "ab") if kind == "staggered" else ("D3Q19", kind)
    output = {"name": "probe", "every": 2, "points": POINTS,
              "fields": ["rho", "u", "vorticity", "q_criterion"]}  # fmt: skip
    formats = [output, output | {"format": "csv", "label": "t"}]
    collision = {"collision": {"name": "mrt"}} if kind == "staggered" else {}
    case = make_case(
        (6, 6, 8), formats, body=BALL, layout={"name": layout}, lattice={"name": lattice},
        initial={"u": ["0.02*sin(2*pi*z/nz)", "0.02*cos(2*pi*x/nx)", 0.01]}, run={"steps": 5},
        **collision,
    )  # fmt: skip
    run_on_rank_0(comm, case, mpi_tmp_path / "one")
    run_on_ranks(comm, comm.size, case, mpi_tmp_path / "all")
    one, other = (read(mpi_tmp_path / name / "probe_0.h5") for name in ("one", "all"))
    assert one["step"].tolist() == [2, 4, 5]
    assert np.ptp(one["u"]) > 0.01
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name
    texts = [(mpi_tmp_path / name / "probe_t.csv").read_text() for name in ("one", "all")]
    assert texts[0] == texts[1]

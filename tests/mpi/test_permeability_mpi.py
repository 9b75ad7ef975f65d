"""permeability.csv, and the end of a run that it determines, on one rank and on all."""

from support.mpi_runs import run_on_rank_0, run_on_ranks

from mpilbm.case.case import parse_case


def tables():
    """A ball in a periodic box, driven along y."""
    ball = {"name": "sphere", "centre": [3.7, 4.2, 6.1], "radius": 2.6}
    return {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": [8, 7, 13], "periodic": [True] * 3},
        "fluid": {"viscosity": 0.2},
        "collision": {"name": "trt"},
        "force": {"name": "guo", "value": [0, 1e-5, 0]},
        "body": [{"label": "ball", "shape": ball, "boundary": {"name": "bounce_back"}}],
        "backend": {"name": "cpu"},
        "run": {"steps": 900, "steady": {"every": 20, "of": "permeability", "tolerance": 1e-2}},
        "output": [{"name": "permeability", "every": 15, "voxel": "1 mm"}],
    }


def test_rows_and_end_do_not_depend_on_the_ranks(mpi_tmp_path, comm):
    case = parse_case(tables(), "ball.toml")
    run_on_rank_0(comm, case, mpi_tmp_path / "one")
    run_on_ranks(comm, comm.size, case, mpi_tmp_path / "all")
    texts = [(mpi_tmp_path / name / "permeability.csv").read_text() for name in ("one", "all")]
    assert texts[0] == texts[1]
    step = int(texts[0].splitlines()[-1].split(",")[0])
    assert step % 20 == 0
    assert step < 900

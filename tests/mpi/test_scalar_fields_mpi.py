"""Scalars in all outputs of fields: 2 ranks write the files that one rank writes."""

import csv

import numpy as np
import pytest
from support.mpi_runs import LAST, datasets, run_on_rank_0
from support.scalars import carried, setting
from support.scalars import flow as carrying

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

pytestmark = pytest.mark.mpi
FIELDS = {"every": 3, "fields": ["T", "u", "S"]}


def outputs(D) -> list[dict]:
    middle, size = [3.0, 2.5, 4.5][-D:], [6, 5, 9][-D:]
    low, high = [0.5, *middle[1:]], [size[0] - 0.5, *middle[1:]]
    found = [
        {"name": "snapshot", **FIELDS},
        {"name": "line", "from": low, "to": high, **FIELDS},
        {"name": "box", "from": [1] * D, "to": [4] * D, **FIELDS},
        {"name": "probe", "points": [middle, [1.2] * D], **FIELDS},
        {"name": "probe", "points": [[1.2] * D], "format": "csv", "label": "rows", **FIELDS},
        {"name": "picture", "every": 7, "field": "T"},
    ]
    plane = {"name": "plane", "normal": "z", "position": 4.5, **FIELDS}
    return [*found, plane] if D == 3 else found


@pytest.mark.parametrize(("lattice", "layout"), [("D2Q9", "esopull"), ("D3Q19", "aa")])
def test_ranks_do_not_show(mpi_tmp_path, lattice, layout):
    comm, D = world(), int(lattice[1])
    tables = carrying(lattice, layout, "single", **setting("walls", D))
    tables["scalar"] = [*tables["scalar"], carried("S", 0.05)]
    tables |= {"run": {"steps": LAST}, "backend": {"name": "cpu"}, "output": outputs(D)}
    case = parse_case(tables, "flow.toml")
    single, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    run_on_rank_0(comm, case, single)
    run(case, comm, many)
    comm.Barrier()
    names = sorted(path.name for path in single.iterdir() if path.name != "summary.json")
    kinds = {name.partition("_")[0].partition(".")[0] for name in names}
    assert kinds >= {output["name"] for output in outputs(D)}
    for name in names:
        assert (many / name).read_bytes() == (single / name).read_bytes(), name
    for kind in kinds & {"snapshot", "line", "box", "plane"}:
        (path,) = single.glob(f"{kind}*_{LAST:09d}.vtkhdf")
        cells = datasets(path)
        assert cells["VTKHDF/CellData/T"].std() > 1e-3, kind
        assert not np.array_equal(cells["VTKHDF/CellData/T"], cells["VTKHDF/CellData/S"])
    with (single / "probe_rows.csv").open() as file:
        row = list(csv.DictReader(file))[-1]
    assert any(name.startswith("T") and 0 < float(value) < 2 for name, value in row.items())

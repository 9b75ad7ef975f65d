"""Flows whose statistics are compared, one for each way in which a sample reads populations."""

import numpy as np

from support import coupled, free_energy, settings


def with_statistics(tables: dict) -> dict:
    """The tables of a case whose program has the kernels of samples."""
    return tables | {"output": [{"name": "statistics", "every": 1, "average": ["x"]}]}


_FLOWS = {
    "two arrays": lambda: settings.tables("D3Q19", "ab", "trt", "walls", "single"),
    "in place": lambda: settings.tables("D3Q19", "aa", "bgk", "forced", "single"),
    "moments": lambda: settings.tables("D3Q19", "moments", "regularized", "forced", "half"),
    "nodes": lambda: settings.tables("D3Q19", "indirect", "bgk", "forced", "half"),
    "planes of a row": lambda: settings.tables("D2Q9", "esopull", "bgk", "forced", "double"),
    "staggered": lambda: settings.tables("D3Q13", "esopull", "mrt", "forced", "single"),
    "timed forces": lambda: coupled.two_fluids("D3Q19", layout={"name": "aa"}),
    "two fluids": lambda: free_energy.waves("D2Q9"),
}
FLOWS = {name: lambda make=make: with_statistics(make()) for name, make in _FLOWS.items()}
KINDS = {"cells": (False, False), "columns": (False, True), "rows": (True, False)}


def sampled(cluster, kind: str, samples: int = 3, look=lambda cluster: None) -> list:
    """The statistics of each slab after samples at steps 1, 2, …; `look` is called at each."""
    kept = cluster.each(lambda solver: solver.statistics(*KINDS[kind]))
    solvers = {id(solver): k for k, solver in enumerate(cluster.solvers)}
    for _ in range(samples):
        cluster.run(1)
        cluster.each(lambda solver: kept[solvers[id(solver)]].sample())
        look(cluster)
    return kept


def means(solver, statistics) -> dict[str, np.ndarray]:
    """The fields that the device computes from sums of cells, copied in several pieces."""
    copies, found = solver.copies(2, 2**20).means(statistics), []
    for planes in ((0, 1), (1, statistics.planes)):
        with copies.start(*planes) as fields:
            found.append({name: data.copy() for name, data in fields.items()})
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

"""Runs of small flows with outputs whose samples the host evaluates."""

import h5py
import numpy as np
import pytest

from mpilbm.case.case import parse_case

SIZES = {"D3Q19": [8, 6, 5], "D2Q9": [9, 6], "D3Q13": [8, 6, 6]}


def flow(outputs, lattice="D3Q19", layout="ab", steps=8, **more):
    """A flow with waves along all axes, snapshots of the sampled steps, and these outputs."""
    D = len(SIZES[lattice])
    u = ["0.02*sin(2*pi*(2*x/nx + y/ny)) + 0.01*sin(6*pi*x/nx)", "0.01*cos(2*pi*x/nx)", "0.01"]
    tables = {
        "lattice": {"name": lattice},
        "domain": {"size": SIZES[lattice], "periodic": [True] * D},
        "fluid": {"viscosity": 0.1},
        "layout": {"name": layout},
        "initial": {"u": u[:D]},
        "run": {"steps": steps},
        "backend": {"name": "cpu"},
        "output": [{"name": "snapshot", "every": 2}, *outputs],
    }
    return parse_case(tables | more, "flow.toml")


def datasets(path):
    """The datasets and the attributes of a file."""
    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}, dict(file.attrs)


def samples(folder, D, steps):
    """rho and u (samples, nz, ny, nx, 1 + D) from snapshots, and the solid cells."""
    found, solid = [], False
    for step in steps:
        with h5py.File(folder / f"snapshot_{step:09d}.vtkhdf") as file:
            cells = file["VTKHDF/CellData"]
            rho, u = cells["rho"][()].astype(float), cells["u"][()].astype(float)[..., :D]
            found.append(np.concatenate([rho[..., None], u], axis=-1))
            solid = cells["solid"][()] != 0 if "solid" in cells else np.zeros(rho.shape, bool)
    return np.stack(found), solid


def by_vtk(path):
    """Extent, spacing and arrays (nz, ny, nx, …) as VTK reads them."""
    reader = pytest.importorskip("vtkmodules.vtkIOHDF").vtkHDFReader()
    to_numpy = pytest.importorskip("vtkmodules.util.numpy_support").vtk_to_numpy
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    shape = [n - 1 for n in image.GetDimensions()][::-1]
    data = image.GetCellData()
    arrays = [data.GetArray(k) for k in range(data.GetNumberOfArrays())]
    found = {each.GetName(): to_numpy(each) for each in arrays}
    return image.GetSpacing(), {
        name: each.reshape(*shape, *each.shape[1:]) for name, each in found.items()
    }

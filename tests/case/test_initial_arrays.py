"""Initial fields from arrays in files: what is read, resampled and scaled, and what is refused."""

import h5py
import numpy as np
import pytest
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.storage.directory import _refuse_inputs

SIZES = {"D2Q9": (6, 5), "D3Q13": (4, 6, 8), "D3Q19": (6, 5, 7)}


def fields(size, seed=1):
    """Random rho and u, slowest axis first."""
    random, D = np.random.default_rng(seed), len(size)
    shape = size[::-1]
    return 1 + 0.01 * random.random(shape), 0.05 * (random.random((*shape, D)) - 0.5)


def saved(folder, kind, rho, u):
    """The name of a file of this kind with these arrays."""
    if kind == "npz":
        np.savez(folder / "start.npz", rho=rho, u=np.asfortranarray(u), other=np.zeros(3))
        return str(folder / "start.npz")
    name = "u" if kind.endswith(" u") else "rho"
    values = {"u": u, "rho": rho}[name]
    if kind.startswith("npy"):
        np.save(folder / f"{name}.npy", values)
        return str(folder / f"{name}.npy")
    with h5py.File(folder / "f.h5", "w") as file:
        file[f"flow/{name}"] = values
    return f"{folder / 'f.h5'}:flow/{name}"


def case_of(lattice, size, **initial):
    collision = {"name": "mrt" if lattice == "D3Q13" else "bgk"}
    return box(lattice, size, precision=PRECISIONS["double"], initial=initial, collision=collision)


@pytest.mark.parametrize("lattice", SIZES)
@pytest.mark.parametrize("kind", ["npz", "npy u", "npy rho", "h5 u", "h5 rho"])
def test_every_cell_has_the_value_of_the_array(tmp_path, lattice, kind):
    size = SIZES[lattice]
    rho, u = fields(size)
    name = saved(tmp_path, kind, rho, u)
    case = parse_case(case_of(lattice, size, file=name), tmp_path / "a.toml")
    case.fluids[0].initial.require()
    initial, shape = case.fluids[0].initial, case.shape
    found = initial.evaluate(shape, 0, shape[0])
    parts = [initial.evaluate(shape, k, k + 1) for k in range(shape[0])]
    plane, row, k = np.ogrid[tuple(slice(n) for n in shape)]
    at = plane, row, case.lattice.x(plane, row, k)
    rho, u = (rho[:, None], u[:, None]) if len(size) == 2 else (rho, u)
    for index, (key, values) in enumerate({"rho": rho, "u": u}.items()):
        given = kind == "npz" or kind.endswith(f" {key}")
        wanted = values[at] if given else np.full(values[at].shape, 1.0 - index)
        assert np.array_equal(found[index], wanted)
        assert np.array_equal(np.concatenate([part[index] for part in parts]), wanted)


def test_any_number_of_slabs_begins_alike(tmp_path):
    rho, u = fields((6, 5, 7))
    np.savez(tmp_path / "start.npz", rho=rho, u=u)
    tables = case_of("D3Q19", (6, 5, 7), file=str(tmp_path / "start.npz"))
    one, three = (Cluster(tables, n).start().state() for n in (1, 3))
    assert np.array_equal(one, three)


@pytest.mark.parametrize("coupled", [False, True])
def test_scale_keeps_the_flow_on_twice_the_cells(tmp_path, coupled):
    """Half the velocity, a quarter of the pressure; densities of coupled fluids are kept."""
    rho = 1 + 0.01 * np.linspace(0, 1, 4) * np.ones((6, 1))
    u = np.stack([rho - 0.98, 0 * rho], axis=-1)
    np.savez(tmp_path / "start.npz", rho=rho, u=u)
    tables = case_of("D2Q9", (8, 12), file=str(tmp_path / "start.npz"), scale=0.5)
    tables |= {"coupling": {"name": "shan_chen", "G": -1.0}} if coupled else {}
    initial = parse_case(tables, tmp_path / "a.toml").fluids[0].initial
    plain = initial.model_copy(update={"scale": 1.0})
    before, after = (each.evaluate((12, 1, 8), 0, 12) for each in (plain, initial))
    assert np.array_equal(after[1], 0.5 * before[1])
    assert np.allclose(after[0] - 1, (before[0] - 1) * (1 if coupled else 0.25), atol=1e-15)
    assert 0.02 < before[1].max() <= 0.03


def refused(folder, name, lattice="D2Q9", **initial):
    tables = case_of(lattice, SIZES[lattice], file=str(name), **initial)
    tables |= {"backend": {"name": "cpu"}}
    with pytest.raises(CaseError) as error:
        run(parse_case(tables, folder / "a.toml"), Serial(), folder / "out")
    assert not (folder / "out").exists()
    return str(error.value)


def test_what_is_refused(tmp_path):
    rho, u = fields((6, 5))
    path = tmp_path / "a.npz"
    assert "is missing: there is no file" in refused(tmp_path, path)
    np.savez_compressed(path, u=u)
    assert "is compressed, so that no rank can read its own part of 'u'" in refused(tmp_path, path)
    np.savez(path, v=u)
    assert "has no array 'rho' or 'u'; it has v" in refused(tmp_path, path)
    np.savez(path, u=u[..., :1])
    assert "(5, 6, 1) in 'u'; allowed: (ny, nx) for rho and (ny, nx, 2)" in refused(tmp_path, path)
    np.savez(path, u=u.astype(complex))
    assert "has type complex128 in 'u'; save it as float64" in refused(tmp_path, path)
    np.savez(path, u=np.array([{}, None], object))
    assert "'u' (an array contains Python objects)" in refused(tmp_path, path)
    path.write_bytes(b"no zip")
    assert "cannot be read as .npz" in refused(tmp_path, path)
    np.savez(path, rho=rho, u=u)
    assert "allowed: (nz, ny, nx) for rho" in refused(tmp_path, path, "D3Q19")
    np.savez(path, rho=rho, u=u + np.where(rho > 1.005, np.nan, 0)[..., None])
    assert "initial.file: nan in cell x=" in refused(tmp_path, path)
    np.savez(path, u=u + 0.4)
    fix = "above the speed of sound; allowed: below 0.5774; use another file, or change scale"
    assert fix in refused(tmp_path, path)
    np.save(tmp_path / "a.npy", rho[0])
    assert "has shape (6,) in 'rho'" in refused(tmp_path, tmp_path / "a.npy")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["u"] = u
    assert "has no dataset 'v'; it has u" in refused(tmp_path, f"{tmp_path}/f.h5:v")


def test_scale_belongs_to_a_file():
    with pytest.raises(CaseError, match="has scale but no file"):
        parse_case(case_of("D2Q9", (6, 5), scale=0.5), "a.toml")


@pytest.mark.parametrize("name", ["start.npz", "a.h5:u", "a.vtkhdf"])
def test_a_file_that_overwrite_would_delete_is_refused(tmp_path, name):
    tables = case_of("D2Q9", (6, 5), file=f"out/{name}")
    case = parse_case(tables, tmp_path / "a.toml")
    _refuse_inputs(case, [tmp_path / "other.h5"])
    with pytest.raises(CaseError, match=r"initial.file: .* is one of the files that --overwrite"):
        _refuse_inputs(case, [tmp_path / "out" / name.partition(":")[0]])

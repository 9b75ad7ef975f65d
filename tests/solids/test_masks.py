"""Masks from files: what is read, and what is said of files that cannot be used."""

from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.solids.masks import load_mask
from mpilbm.solids.volumes import solid_planes

SHAPE = 13, 4, 5
MASK = np.random.default_rng(1).random(SHAPE) < 0.4


@pytest.fixture
def case(tmp_path):
    return case_of(tmp_path, "D3Q19", SHAPE)


def case_of(folder, lattice, shape):
    lattice = make("lattices", lattice)
    path = folder / "rock.toml"
    return SimpleNamespace(
        directory=folder, path=path, shape=shape, dimensions=lattice.D, lattice=lattice
    )


def problem(case, spec):
    with pytest.raises(CaseError) as error:
        load_mask(spec, case, 0, 1, "body.0.mask")
    assert str(error.value).startswith(f"{case.path}: body.0.mask: '{spec}' ")
    return str(error.value)


def test_nan_is_neither_solid_nor_fluid(case, tmp_path):
    mask = MASK.astype(float)
    mask[0, 1, 2] = np.nan
    np.save(tmp_path / "rock.npy", mask)
    assert "nan in planes 0 to" in problem(case, "rock.npy")


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
@pytest.mark.parametrize("dtype", [bool, np.int16, np.uint8, ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(case, monkeypatch, block, dtype, order):
    monkeypatch.setattr(solid_planes, "BLOCK", block)
    np.save(case.directory / "rock.npy", np.asarray(MASK * 7, dtype, order=order))
    for begin, end in ((0, 13), (12, 13), (3, 8)):
        solid = load_mask("rock.npy", case, begin, end)
        assert solid.dtype == bool
        np.testing.assert_array_equal(solid, (MASK * 7).astype(dtype)[begin:end] != 0)


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
@pytest.mark.parametrize("chunks", [None, (4, 2, 5), (13, 4, 5)])
def test_hdf5(case, monkeypatch, block, chunks):
    monkeypatch.setattr(solid_planes, "BLOCK", block)
    with h5py.File(case.directory / "a:b.h5", "w") as file:
        file.create_dataset("scans/dry", data=MASK * 0.5, chunks=chunks)
    for begin, end in ((0, 13), (12, 13), (3, 8)):
        solid = load_mask("a:b.h5:scans/dry", case, begin, end)
        np.testing.assert_array_equal(solid, MASK[begin:end])


@pytest.mark.parametrize("shape", [(13, 5), (1, 13, 5)])
def test_two_dimensions(case, shape):
    case.shape, case.dimensions = (13, 1, 5), 2
    np.save(case.directory / "rock.npy", MASK[:, 0].reshape(shape))
    with h5py.File(case.directory / "rock.h5", "w") as file:
        file.create_dataset("mask", data=MASK[:, 0].reshape(shape), chunks=True)
    for spec in ("rock.npy", "rock.h5:mask"):
        np.testing.assert_array_equal(load_mask(spec, case, 2, 9), MASK[2:9, :1])


def test_missing(case):
    assert "there is no file" in problem(case, "rock.npy")
    assert "there is no file" in problem(case, "rock.h5:mask")
    for spec in ("rock.h5", "rock.h5:", ":mask", ""):
        assert "name a file.npy or a file.h5:dataset" in problem(case, spec)


def test_missing_dataset_lists_those_that_are_there(case):
    with h5py.File(case.directory / "rock.h5", "w") as file:
        file["scans/dry"] = MASK
        file["wet"] = MASK
    text = "is missing: rock.h5 has no dataset '{}'; it has scans/dry, wet"
    for name in ("mask", "scans"):
        assert problem(case, f"rock.h5:{name}").endswith(text.format(name))


def test_wrong_shape(case):
    np.save(case.directory / "rock.npy", MASK.T)
    assert "has shape (5, 4, 13); allowed: (13, 4, 5)" in problem(case, "rock.npy")
    case.shape, case.dimensions = (13, 1, 5), 2
    assert "allowed: (13, 5) or (1, 13, 5)" in problem(case, "rock.npy")
    with h5py.File(case.directory / "rock.h5", "w") as file:
        file["mask"] = h5py.Empty("f4")
    assert "has no values" in problem(case, "rock.h5:mask")


def test_wrong_type(case):
    np.save(case.directory / "rock.npy", np.full(SHAPE, None), allow_pickle=True)
    assert "Python objects; save it as bool or uint8" in problem(case, "rock.npy")
    np.save(case.directory / "rock.npy", np.full(SHAPE, "solid"))
    assert "has type <U5; save it as bool or uint8" in problem(case, "rock.npy")
    with h5py.File(case.directory / "rock.h5", "w") as file:
        file["mask"] = np.full(SHAPE, "solid", object)
    assert "has type object in 'mask'; allowed: bool, int, uint, float; convert" in problem(
        case, "rock.h5:mask"
    )


def test_damaged_files(case):
    np.save(case.directory / "rock.npy", MASK)
    whole = (case.directory / "rock.npy").read_bytes()
    unclosed = whole.replace(b"}", b" ")
    for damaged in (b"", b"PK\x03\x04", whole[:7], whole[:60], whole[:-1], unclosed):
        (case.directory / "rock.npy").write_bytes(damaged)
        found = problem(case, "rock.npy")
        assert "cannot be read as .npy" in found or "is truncated" in found
    with h5py.File(case.directory / "rock.h5", "w") as file:
        file.create_dataset("mask", data=MASK, chunks=True, compression="gzip")
    whole = (case.directory / "rock.h5").read_bytes()
    for damaged in (b"", whole[:100], whole[:-50]):
        (case.directory / "rock.h5").write_bytes(damaged)
        assert "cannot be read as HDF5" in problem(case, "rock.h5:mask")

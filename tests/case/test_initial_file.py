"""A flow that begins with an earlier snapshot: as it was, or resampled; and what is refused."""

import h5py
import numpy as np
import pytest
from support.outputs_cases import flip_bit, make_case, make_context
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.case.initial_files import load_fields
from mpilbm.core.errors import CaseError
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run


def snapshot(folder, size, rho, u, fields=("rho", "u")):
    """A snapshot written by us, filled with other values."""
    Snapshot(every=1, fields=fields, background=False).open(
        make_context(folder, make_case(size))
    ).write(1)
    path = folder / "snapshot_000000001.vtkhdf"
    with h5py.File(path, "r+") as file:
        for name, values in {"rho": rho, "u": u}.items():
            if name in fields and values is not None:
                file[f"VTKHDF/CellData/{name}"][...] = values
    return path


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_a_flow_goes_on_from_its_snapshot(tmp_path, lattice):
    """The same rho and u in every cell, up to rounding."""
    tables = box(lattice, precision=PRECISIONS["double"], backend={"name": "cpu"})
    tables["output"] = [{"name": "snapshot", "every": 100}]
    run(parse_case(tables, "a.toml"), Serial(), tmp_path)
    after = Cluster(tables).start().run(7).fields("rho", "u")
    again = tables | {"initial": {"file": str(tmp_path / "snapshot_000000007.vtkhdf")}}
    found = Cluster(again, 3).start().fields("rho", "u")
    for name, values in after.items():
        np.testing.assert_allclose(found[name], values, atol=1e-15)


def linear(size):
    """rho and u that are linear in the place within the box, (nz, ny, nx)."""
    z, y, x = np.meshgrid(*((np.arange(n) + 0.5) / n for n in reversed(size)), indexing="ij")
    rho = 1 + 0.1 * x + 0.2 * y - 0.3 * z
    return rho, np.stack([0.1 * z, 0.05 * x - 0.02 * y, 0.03 * y + 0.01 * z], axis=-1)


@pytest.mark.parametrize("size", [(10, 12, 14), (5, 4, 7), (4, 3, 5)])
def test_what_is_linear_stays_so(tmp_path, size):
    """Between the outermost centres; beyond them the last value holds."""
    path = snapshot(tmp_path, (5, 4, 7), *linear((5, 4, 7)))
    rho, u = load_fields(path, size[::-1], (False,) * 3, 0, size[2])
    inside = tuple(slice(1, -1) for _ in size)
    for found, expected in zip((rho, u), linear(size), strict=True):
        np.testing.assert_allclose(found[inside], expected[inside], atol=3e-8)
    parts = [load_fields(path, size[::-1], (False,) * 3, k, k + 1)[1] for k in range(size[2])]
    assert np.array_equal(np.concatenate(parts), u)


def test_periodic_faces_join(tmp_path):
    """In 2D, twice as fine: a quarter of the way to the neighbour across the face."""
    u = np.zeros((1, 6, 5, 3))
    u[0, 0, :, 0], u[0, :, 4, 1] = 0.04, 0.08
    path = snapshot(tmp_path, (5, 6), 1.0, u)
    _, found = load_fields(path, (12, 1, 10), (True, True), 0, 12)
    np.testing.assert_allclose(found[:3, 0, 0, 0], [0.03, 0.03, 0.01], atol=1e-8)
    assert found[11, 0, 0, 0] == pytest.approx(0.01)
    assert found[0, 0, 0, 1] == pytest.approx(0.02)
    _, closed = load_fields(path, (12, 1, 10), (False, False), 0, 12)
    assert closed[0, 0, 0, 0] == pytest.approx(0.04)
    assert closed[11, 0, 0, 0] == 0


def refused(folder, file, D=2):
    lattice = "D2Q9" if D == 2 else "D3Q19"
    tables = box(lattice, initial={"file": str(file)}, backend={"name": "cpu"})
    with pytest.raises(CaseError) as error:
        run(parse_case(tables, folder / "a.toml"), Serial(), folder / "out")
    assert not (folder / "out").exists()
    return str(error.value)


def test_what_is_refused(tmp_path):
    """Before anything is allocated."""
    ones = np.ones((1, 6, 5))
    assert "initial.file: 'nowhere.h5' is missing: there is no such file" in refused(
        tmp_path, "nowhere.h5"
    ).replace(f"{tmp_path}/", "")
    path = snapshot(tmp_path, (5, 6), ones, None, fields=("rho", "vorticity"))
    assert (
        "has no u; it has VTKHDF/CellData/rho, VTKHDF/CellData/vorticity; write a snapshot"
        in refused(tmp_path, path)
    )
    path = snapshot(tmp_path, (5, 6), ones, 0)
    assert "has 2 dimensions, the case 3" in refused(tmp_path, path, 3)
    path = snapshot(tmp_path, (5, 6), np.where(np.arange(5) == 3, np.nan, ones), 0)
    assert "initial.file: nan in cell x=" in refused(tmp_path, path)
    path.write_text("no HDF5")
    assert "cannot be read as HDF5" in refused(tmp_path, path)


def test_a_damaged_snapshot_is_refused_before_hdf5_opens_it(tmp_path):
    """A file that HDF5 has opened for writing has no digest, and what is in it is checked."""
    tables = box("D2Q9", output=[{"name": "snapshot", "every": 100}], backend={"name": "cpu"})
    run(parse_case(tables, "a.toml"), Serial(), tmp_path)
    path = tmp_path / "snapshot_000000007.vtkhdf"
    flip_bit(path, 200)
    assert "is damaged: bytes 0 to" in refused(tmp_path, path)
    begun = box("D2Q9", initial={"file": str(path)}, backend={"name": "cpu"})
    with pytest.raises(CaseError, match="is damaged: bytes 0 to"):
        plan(parse_case(begun, tmp_path / "a.toml"))
    flip_bit(path, 200)

    def case(text):
        with h5py.File(path, "r+") as file:
            file["mpilbm"].attrs["case"] = text
        return refused(tmp_path, path)

    assert "its attribute 'case' of 'mpilbm' is of type int64; use" in case(3)
    for text in ("title =", "", "[domain]\nsize = 7", "[domain]\nsize = ['a', 3]"):
        assert "its case has no domain.size" in case(text)
    assert "'rho' has shape (1, 13, 4), its box requires" in case("[domain]\nsize = [3, 10]")


def test_a_snapshot_that_declares_more_than_it_holds_is_refused(tmp_path):
    """11 kB in which all values are one that was never written."""
    with h5py.File(tmp_path / "large.vtkhdf", "w") as file:
        for name, more in (("rho", ()), ("u", (3,))):
            kind = {"dtype": "f4", "chunks": (1, 100, 100, *more)}
            file.create_dataset(f"VTKHDF/CellData/{name}", (1, 200000, 200000, *more), **kind)
        file.create_group("mpilbm").attrs["case"] = "[domain]\nsize = [200000, 200000]"
    assert "declares 160000000000 bytes in /VTKHDF/CellData/rho, but contains 0" in refused(
        tmp_path, tmp_path / "large.vtkhdf"
    )

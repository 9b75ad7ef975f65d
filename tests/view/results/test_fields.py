"""Fields in a file: the same checks and messages for a series and for pictures."""

import h5py
import pytest
from support import image_cases

from mpilbm import CommandError
from mpilbm.view.results.fields import FieldFile
from mpilbm.view.results.snapshot import view


@pytest.fixture
def path(tmp_path):
    snapshot = {"name": "snapshot", "every": 20, "compression": "gzip"}
    image_cases.run(tmp_path, given=image_cases.tables(outputs=[snapshot]))
    return tmp_path / "snapshot_000000020.vtkhdf"


def readers(path):
    """Functions that read a field of a file."""

    def picture(name):
        with view(path) as found:
            return found.field(name)[:]

    return FieldFile(path, 3).field, picture


def test_a_field_that_is_not_in_the_file(path):
    for read in readers(path):
        with pytest.raises(CommandError, match=r"vtkhdf: has no field 'phi'; allowed: rho, u$"):
            read("phi")
        assert read("u").shape == (14, 12, 20, 3)


def test_a_field_that_the_file_only_declares(path):
    with h5py.File(path, "r+") as file:
        cells = file["VTKHDF/CellData"]
        cells.create_dataset("phi", (14, 12, 20), "f4", chunks=(1, 12, 20))
    with view(path) as found, pytest.raises(CommandError, match=r"declares 13440 bytes in .*phi"):
        found.field("phi")
    with pytest.raises(CommandError, match=r"declares 13440 bytes in .*phi"):
        FieldFile(path, 3).field("phi")

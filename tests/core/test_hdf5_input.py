"""HDF5 files of others: what is read of them, and what is refused before it is read."""

import os
import zlib

import h5py
import numpy as np
import pytest
from support.outputs_cases import flip_bit

from mpilbm.core.files.file_digest import Extent, trailer
from mpilbm.core.files.hdf5 import Hdf5InputError, attribute, dataset_names, opened, values
from mpilbm.core.files.input_arrays import load_numbers

NUMBERS = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.h5"
    with h5py.File(path, "w") as file:
        file["in/u"] = NUMBERS
        file["soft"] = h5py.SoftLink("/in/u")
        file["folder"] = h5py.SoftLink("in")
        file["round"] = h5py.SoftLink("/round")
        file["gone"] = h5py.SoftLink("/nowhere")
        file["outside"] = h5py.ExternalLink("other.h5", "/u")
        file["by way"] = h5py.SoftLink("/outside")
        file.create_dataset("stored outside", (3, 4), "f8", external=[("/etc/passwd", 0, 96)])
        layout = h5py.VirtualLayout((3, 4), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "u", (3, 4))
        file.create_virtual_dataset("virtual", layout)
        file["text"] = ["a", "b"]
        file["pairs"] = np.zeros(3, [("a", "f4"), ("b", "i4")])
        file["complex"] = np.zeros(3, complex)
        file["type"] = np.dtype("f8")
        file.attrs["name"], file.attrs["names"], file.attrs["step"] = "a", ["a", "b"], 3
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["u"] = NUMBERS
    return path


@pytest.mark.parametrize("name", ["in/u", "/in//u", "soft", "folder/u"])
def test_a_dataset_is_found_by_links_within_the_file(path, name):
    with opened(path) as file:
        found = values(file, name)
        assert (found.shape, found.ndim, found.dtype) == ((3, 4), 2, np.float64)
        np.testing.assert_array_equal(found[1:, 2], NUMBERS[1:, 2])
        found.require_stored()


@pytest.mark.parametrize("name", ["in", "no", "in/u/more", "round", "gone", "type", "", "folder"])
def test_what_is_no_dataset_is_none(path, name):
    with opened(path) as file:
        assert values(file, name) is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("outside", "'outside' is a link to '/u' in other.h5"),
        ("by way", "is a link to '/u' in other.h5"),
        ("stored outside", "is a dataset with external storage"),
        ("virtual", "is a dataset with virtual storage"),
        ("text", "has type object in 'text'; allowed: bool, int, uint, float"),
        ("pairs", "has type"),
        ("complex", "has type complex128"),
    ],
)
def test_other_files_and_other_types_are_refused(path, name, found):
    with opened(path) as file, pytest.raises(Hdf5InputError, match=found):
        values(file, name)


def test_a_shape_is_refused_before_the_values_are_read(path):
    with h5py.File(path, "a") as file:
        file.create_dataset("large", (200000, 200000), "f4", chunks=(100, 100))

    def shapes(shape):
        raise ValueError(f"has shape {shape}")

    with pytest.raises(ValueError, match=r"has shape \(200000, 200000\)"):
        load_numbers(path.parent, "some.h5:large", shapes)
    with opened(path) as file, pytest.raises(Hdf5InputError, match="declares 160000000000 bytes"):
        values(file, "large").require_stored()


def test_a_file_with_a_digest_is_verified(path):
    content = path.read_bytes()
    path.write_bytes(content + trailer([Extent(0, 1, len(content))], [zlib.crc32(content)]))
    assert load_numbers(path.parent, "some.h5:in/u").shape == (3, 4)
    flip_bit(path, len(content) // 2)
    with pytest.raises(Hdf5InputError, match="is damaged: bytes 0 to"):
        load_numbers(path.parent, "some.h5:in/u")


def test_names_stop_when_there_are_many(path):
    with opened(path) as file:
        assert dataset_names(file)[:2] == ["complex", "in/u"]
        assert len(dataset_names(file, 2)) == 3


def test_attributes_have_a_type(path):
    with opened(path) as file:
        assert attribute(file, "/", "name", str) == "a"
        assert attribute(file, "/", "step", np.integer) == 3
        for name, found in (("names", "is of type ndarray"), ("no", "is missing")):
            with pytest.raises(Hdf5InputError, match=found):
                attribute(file, "/", name, str)


@pytest.mark.parametrize("kind", ["folder", "pipe", "missing", "text"])
def test_what_is_no_hdf5_file(tmp_path, kind):
    path = tmp_path / "a.h5"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "text":
        path.write_text("no HDF5")
    found = {"text": "cannot be read as HDF5", "missing": "cannot be read: No such"}
    with pytest.raises(Hdf5InputError, match=found.get(kind, "is not a regular file")):  # noqa: SIM117
        with opened(path):
            pass

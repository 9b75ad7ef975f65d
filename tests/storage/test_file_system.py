"""Which file system a directory is on."""

import os

import pytest

from mpilbm.storage.file_system import ON_ONE_NODE, PARALLEL, kind


def line(number, place, name, options="rw"):
    return f"36 35 {number} / {place} {options},noatime shared:1 - {name} /dev/x rw\n"


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ("nfs4", "ext4", "nfs4"),  # the deepest
        ("lustre", "nfs4", "lustre"),
        (None, "xfs", "xfs"),
    ],
)
def test_the_mount_of_a_directory_is_found(tmp_path, inner, outer, expected):
    folder = tmp_path / "data of a run" / "out"
    folder.mkdir(parents=True)
    place = str(folder.parent).replace(" ", "\\040")
    text = line("0:99", "/", outer) + line("0:98", str(folder) + "er", "cifs")
    (tmp_path / "mounts").write_text(text + (line("0:97", place, inner) if inner else ""))
    assert kind(folder, tmp_path / "mounts") == expected


def test_a_mount_that_hides_another_is_known_by_its_device(tmp_path):
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    hidden = tmp_path / "out"
    hidden.mkdir()
    text = line("0:99", hidden, "nfs") + line(number, tmp_path, "ext4")
    (tmp_path / "mounts").write_text(text)
    assert kind(hidden, tmp_path / "mounts") == "ext4"


def test_what_is_unknown_is_trusted_by_nobody(tmp_path):
    assert kind(tmp_path, tmp_path / "none") == ""
    assert kind(tmp_path / "none") == ""
    assert kind(tmp_path)
    assert not {"", "nfs", "nfs4", "cifs", "9p", "fuse"} & (ON_ONE_NODE | PARALLEL)

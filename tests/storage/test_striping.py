"""The stripes of output folders on Lustre, with a program `lfs` and a list of mounts made here."""

import pytest

from mpilbm.storage import file_system
from mpilbm.storage.file_system import spread

PLAIN = "{folder}\nstripe_count:  {count} stripe_size:   1048576 pattern: 0 stripe_offset: -1"
PROGRESSIVE = """{folder}
  lcm_layout_gen:    0
  lcm_entry_count:   2
    lcme_extent.e_end:   1073741824
      stripe_count:  1       stripe_size:   1048576       stripe_offset: -1
    lcme_extent.e_start: 1073741824
      stripe_count:  8       stripe_size:   1048576       stripe_offset: -1"""


@pytest.fixture
def lustre(tmp_path, monkeypatch):
    """A folder on Lustre; `lfs(text, code)` writes the program, and returns its list of calls."""
    folder, programs = tmp_path / "a run", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    calls = tmp_path / "calls"
    calls.touch()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"36 35 0:99 / {tmp_path} rw shared:1 - lustre 10.0.0.1@tcp:/scratch rw\n")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def lfs(found=PLAIN, code=0, count=1):
        text = found.format(folder=folder, count=count)
        program = programs / "lfs"
        program.write_text(
            f'#!/bin/sh\necho "$@" >> {calls}\n[ $1 = setstripe ] && exit {code}\n'
            f"cat <<'END'\n{text}\nEND\n"
        )
        program.chmod(0o755)
        return calls

    lfs.folder, lfs.mounts, lfs.calls = folder, mounts, calls
    return lfs


@pytest.mark.parametrize(("ranks", "stripes"), [(4, 4), (512, 16)])
@pytest.mark.parametrize("count", [0, 1])
def test_the_stripe_count_of_a_folder_is_set(lustre, ranks, stripes, count):
    calls, folder = lustre(count=count), lustre.folder
    line = spread(folder, ranks, lustre.mounts)
    assert calls.read_text() == f"getstripe -d {folder}\nsetstripe -c {stripes} {folder}\n"
    assert f"executed lfs setstripe -c {stripes} '{folder}'" in line


def test_a_folder_without_a_layout_gets_one(lustre):
    calls = lustre("{folder} has no stripe info")
    assert "executed lfs setstripe" in spread(lustre.folder, 4, lustre.mounts)
    assert calls.read_text().endswith(f"setstripe -c 4 {lustre.folder}\n")


@pytest.mark.parametrize(("found", "count"), [(PLAIN, 8), (PLAIN, -1), (PROGRESSIVE, 0)])
def test_a_layout_that_the_site_or_the_user_chose_is_kept(lustre, found, count):
    calls = lustre(found, count=count)
    assert spread(lustre.folder, 512, lustre.mounts) == ""
    assert calls.read_text() == f"getstripe -d {lustre.folder}\n"


def test_without_lfs_the_command_is_printed(lustre):
    line = spread(lustre.folder, 512, lustre.mounts)
    assert f"lfs is not in PATH; execute: lfs setstripe -c 16 '{lustre.folder}'" in line


def test_if_lfs_fails_the_command_is_printed(lustre):
    lustre(code=13)
    line = spread(lustre.folder, 4, lustre.mounts)
    assert f"lfs failed; execute: lfs setstripe -c 4 '{lustre.folder}'" in line


def test_a_program_that_does_not_answer_is_not_waited_for(lustre, monkeypatch):
    calls = lustre()
    program = calls.parent / "bin" / "lfs"
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    monkeypatch.setattr(file_system, "SECONDS", 0.2)
    assert "lfs failed" in spread(lustre.folder, 4, lustre.mounts)


def test_one_rank_and_other_file_systems_need_no_stripes(lustre):
    calls = lustre()
    assert spread(lustre.folder, 1, lustre.mounts) == ""
    lustre.mounts.write_text(lustre.mounts.read_text().replace("lustre", "ext4"))
    assert spread(lustre.folder, 512, lustre.mounts) == ""
    assert calls.read_text() == ""

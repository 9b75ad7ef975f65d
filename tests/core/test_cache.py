"""The cache: whole entries or none, in a directory that only its owner may write to."""

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpilbm.core import registry
from mpilbm.core.machine import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_entries_come_back(folder):
    assert cache.get("so", "0") is None
    assert cache.path("so", "0") is None
    assert cache.put("so", "0", b"binary").resolve() == folder / "0.so"
    assert cache.path("so", "0").resolve() == folder / "0.so"
    assert cache.get("so", "0") == b"binary"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in folder.iterdir()] == ["0.so"]


def test_an_entry_under_another_name_is_ignored(folder):
    cache.put("so", "0", b"binary")
    (folder / "0.so").rename(folder / "1.so")
    assert cache.path("so", "1") is None


def give_away(path):
    if os.getuid() != 0:
        pytest.skip("needs root: chown")
    os.chown(path, 12345, -1)


def put_a_link(path):
    path.symlink_to(path.rename(path.with_name("elsewhere")))


def put_a_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


PLANTED = {
    "of another user": (give_away, "belongs to user 12345"),
    "that the group may write to": (lambda path: path.chmod(0o620), "mode 620"),
    "that all may write to": (lambda path: path.chmod(0o602), "mode 602"),
    "a link": (put_a_link, None),
    "a pipe": (put_a_pipe, "not a regular file"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_an_entry_that_somebody_may_have_planted_is_replaced(folder, kind):
    """Planted while others could write to the directory, which is private by now."""
    plant, words = PLANTED[kind]
    plant(cache.put("so", "0", b"planted").resolve())
    with pytest.warns(RuntimeWarning, match=words) if words else nullcontext():
        assert cache.path("so", "0") is None
    cache.put("so", "0", b"binary")
    assert cache.get("so", "0") == b"binary"
    assert not (folder / "0.so").is_symlink()
    assert (folder / "0.so").stat().st_uid == os.getuid()


def test_a_directory_put_in_place_of_the_checked_one_is_not_read(folder):
    path = cache.put("so", "0", b"binary")
    folder.rename(folder.with_name("aside"))
    folder.mkdir()
    (folder / "0.so").write_bytes(b"planted")
    assert path.read_bytes().startswith(b"binary")
    assert cache.path("so", "0") == path
    cache.put("so", "1", b"more")
    assert not (folder / "1.so").exists()


def test_a_folder_for_another_library_holds_nothing_of_others(folder):
    kept = cache.subfolder("cupy")
    for name, mode in {"own": 0o600, "planted": 0o666}.items():
        (kept / name).write_bytes(b"code")
        (kept / name).chmod(mode)
    (kept / "link").symlink_to("/etc/hostname")
    kept.chmod(0o777)
    assert cache.subfolder("cupy") == kept
    assert [file.name for file in kept.iterdir()] == ["own"]
    assert kept.stat().st_mode & 0o777 == 0o700
    give_away(kept)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.subfolder("cupy") != kept


def test_a_folder_for_another_library_that_holds_one_of_others_is_not_used(folder):
    kept = cache.subfolder("zig")
    (kept / "own").mkdir()
    assert cache.subfolder("zig") == kept
    (kept / "planted").mkdir()
    give_away(kept / "planted")
    with pytest.warns(RuntimeWarning, match="planted is not used: it belongs to another user"):
        assert cache.subfolder("zig") != kept


def test_a_folder_for_another_library_that_cannot_be_made(folder):
    (cache.directory() / "cupy").write_text("")
    with pytest.warns(RuntimeWarning, match="cupy is not used: File exists"):
        assert cache.subfolder("cupy").is_dir()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-5], lambda data: b"B" + data[1:], lambda _: b""]
)
def test_damaged_entries_are_ignored(folder, damage):
    path = cache.put("so", "0", b"binary")
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get("so", "0") is None
    assert cache.path("so", "0") is None
    cache.put("so", "0", b"binary")
    assert cache.get("so", "0") == b"binary"


def test_a_directory_that_others_may_write_to_is_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    cache._prepared.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"other users can write.*MPILBM_CACHE_DIR"):
        found = cache.directory()
    assert found != folder
    assert found.stat().st_mode & 0o777 == 0o700
    assert not list(folder.iterdir())


def test_a_directory_of_somebody_else_is_not_used(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="belongs to user"):
        assert cache.directory() != folder


def test_a_directory_of_which_no_code_can_be_loaded_is_not_used(folder, monkeypatch):
    noexec = SimpleNamespace(f_flag=os.ST_NOEXEC)
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: noexec)
    with pytest.warns(RuntimeWarning, match=r"noexec.*MPILBM_CACHE_DIR"):
        assert cache.directory() != folder


def test_a_file_in_place_of_the_directory(folder):
    folder.write_text("")
    with pytest.warns(RuntimeWarning, match="is not used"):
        assert cache.directory().is_dir()


def test_a_full_disk_is_no_failure(folder, monkeypatch):
    cache.directory()
    write = cache._write

    def full(target, *entry):
        if target.path == folder:
            raise OSError(28, "No space left on device")
        return write(target, *entry)

    monkeypatch.setattr(cache, "_write", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        path = cache.put("so", "0", b"binary")
    assert path.read_bytes().startswith(b"binary")


def test_digest_distinguishes_parts():
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("ab", b"c") == cache.digest("ab", "c")


def test_modules_that_texts_are_made_with_are_in_the_digest():
    package = Path(cache.__file__).parents[2]
    files = [file for part in cache.TEXT_SOURCES for file in cache._sources(package / part)]
    assert len(files) > len(cache.TEXT_SOURCES)
    found = re.compile(r"from mpilbm\.(core(?:\.| import )\w+|\w+)")
    used = {name for file in files for name in found.findall(file.read_text())}
    used = {name.replace(" import ", ".") for name in used}
    none = {f"core.{name}" for name in ("registry", "choice", "quantity", "units", "errors")}
    none |= {"core.files", "core.machine", "core.printable", "parallel"}  # these shape no text
    assert used - {part.replace("/", ".") for part in cache.TEXT_SOURCES} <= none


def own_registry(monkeypatch):
    """A registry whose changes end with the test; the names of the package are loaded before."""
    registry.registered()
    monkeypatch.setattr(
        registry, "_classes", {kind: dict(found) for kind, found in registry._classes.items()}
    )


def test_plugins_change_the_package_digest(tmp_path, monkeypatch):
    own_registry(monkeypatch)
    before = cache.package_digest()
    assert cache.package_digest() == before
    plugin = tmp_path / "one_plugin.py"
    monkeypatch.syspath_prepend(tmp_path)
    digests = {before}
    for default in (1, 2):
        plugin.write_text(
            "from mpilbm.core.registry import Parameters, register\n\n\n"
            '@register("collisions", "of_a_plugin")\n'
            f"class OfAPlugin(Parameters):\n    rate: float = {default}\n"
        )
        if default == 1:
            __import__("one_plugin")
        digests.add(cache.package_digest())
    assert len(digests) == 3
    monkeypatch.delitem(sys.modules, "one_plugin")
    assert cache.package_digest() != cache.package_digest()  # its file is not known: no hit


def test_modules_beside_a_plugin_change_the_package_digest(tmp_path, monkeypatch):
    own_registry(monkeypatch)
    monkeypatch.syspath_prepend(tmp_path)
    plugin, helper = tmp_path / "mine.py", tmp_path / "beside_mine.py"
    plugin.write_text(
        "from beside_mine import RATE\nfrom mpilbm.core.registry import Parameters, register\n\n\n"
        '@register("collisions", "of_two_files")\n'
        "class OfTwoFiles(Parameters):\n    rate: float = RATE\n"
    )
    digests = set()
    for rate in (1, 2):
        helper.write_text(f"RATE = {rate}\n")
        if rate == 1:
            registry.load_plugin(plugin)
        digests.add(cache.package_digest())
    assert len(digests) == 2
    for name in ("beside_mine", "mpilbm_plugin_mine"):
        monkeypatch.delitem(sys.modules, name)

"""The kernel cache: kernel texts and binaries kept between runs, in a private directory.

The directory is `MPILBM_CACHE_DIR` or the cache folder of the platform. It contains code that is
executed. A directory that other users can write to is therefore not used; a temporary one replaces
it, with a warning. Entries of other users, or entries that they can write to, are not used either:
they may be older than the permissions of the directory. Each entry `<digest>.<name>` ends with a
checksum of its name and content. It is written under another name and renamed, so that readers find
a complete entry or none.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import platformdirs

from mpilbm.core import registry
from mpilbm.core.machine import refuse_if_exhausted

TEXT_SOURCES = "core/formulas", "model", "physics", "layouts", "solids", "codegen"
CHECK_BYTES = 37


def digest(*parts: str | bytes) -> str:
    """Hexadecimal digest of the parts, in order; ("ab", "c") and ("a", "bc") differ."""
    total = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()


class _Folder(NamedTuple):
    """A directory and its open descriptor.

    Entries are opened relative to the descriptor, so that nobody can replace the directory after it
    was checked.
    """

    path: Path
    descriptor: int

    def entry(self, name: str) -> Path:
        """The path of an entry, for a library that opens it itself."""
        pinned = Path(f"/proc/self/fd/{self.descriptor}")
        return (pinned if pinned.exists() else self.path) / name


def directory() -> Path:
    """The cache directory, created if necessary; a temporary one if it cannot be used."""
    return _folder().path


def _folder() -> _Folder:
    chosen = os.environ.get("MPILBM_CACHE_DIR") or platformdirs.user_cache_dir("mpilbm")
    return _prepared(Path(chosen).expanduser().absolute())


@functools.cache
def _prepared(wanted: Path) -> _Folder:
    try:
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _opened(wanted)
        problem = _why_unsafe(os.fstat(folder.descriptor))
        if os.fstatvfs(folder.descriptor).f_flag & os.ST_NOEXEC:
            problem = problem or "its file system is mounted with noexec"
        if problem is None and os.access(wanted, os.W_OK | os.X_OK):
            return folder
        os.close(folder.descriptor)
    except OSError as error:
        refuse_if_exhausted(error, f"the cache {wanted} cannot be opened")
        problem = error.strerror or str(error)
    problem = problem or "no permission to write to it"
    return _temporary(f"the cache {wanted} is not used: {problem}")


def _opened(path: Path) -> _Folder:
    return _Folder(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _why_unsafe(found: os.stat_result) -> str | None:
    """Why code must not be loaded from a directory or file; None if it is safe."""
    if found.st_uid != os.getuid():
        return f"it belongs to user {found.st_uid}, not to you ({os.getuid()})"
    if found.st_mode & 0o022:
        mode = 700 if stat.S_ISDIR(found.st_mode) else 600
        return f"other users can write to it (mode {found.st_mode & 0o777:o}); fix: chmod {mode}"
    return None


@functools.cache
def _temporary(problem: str) -> _Folder:
    path = Path(tempfile.mkdtemp(prefix="mpilbm-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    warnings.warn(
        f"{problem}; kernels are kept in {path} for this run only. "
        "Set MPILBM_CACHE_DIR to a private directory",
        RuntimeWarning,
        stacklevel=2,
    )
    return _opened(path)


def path(name: str, key: str) -> Path | None:
    """The file of a complete entry, or None; for a library that opens it itself.

    The path is valid in this process only; `resolve()` gives one to print.
    """
    return None if get(name, key) is None else _folder().entry(f"{key}.{name}")


def get(name: str, key: str) -> bytes | None:
    """The bytes stored with this name and digest.

    None if there are none, if they are damaged, or if another user may have written them.
    """
    folder, entry = _folder(), f"{key}.{name}"
    try:
        data = _read(folder, entry)
    except OSError as error:
        refuse_if_exhausted(error, f"the cache {folder.path} cannot be read")
        return None
    payload, check = data[:-CHECK_BYTES], data[-CHECK_BYTES:]
    whole = len(check) == CHECK_BYTES and check == _checksum(entry, payload)
    return payload if whole else None


def _read(folder: _Folder, entry: str) -> bytes:
    """The content of an entry; b"" with a warning if another user can write to it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(entry, flags, dir_fd=folder.descriptor), "rb") as file:
        found = os.fstat(file.fileno())
        problem = _why_unsafe(found) if stat.S_ISREG(found.st_mode) else "it is not a regular file"
        if problem is None:
            return file.read()
    text = f"{folder.path / entry} of the cache is not used: {problem}. It is created again"
    warnings.warn(text, RuntimeWarning, stacklevel=3)
    return b""


def put(name: str, key: str, data: bytes) -> Path:
    """Store bytes with a name and digest, completely or not at all; returns `path(name, key)`.

    If the directory cannot be written (full, read-only), a temporary one replaces it.
    """
    entry = f"{key}.{name}"
    try:
        return _write(_folder(), entry, data)
    except OSError as error:
        refuse_if_exhausted(error, f"the cache {directory()} cannot be written")
        problem = f"writing to the cache {directory()} failed: {error.strerror}"
        return _write(_temporary(problem), entry, data)


def subfolder(name: str) -> Path:
    """A folder of the cache for another library, without files that other users may have written.

    Such a library loads code from this folder without checking who wrote it.
    """
    folder = directory() / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        of_others = _folders_of_others(folder)
    except OSError as error:
        refuse_if_exhausted(error, f"the cache {folder} cannot be used")
        return _temporary(f"{folder} is not used: {error.strerror}").path
    if of_others:
        return _temporary(f"{of_others[0]} is not used: it belongs to another user").path
    return folder


def _folders_of_others(folder: Path) -> list[Path]:
    """Make a folder private and remove suspicious files; returns the folders of other users."""
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return [folder]
    folder.chmod(0o700)
    found = []
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # removed by another process
            status = entry.lstat()
            if not stat.S_ISDIR(status.st_mode):
                if stat.S_ISLNK(status.st_mode) or _why_unsafe(status):
                    entry.unlink()
            elif status.st_uid != os.getuid():
                found.append(entry)
    return found


def remove(name: str) -> None:
    """Remove all entries of this name."""
    folder = _folder()
    for entry in os.listdir(folder.descriptor):
        if entry.endswith(f".{name}"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry, dir_fd=folder.descriptor)


def _checksum(entry: str, payload: bytes) -> bytes:
    """The end of an entry: a comment in a text, ignored by the loader of a binary.

    It depends on the name of the entry, so that a renamed entry counts as damaged.
    """
    return f"\n// {digest(entry, payload)[:32]}\n".encode()


def _write(folder: _Folder, entry: str, data: bytes) -> Path:
    at, part = folder.descriptor, f"{entry}.{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(part, flags, 0o600, dir_fd=at), "wb") as file:
        try:
            file.write(data + _checksum(entry, data))
            file.flush()
            os.replace(part, entry, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            os.unlink(part, dir_fd=at)
            raise
    return folder.entry(entry)


def package_digest() -> str:
    """Digest of the inputs of a kernel text other than the case: sources, plug-ins, SymPy."""
    try:
        sympy = version("sympy")
    except PackageNotFoundError:
        sympy = ""
    return digest(sympy, code_digest(*TEXT_SOURCES), *_plugin_sources())


@functools.cache
def code_digest(*parts: str) -> str:
    """Digest of the sources in some folders of this package."""
    package = Path(__file__).parents[2]
    files = [file for part in parts for file in sorted(_sources(package / part))]
    return digest(*(data for file in files for data in (file.name, file.read_bytes())))


def _sources(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in path.rglob("*") if file.suffix in (".py", ".h")]
    return [path] if path.exists() else []


def _plugin_sources() -> list[bytes]:
    """Sources of plug-ins, including the loaded modules that they may use.

    These are the modules of their packages; for a single file, those of its folder.
    """
    ours = __name__.partition(".")[0]
    classes = [cls for kind in registry.KINDS for cls in registry._classes[kind].values()]
    roots = {cls.__module__.partition(".")[0] for cls in classes} - {ours}
    if not roots:
        return []
    files_of = {
        name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())
    }
    loaded = {
        name: os.path.abspath(file)
        for name, file in files_of.items()
        if file and name.partition(".")[0] != ours
    }
    alone = {os.path.dirname(loaded[name]) for name in roots & loaded.keys()}
    alone = {folder for folder in alone if os.path.basename(folder) != "site-packages"}
    files = {
        file
        for name, file in loaded.items()
        if name.partition(".")[0] in roots or os.path.dirname(file) in alone
    }
    sources = [Path(file).read_bytes() for file in sorted(files)]
    if roots - {name.partition(".")[0] for name in sys.modules}:
        sources.append(os.urandom(16))  # a plug-in without a known file: never cached
    return sources

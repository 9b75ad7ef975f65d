"""Kernel texts and binaries kept between runs, in a directory private to the user.

The directory is `MPILBM_CACHE_DIR` or the platform's cache folder. It holds code that is executed,
so one that others may write to is not used: a temporary one takes its place, with a warning. Every
entry `<digest>.<name>` ends in a checksum of what stands before it and is put in place by a
rename: whoever reads finds a whole entry or none.
"""

import atexit
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs

from mpilbm import registry

TEXT_SOURCES = (
    "lattices",
    "equilibria",
    "collisions",
    "closures",
    "forcing",
    "boundaries",
    "couplings",
    "layouts",
    "codegen",
    "passes.py",
    "row_ends.py",
    "cell_values.py",
    "expressions.py",
    "functions.py",
)
CHECK_BYTES = 37


def digest(*parts: str | bytes) -> str:
    """Hexadecimal digest of the parts, in order; ("ab", "c") and ("a", "bc") differ."""
    total = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()


def directory() -> Path:
    """The cache directory, made if need be; a temporary one where it cannot be used."""
    chosen = os.environ.get("MPILBM_CACHE_DIR") or platformdirs.user_cache_dir("mpilbm")
    return _prepared(Path(chosen).expanduser().absolute())


@functools.cache
def _prepared(wanted: Path) -> Path:
    try:
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = _distrust(wanted)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem is None:
        return wanted
    return _temporary(f"the cache {wanted} is not used: {problem}")


def _distrust(path: Path) -> str | None:
    """Why code must not be loaded from (or cannot be kept in) this directory; None if it may."""
    found = path.stat()
    if found.st_uid != os.getuid():
        return f"it belongs to user {found.st_uid}, not to you ({os.getuid()})"
    if found.st_mode & 0o022:
        return f"others may write to it (mode {found.st_mode & 0o777:o}); chmod 700 mends it"
    return None if os.access(path, os.W_OK | os.X_OK) else "no permission to write to it"


@functools.cache
def _temporary(problem: str) -> Path:
    path = Path(tempfile.mkdtemp(prefix="mpilbm-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    warnings.warn(
        f"{problem}; kernels are kept in {path} for this run only. "
        "Set MPILBM_CACHE_DIR to a directory of your own",
        RuntimeWarning,
        stacklevel=2,
    )
    return path


def path(name: str, key: str) -> Path | None:
    """The file of a whole entry, or None; for entries that a loader opens itself."""
    return _entry(name, key) if get(name, key) is not None else None


def get(name: str, key: str) -> bytes | None:
    """The bytes put under this name and digest; None where there are none or they are damaged."""
    try:
        data = _entry(name, key).read_bytes()
    except OSError:
        return None
    payload, check = data[:-CHECK_BYTES], data[-CHECK_BYTES:]
    return payload if len(check) == CHECK_BYTES and check == _checksum(payload) else None


def put(name: str, key: str, data: bytes) -> Path:
    """Keep bytes under a name and digest, at once or not at all; the file that holds them.

    Where the directory turns out to be unusable (full, read-only) a temporary one replaces it.
    """
    try:
        return _write(_entry(name, key), data)
    except OSError as error:
        problem = f"writing to the cache {directory()} failed: {error.strerror}"
        return _write(_temporary(problem) / f"{key}.{name}", data)


def forget(name: str) -> None:
    """Remove all entries of this name."""
    for path in directory().glob(f"*.{name}"):
        path.unlink(missing_ok=True)


def _entry(name: str, key: str) -> Path:
    return directory() / f"{key}.{name}"


def _checksum(payload: bytes) -> bytes:
    """What ends an entry: a comment in a text, ignored by the loader of a binary."""
    return f"\n// {hashlib.blake2b(payload, digest_size=16).hexdigest()}\n".encode()


def _write(target: Path, data: bytes) -> Path:
    handle, part = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data + _checksum(data))
        os.replace(part, target)
    except OSError:
        os.unlink(part)
        raise
    return target


def package_digest() -> str:
    """Digest of all that determines a kernel text besides the case: our sources, plugins, SymPy."""
    return digest(_own_sources(), *_plugin_sources())


@functools.cache
def _own_sources() -> str:
    package = Path(__file__).parent
    files = [file for part in TEXT_SOURCES for file in sorted(_sources(package / part))]
    try:
        sympy = version("sympy")
    except PackageNotFoundError:
        sympy = ""
    parts = [data for file in files for data in (str(file.name), file.read_bytes())]
    return digest(sympy, *parts)


def _sources(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in path.rglob("*") if file.suffix in (".py", ".h")]
    return [path] if path.exists() else []


def _plugin_sources() -> list[bytes]:
    """Sources of the registered classes that are not ours, with the loaded modules they may use.

    Those are the modules of their packages and, beside a single file, those of its folder.
    """
    ours = __name__.partition(".")[0]
    classes = [cls for kind in registry.KINDS for cls in registry._classes[kind].values()]
    roots = {cls.__module__.partition(".")[0] for cls in classes} - {ours}
    loaded = {
        name: Path(module.__file__).absolute()
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] != ours and getattr(module, "__file__", None)
    }
    alone = {loaded[name].parent for name in roots & loaded.keys()}
    files = {
        file
        for name, file in loaded.items()
        if name.partition(".")[0] in roots
        or (file.parent in alone and file.parent.name != "site-packages")
    }
    sources = [file.read_bytes() for file in sorted(files)]
    if roots - {name.partition(".")[0] for name in sys.modules}:
        sources.append(os.urandom(16))  # a plugin without a known file: never a hit
    return sources

"""Describes this installation: its versions and devices, missing parts, and how to add them.

Libraries that may crash or hang when loaded (MPI, HDF5, CUDA) are queried in child machine.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import click

from mpilbm import __version__
from mpilbm.core import machine
from mpilbm.core.units import counted
from mpilbm.run.preflight.devices import SECONDS, Fact, ask, version

PACKAGES = ("numpy", "sympy", "pydantic", "mpi4py", "h5py")
PACKAGE_QUESTION = """
from mpilbm.core import errors
try:
    import {0} as package
    folder = errors.from_pythonpath().get("{0}")
    place = f" from {{folder}}, a folder of PYTHONPATH" if folder else ""
    found = package.__version__ + place, ""
except Exception as error:
    unknown = f"cannot be imported: {{error!r}}", "pip install {0}"
    found = errors.explained_import(error) or unknown
print("{0}", found[0].removeprefix("{0} "), found[1], sep="\t")
"""
MPI_QUESTION = """
import mpi4py
mpi4py.rc(initialize=False)
from mpi4py import MPI
print(MPI.Get_library_version().splitlines()[0].strip())
print("%d.%d" % MPI.Get_version())
"""
HDF5_QUESTION = """
import h5py
print("mpi" if h5py.get_config().mpi else "serial")
print(h5py.version.hdf5_version)
"""


def collect(probe: bool = False) -> list[Fact]:
    """All facts, in the order of their sections; the versions alone if a package is broken."""
    packages = required()
    known = [*versions(packages), *mpi()]
    if any(fact.fix for fact in packages):  # what follows imports them
        return known
    from mpilbm.run.preflight.devices import devices

    return [*known, *hdf5(), *devices(probe), *compilers(), *caches()]


def versions(packages: list[Fact]) -> list[Fact]:
    """Python and the packages, with the pip command for those that are missing."""
    found = version("matplotlib")
    fix = "" if found else "pip install 'mpilbm[plot]'"
    return [
        Fact("versions", "mpilbm", __version__),
        Fact("versions", "python", f"{platform.python_version()} ({sys.executable})"),
        *packages,
        Fact("versions", "matplotlib", found or "missing (for `mpilbm plot`)", fix),
    ]


def required() -> list[Fact]:
    """The packages without which nothing runs: version, or why the import fails and the fix."""
    answer, problem = ask("".join(map(PACKAGE_QUESTION.format, PACKAGES)))
    known = {fields[0]: fields[1:] for line in answer if len(fields := line.split("\t")) == 3}
    unknown = (f"not known: {problem}", "run again with python -X faulthandler")
    return [Fact("versions", name, *known.get(name, unknown)) for name in PACKAGES]


def mpi() -> list[Fact]:
    """The MPI library and the launcher."""
    answer, problem = ask(MPI_QUESTION)
    if not answer:
        return [
            Fact(
                "MPI",
                "library",
                f"none: {problem}; runs have one rank",
                "pip install mpich mpi4py, or on a cluster: module load its MPI",
            )
        ]
    library = " ".join(answer[0].replace("Version:", "").split())
    return [
        Fact("MPI", "library", f"{library}, MPI {answer[1]}"),
        launcher(library),
        *shared_memory(library),
    ]


def shared_memory(library: str) -> list[Fact]:
    """The shared memory of this machine, if the library requires it and it cannot be used."""
    from mpilbm.parallel.launcher import SHARED_MEMORY_FIX, shared_memory_problem

    problem = shared_memory_problem() if "MPICH" in library else ""
    text = f"{problem}: runs have one rank"
    return [Fact("MPI", "memory", text, SHARED_MEMORY_FIX)] if problem else []


def launcher(library: str) -> Fact:
    """The mpirun in PATH, and whether it belongs to the MPI library."""
    path = machine.locate("mpirun") or machine.locate("mpiexec")
    beside = shutil.which("mpirun", path=os.path.dirname(sys.executable))
    fix = (
        f"use {beside}" if beside else "put the folder of the mpirun of this library first in PATH"
    )
    if path is None:
        return Fact("MPI", "launcher", "no mpirun in PATH", fix)
    own = "Open MPI" in "".join(_first_lines([path, "--version"]))
    if own != ("Open MPI" in library):
        text = f"{path} is {'Open MPI' if own else 'not Open MPI'}, the library is another MPI"
        return Fact("MPI", "launcher", text, fix)
    if beside and os.path.realpath(beside) != os.path.realpath(path):
        return Fact("MPI", "launcher", f"{path}, not the one installed beside Python", fix)
    return Fact("MPI", "launcher", path)


def hdf5() -> list[Fact]:
    """The HDF5 library, and which ranks write the files of a run in this directory."""
    answer, problem = ask(HDF5_QUESTION)
    if not answer:
        return [Fact("HDF5", "h5py", f"none: {problem}", "pip install h5py")]
    parallel = answer[0] == "mpi"
    text = f"{'parallel' if parallel else 'serial'}, HDF5 {answer[1]}"
    return [Fact("HDF5", "h5py", text), writers(parallel)]


def writers(parallel: bool) -> Fact:
    """Which ranks write in this directory, with all ranks on one node and on several nodes."""
    from mpilbm.storage import file_system

    here = file_system.kind(Path())
    fallback = "all ranks write together (MPI-IO)" if parallel else "rank 0 writes for all"
    one, several = (
        "each rank writes its own planes" if file_system.takes_parts(here, one_node) else fallback
        for one_node in (True, False)
    )
    text = one if one == several else f"{one}; on several nodes {several}"
    fix = (
        "write to a parallel file system, or install an h5py with MPI: apt-get install "
        "python3-h5py-mpi (reported as serial here, parallel under mpirun), or "
        "HDF5_MPI=ON CC=mpicc pip install --no-build-isolation --no-binary=h5py h5py"
    )
    slow = one == fallback and not parallel
    return Fact("HDF5", "writers", f"{here or 'unknown'} file system: {text}", fix if slow else "")


def compilers() -> list[Fact]:
    """The C compiler that the cpu backend uses, and the ziglang wheel."""
    from mpilbm.backends.cpu import compiler
    from mpilbm.core.errors import MpilbmError

    try:
        found = compiler.find()
        facts = [Fact("compilers", "C", f"{' '.join(found.command)}: {found.version}")]
    except MpilbmError as error:
        facts = [Fact("compilers", "C", "none: the cpu backend cannot compile", str(error))]
    if ziglang := version("ziglang"):
        facts.append(Fact("compilers", "zig", f"the ziglang wheel {ziglang}"))
    return facts


def caches() -> list[Fact]:
    """The cache of kernels: folder and size."""
    from mpilbm.core.machine import cache

    folder = cache.directory()
    files = [file for file in folder.iterdir() if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    kept = f"{folder}: {counted(len(files), 'file')}, {size / 1e6:.1f} MB"
    return [Fact("cache", "kernels", kept)]


def _first_lines(command: list[str]) -> list[str]:
    try:
        done = machine.run(command, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()


def show(facts: list[Fact]) -> None:
    """Print the facts by section, each with its fix."""
    section = ""
    for fact in facts:
        if fact.section != section:
            section = fact.section
            click.secho(section, bold=True)
        click.echo(f"  {fact.name:<12} {fact.value}")
        if fact.fix:
            click.echo(f"  {'':<12} " + click.style(f"-> {fact.fix}", fg="yellow"))

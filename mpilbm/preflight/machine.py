"""Describes this installation: its versions and devices, missing parts, and how to add them.

Libraries that may crash or hang when loaded (MPI, HDF5, CUDA) are queried in child processes.
"""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import click

from mpilbm import __version__
from mpilbm.system import processes
from mpilbm.units import counted

SECONDS = 30  # for a child process to answer
NODE_GPUS = Path("/proc/driver/nvidia/gpus")  # one folder per GPU, visible to this process or not

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
DRIVER_QUESTION = """
from mpilbm.backends.cuda import driver
found = driver()
if found is None:
    print("none")
else:
    print(found.problem)
    print("%d devices, %s" % (found.devices, found.words))
    print(found.install)
    print(found.vendor.lower())
"""
SUPPORT_QUESTION = """
from mpi4py import MPI
from mpilbm.parallel.gpu_probe import library_says_yes
print("yes" if library_says_yes(MPI) else "no")
"""
DEVICE_QUESTION = """
import cupy
for number in range(cupy.cuda.runtime.getDeviceCount()):
    found = cupy.cuda.runtime.getDeviceProperties(number)
    print("%d: %s, %.0f GB" % (number, found["name"].decode(), found["totalGlobalMem"] / 1e9))
compiler = "HIPRTC" if cupy.cuda.runtime.is_hip else "NVRTC"
print(compiler + " %d.%d" % cupy.cuda.nvrtc.getVersion())
"""


@dataclass(frozen=True)
class Fact:
    """A line of the report; `fix` solves a problem and is empty if there is none."""

    section: str
    name: str
    value: str
    fix: str = ""


def collect(probe: bool = False) -> list[Fact]:
    """All facts, in the order of their sections."""
    return [*versions(), *mpi(), *hdf5(), *devices(probe), *compilers(), *caches()]


def ask(question: str) -> tuple[list[str], str]:
    """The lines that a child Python prints, or [] and the last line of its error.

    The child is not a rank of the launcher that may have started this process.
    """
    from mpilbm.parallel.launcher import without_launcher

    environment = processes.environment(without_launcher())
    try:
        done = processes.run(processes.python(question), env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {SECONDS} s"
    if done.returncode == 0:
        return done.stdout.split("\n")[:-1], ""
    error = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
    return [], error[-1]


def version(*distributions: str) -> str | None:
    """The version of the first of these distributions that is installed."""
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def versions() -> list[Fact]:
    """Python and the packages, with the pip command for those that are missing."""
    facts = [
        Fact("versions", "mpilbm", __version__),
        Fact("versions", "python", f"{platform.python_version()} ({sys.executable})"),
    ]
    for name in ("numpy", "sympy", "pydantic", "mpi4py", "h5py"):
        found = version(name)
        fix = "" if found else f"pip install {name}"
        facts.append(Fact("versions", name, found or "missing", fix))
    found = version("matplotlib")
    fix = "" if found else "pip install 'mpilbm[plot]'"
    facts.append(Fact("versions", "matplotlib", found or "missing (for `mpilbm plot`)", fix))
    return facts


def mpi() -> list[Fact]:
    """The MPI library and the launcher."""
    answer, problem = ask(MPI_QUESTION)
    if not answer:
        return [Fact("MPI", "library", f"none: {problem}; runs have one rank",
                     "pip install mpich mpi4py, or on a cluster: module load its MPI")]  # fmt: skip
    library = " ".join(answer[0].replace("Version:", "").split())
    return [Fact("MPI", "library", f"{library}, MPI {answer[1]}"), launcher(library)]


def launcher(library: str) -> Fact:
    """The mpirun in PATH, and whether it belongs to the MPI library."""
    path = processes.locate("mpirun") or processes.locate("mpiexec")
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


def devices(probe: bool) -> list[Fact]:
    """GPUs as reported by the driver and CuPy, and whether MPI can use their memory."""
    facts = [processor()]
    answer, problem = ask(DRIVER_QUESTION)
    if answer == ["none"]:
        return [*facts, Fact("devices", "nvidia", "no driver, or no device"), layout("cpu")]
    if not answer or answer[0]:
        fix = "check the output of nvidia-smi; give a container access to the GPUs"
        text = f"cannot be used: {problem or answer[0]}"
        return [*facts, Fact("devices", "nvidia", text, fix)]
    _, text, install, vendor = answer
    amd = vendor == "amd"
    facts.append(Fact("devices", vendor, text) if amd else visible(text, int(text.split()[0])))
    answer, problem = ask(DEVICE_QUESTION)
    if not answer:
        return [*facts, Fact("devices", "cupy", f"cannot be used: {problem}", install)]
    package = version("cupy-rocm-7-0" if amd else "cupy-cuda13x", "cupy-cuda12x", "cupy")
    facts.append(Fact("devices", "cupy", f"{package}, {'; '.join(answer)}"))
    return [*facts, device_memory(probe), layout("cuda")]


def processor() -> Fact:
    """The cores of this machine, and those on which this process may run."""
    from mpilbm.backends.workers import cores

    every, own = os.cpu_count() or 1, len(cores())
    limit = f", {own} of them for this process" if 0 < own < every else ""
    return Fact("devices", "cpu", f"{counted(every, 'core')}{limit}, {platform.machine()}")


def layout(device: str) -> Fact:
    """The layout that `auto` stands for on a kind of device, in a box without bodies."""
    from mpilbm.layouts.auto import Auto, Facts

    chosen, why = Auto().resolve(Facts(device), lambda layout: True)
    return Fact("devices", "layout auto", f"{chosen.name} on {device}: {why}")


def visible(text: str, devices: int) -> Fact:
    """The driver, and the number of GPUs of this node that are hidden from this process."""
    every = len(list(NODE_GPUS.iterdir())) if NODE_GPUS.is_dir() else 0
    if devices >= every:
        return Fact("devices", "nvidia", text)
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    why = "" if setting is None else f", CUDA_VISIBLE_DEVICES={setting}"
    fix = "several ranks on a node: make all of its GPUs visible to each (SLURM: --gpu-bind=none)"
    return Fact("devices", "nvidia", f"{text} ({every} GPUs on this node{why})", fix)


def device_memory(probe: bool) -> Fact:
    """Whether MPI can use device memory, and the reason."""
    from mpilbm.parallel import gpu_aware

    verdict = gpu_aware.forced() or (gpu_aware.verdict() if probe else None)
    if verdict:
        text = f"{'yes' if verdict.answer else 'no'}: {verdict.reason}"
    else:
        answer, problem = ask(SUPPORT_QUESTION)
        text = f"{answer[-1]}, according to the library" if answer else f"not known: {problem}"
        text += "; `mpilbm info --probe` tests it"
    return Fact("devices", "MPI takes GPU memory", text)


def compilers() -> list[Fact]:
    """The C compiler that the cpu backend uses, and the ziglang wheel."""
    from mpilbm.backends import compiler
    from mpilbm.errors import MpilbmError

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
    from mpilbm.system import cache

    folder = cache.directory()
    files = [file for file in folder.iterdir() if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    kept = f"{folder}: {counted(len(files), 'file')}, {size / 1e6:.1f} MB"
    return [Fact("cache", "kernels", kept)]


def _first_lines(command: list[str]) -> list[str]:
    try:
        done = processes.run(command, timeout=SECONDS)
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

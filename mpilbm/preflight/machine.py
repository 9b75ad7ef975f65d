"""What this installation consists of, what is missing, and the command that mends it.

Libraries that may crash or hang when loaded (MPI, HDF5, CUDA) are asked in child processes.
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
NODE_GPUS = Path("/proc/driver/nvidia/gpus")  # a folder for each, visible to this process or not

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
from mpilbm.backends import nvidia
found = nvidia.driver()
if found is None:
    print("none")
else:
    print(found.problem)
    print("%d devices, driver for CUDA %d" % (found.devices, found.cuda))
    print(nvidia.install(found.cuda))
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
print("NVRTC %d.%d" % cupy.cuda.nvrtc.getVersion())
"""


@dataclass(frozen=True)
class Fact:
    """A line of the report; `mend`: the command that makes it better."""

    section: str
    name: str
    value: str
    mend: str = ""


def collect(probe: bool = False) -> list[Fact]:
    """All facts, section by section."""
    return [*versions(), *mpi(), *hdf5(), *devices(probe), *compilers(), *caches()]


def ask(question: str) -> tuple[list[str], str]:
    """Lines that a child Python prints, or [] and the last line of its complaint.

    The child is no rank of a launcher that may have started this process.
    """
    from mpilbm.parallel.launcher import without_launcher

    environment = processes.environment(without_launcher())
    try:
        done = processes.run(processes.python(question), env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {SECONDS} s"
    if done.returncode == 0:
        return done.stdout.split("\n")[:-1], ""
    complaint = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
    return [], complaint[-1]


def version(*distributions: str) -> str | None:
    """Version of the first of these distributions that is installed."""
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def versions() -> list[Fact]:
    """Python and the packages, each with the pip command where it is missing."""
    facts = [
        Fact("versions", "mpilbm", __version__),
        Fact("versions", "python", f"{platform.python_version()} ({sys.executable})"),
    ]
    for name in ("numpy", "sympy", "pydantic", "mpi4py", "h5py"):
        found = version(name)
        mend = "" if found else f"pip install {name}"
        facts.append(Fact("versions", name, found or "missing", mend))
    found = version("matplotlib")
    mend = "" if found else "pip install 'mpilbm[plot]'"
    facts.append(Fact("versions", "matplotlib", found or "missing (for `mpilbm plot`)", mend))
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
    """The mpirun in PATH, and whether it belongs to the library."""
    path = processes.locate("mpirun") or processes.locate("mpiexec")
    beside = shutil.which("mpirun", path=os.path.dirname(sys.executable))
    mend = f"use {beside}" if beside else "put the folder of the library's own mpirun first in PATH"
    if path is None:
        return Fact("MPI", "launcher", "no mpirun in PATH", mend)
    own = "Open MPI" in "".join(_first_lines([path, "--version"]))
    if own != ("Open MPI" in library):
        text = f"{path} is {'Open MPI' if own else 'not Open MPI'}, the library is another MPI"
        return Fact("MPI", "launcher", text, mend)
    if beside and os.path.realpath(beside) != os.path.realpath(path):
        return Fact("MPI", "launcher", f"{path}, not the one installed beside Python", mend)
    return Fact("MPI", "launcher", path)


def hdf5() -> list[Fact]:
    """The HDF5 library, and who writes the files of a run in this directory."""
    answer, problem = ask(HDF5_QUESTION)
    if not answer:
        return [Fact("HDF5", "h5py", f"none: {problem}", "pip install h5py")]
    parallel = answer[0] == "mpi"
    text = f"{'parallel' if parallel else 'serial'}, HDF5 {answer[1]}"
    return [Fact("HDF5", "h5py", text), writers(parallel)]


def writers(parallel: bool) -> Fact:
    """Who writes in this directory if all ranks are on one node, and if they are on several."""
    from mpilbm.storage import file_system

    here = file_system.kind(Path())
    fallback = "all ranks write together (MPI-IO)" if parallel else "rank 0 writes for all"
    one, several = (
        "each rank writes its own planes" if file_system.takes_parts(here, one_node) else fallback
        for one_node in (True, False)
    )
    text = one if one == several else f"{one}; on several nodes {several}"
    mend = (
        "write to a parallel file system, or install an h5py with MPI: apt-get install "
        "python3-h5py-mpi (reported as serial here, parallel under mpirun), or "
        "HDF5_MPI=ON CC=mpicc pip install --no-build-isolation --no-binary=h5py h5py"
    )
    slow = one == fallback and not parallel
    return Fact("HDF5", "writers", f"{here or 'unknown'} file system: {text}", mend if slow else "")


def devices(probe: bool) -> list[Fact]:
    """GPUs as driver and CuPy see them, and whether MPI takes their memory."""
    facts = [Fact("devices", "cpu", f"{counted(os.cpu_count(), 'core')}, {platform.machine()}")]
    answer, problem = ask(DRIVER_QUESTION)
    if answer == ["none"]:
        return [*facts, Fact("devices", "nvidia", "no driver, or no device")]
    if not answer or answer[0]:
        mend = "see what nvidia-smi says; give a container access to the GPUs"
        text = f"cannot be used: {problem or answer[0]}"
        return [*facts, Fact("devices", "nvidia", text, mend)]
    _, text, install = answer
    facts.append(visible(text, int(text.split()[0])))
    answer, problem = ask(DEVICE_QUESTION)
    if not answer:
        return [*facts, Fact("devices", "cupy", f"cannot be used: {problem}", install)]
    package = version("cupy-cuda13x", "cupy-cuda12x", "cupy")
    facts.append(Fact("devices", "cupy", f"{package}, {'; '.join(answer)}"))
    return [*facts, device_memory(probe)]


def visible(text: str, devices: int) -> Fact:
    """The driver, and how many GPUs of this node are hidden from this process."""
    every = len(list(NODE_GPUS.iterdir())) if NODE_GPUS.is_dir() else 0
    if devices >= every:
        return Fact("devices", "nvidia", text)
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    why = "" if setting is None else f", CUDA_VISIBLE_DEVICES={setting}"
    fix = "several ranks on a node: make all of its GPUs visible to each (SLURM: --gpu-bind=none)"
    return Fact("devices", "nvidia", f"{text} ({every} GPUs on this node{why})", fix)


def device_memory(probe: bool) -> Fact:
    """Whether MPI takes device memory, and why we think so."""
    from mpilbm.parallel import gpu_aware

    said = gpu_aware.forced() or (gpu_aware.verdict() if probe else None)
    if said:
        text = f"{'yes' if said.answer else 'no'}: {said.reason}"
    else:
        answer, problem = ask(SUPPORT_QUESTION)
        text = f"{answer[-1]}, says the library" if answer else f"not known: {problem}"
        text += "; `mpilbm info --probe` tests it"
    return Fact("devices", "MPI takes GPU memory", text)


def compilers() -> list[Fact]:
    """The C compiler that the cpu backend takes, and nvcc for the curious."""
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
    """Where kernels are kept, and how much."""
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
    """Print the facts by section, and below each how to fix it."""
    section = ""
    for fact in facts:
        if fact.section != section:
            section = fact.section
            click.secho(section, bold=True)
        click.echo(f"  {fact.name:<12} {fact.value}")
        if fact.mend:
            click.echo(f"  {'':<12} " + click.style(f"-> {fact.mend}", fg="yellow"))

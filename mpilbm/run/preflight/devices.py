"""The devices of this machine: CPU cores, GPUs with CuPy, and OpenCL devices.

Drivers may crash or hang when they are loaded, so child processes load them.
"""

import os
import platform
import signal
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mpilbm.core import machine
from mpilbm.core.units import counted

SECONDS = 30  # for a child process to answer


@dataclass(frozen=True)
class Fact:
    """A line of the report; `fix` solves a problem and is empty if there is none."""

    section: str
    name: str
    value: str
    fix: str = ""


def ask(question: str) -> tuple[list[str], str]:
    """The lines that a child Python prints, or [] and the last line of its error.

    The child is not a rank of the launcher that may have started this process.
    """
    from mpilbm.parallel.launcher import without_launcher

    environment = machine.environment(without_launcher())
    try:
        done = machine.run(machine.python(question), env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {SECONDS} s"
    if done.returncode == 0:
        return done.stdout.split("\n")[:-1], ""
    if done.returncode < 0:
        return [], f"it crashed ({signal.Signals(-done.returncode).name})"
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


MARK = "opencl:"  # begins the lines of the answer; drivers may print, too
QUESTION = f"""
from mpilbm.backends.opencl import devices
from mpilbm.core.errors import CaseError
try:
    lines = ["", *devices.listed()]
except CaseError as error:
    lines = ["problem", str(error).removeprefix("backend.name: ")]
for line in lines:
    print({MARK!r} + line)
"""
CRASHED = (
    "a driver may be broken: OCL_ICD_VENDORS=FOLDER uses only the drivers (*.icd) in a folder "
    'instead of those in /etc/OpenCL/vendors; or set name = "cpu"'
)


def opencl() -> list[Fact]:
    """A line for each OpenCL device, with the numbers that `[backend]` uses."""
    if version("pyopencl") is None:
        return [_fact("pyopencl is not installed", "pip install 'mpilbm[opencl]'")]
    answer, problem = ask(QUESTION)
    lines = [line.removeprefix(MARK) for line in answer if line.startswith(MARK)]
    if not lines:
        return [_fact(f"cannot be used: {problem or 'no answer'}", CRASHED)]
    kind, *lines = lines
    if kind == "problem":
        what, _, fix = lines[0].partition(": ")
        return [_fact(what, fix)]
    return [_fact(line) for line in lines]


def _fact(value: str, fix: str = "") -> Fact:
    return Fact("devices", "opencl", value, fix)


NODE_GPUS = Path("/proc/driver/nvidia/gpus")  # one folder per GPU, visible to this process or not

DRIVER_QUESTION = """
from mpilbm.backends.gpu.drivers import driver
found = driver()
if found is None:
    print("none")
else:
    print(found.problem)
    print("%d devices, %s" % (found.devices, found.words))
    print(found.install)
    print(found.vendor.name.lower())
"""
SUPPORT_QUESTION = """
from mpi4py import MPI
from mpilbm.parallel.gpu_aware import library_says_yes
print("yes" if library_says_yes(MPI) else "no")
"""
KIND_QUESTION = """
from mpilbm.backends.auto import Auto
print(Auto().device_kind(), Auto().sweeps())
"""
DEVICE_QUESTION = """
import cupy
for number in range(cupy.cuda.runtime.getDeviceCount()):
    found = cupy.cuda.runtime.getDeviceProperties(number)
    print("%d: %s, %.0f GB" % (number, found["name"].decode(), found["totalGlobalMem"] / 1e9))
compiler = "HIPRTC" if cupy.cuda.runtime.is_hip else "NVRTC"
print(compiler + " %d.%d" % cupy.cuda.nvrtc.getVersion())
"""


def devices(probe: bool) -> list[Fact]:
    """CPU cores, GPUs, and the layout on the device that `auto` selects."""
    own, usable = cupy_gpus(probe)
    facts = [processor(), *own, *opencl()]
    answer, _ = ask(KIND_QUESTION)
    kind, *more = answer[-1].split() if answer else ["cpu"]
    sweeps = more == ["True"]
    return facts if kind == "cuda" and not usable else [*facts, layout(kind, sweeps)]


def cupy_gpus(probe: bool) -> tuple[list[Fact], bool]:
    """NVIDIA or AMD GPUs as reported by the driver and CuPy, and whether MPI can use their memory.

    The second value: whether there are some that can be used.
    """
    answer, problem = ask(DRIVER_QUESTION)
    if answer == ["none"]:
        return [Fact("devices", "nvidia", "no driver, or no device")], False
    if not answer or answer[0]:
        fix = "check the output of nvidia-smi; give a container access to the GPUs"
        return [Fact("devices", "nvidia", f"cannot be used: {problem or answer[0]}", fix)], False
    _, text, install, vendor = answer
    amd = vendor == "amd"
    facts = [Fact("devices", vendor, text) if amd else visible(text, int(text.split()[0]))]
    answer, problem = ask(DEVICE_QUESTION)
    if not answer:
        return [*facts, Fact("devices", "cupy", f"cannot be used: {problem}", install)], False
    package = version("cupy-rocm-7-0" if amd else "cupy-cuda13x", "cupy-cuda12x", "cupy")
    facts.append(Fact("devices", "cupy", f"{package}, {'; '.join(answer)}"))
    return [*facts, device_memory(probe)], True


def processor() -> Fact:
    """The cores of this machine, and those on which this process may run."""
    from mpilbm.backends.units import cores

    every, own = os.cpu_count() or 1, len(cores())
    limit = f", {own} of them for this process" if 0 < own < every else ""
    return Fact("devices", "cpu", f"{counted(every, 'core')}{limit}, {platform.machine()}")


def layout(device: str, sweeps: bool = False) -> Fact:
    """The layout that `auto` stands for on a kind of device, in a box without bodies.

    sweeps: see Device.sweeps.
    """
    from mpilbm.layouts.auto import Auto, Facts

    found = [Facts(device)] + [Facts(device, swept=lambda layout: layout.sweep)] * sweeps
    chosen = [Auto().resolve(facts, lambda layout: True) for facts in found]
    texts = [f"{layout.name} on {device}: {why}" for layout, why in chosen]
    return Fact("devices", "layout auto", "; ".join(texts))


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

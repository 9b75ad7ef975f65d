"""The devices of this machine: CPU cores, GPUs with CuPy, and OpenCL devices.

Drivers may crash or hang when they are loaded, so child processes load them.
"""

import os
import platform
from pathlib import Path

from mpilbm.core.units import counted
from mpilbm.run.preflight.installation.facts import Fact, ask, version
from mpilbm.run.preflight.installation.opencl import opencl

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
print(Auto().device_kind())
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
    kind = answer[-1] if answer else "cpu"
    return facts if kind == "cuda" and not usable else [*facts, layout(kind)]


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
    from mpilbm.backends.cpu.workers import cores

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

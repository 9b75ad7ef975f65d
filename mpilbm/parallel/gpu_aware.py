"""Tests whether MPI accepts GPU memory, once for each library, driver, node and settings.

The test runs in a child process, because MPI may crash if it does not:

    mpirun -n 2 python -m mpilbm.parallel.gpu_aware cuda 60

Two ranks send patterns between their devices in both directions and compare; one rank sends to
itself. Prints `started N`, `query yes|no` (what the library reports; after `no` the test ends
before any device pointer is sent), and `passed` if every value arrived unchanged.
"""

import ctypes
import functools
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.core import machine
from mpilbm.core.errors import CommandError
from mpilbm.core.machine import cache
from mpilbm.core.registry import make
from mpilbm.parallel import Communicator, launcher

DRIVER = Path("/proc/driver/nvidia/version")
DEVICES = (DRIVER, *map(Path, ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd")))  # kfd: AMD
MARK = "mpilbm-probe:"
# Bytes: a message that MPI sends immediately, and one that it sends after a handshake.
SIZES = (1 << 10, 1 << 23)
QUERIES = ("MPIX_Query_cuda_support", "MPIX_Query_rocm_support")
GPU_KINDS = (0, 2)  # MPICH: MPIX_GPU_SUPPORT_CUDA and MPIX_GPU_SUPPORT_HIP
LIMIT = 60  # seconds for the probe, a cold start of CUDA included


@dataclass(frozen=True)
class Verdict:
    """Whether MPI accepts GPU memory, None if this rank does not know it, and the reason."""

    answer: bool | None
    reason: str


def forced(environment: Mapping[str, str] = os.environ) -> Verdict | None:
    """The user's setting of MPILBM_GPU_MPI; CommandError if it is neither 0 nor 1."""
    value = environment.get("MPILBM_GPU_MPI", "")
    if value not in ("", "0", "1"):
        raise CommandError(
            f"MPILBM_GPU_MPI={value} in the environment: allowed are 1 (MPI accepts GPU memory), "
            "0 (it does not) and unset (a test decides)"
        )
    return Verdict(value == "1", f"MPILBM_GPU_MPI={value}") if value else None


@functools.cache
def verdict(backend: str = "cuda") -> Verdict:
    """The verdict for this node; call it before MPI starts: the first call may start a child.

    Only the first rank of a node makes the test; on the others the answer is None.
    """
    setting = forced()
    MPI = launcher.library()
    if setting or MPI is None:
        return setting or Verdict(False, "no MPI library")
    if backend == "cuda" and not any(path.exists() for path in DEVICES):
        return Verdict(False, "no NVIDIA or AMD driver")
    if launcher.local_rank() > 0:
        return Verdict(None, "another rank of the node makes the test")
    library = launcher.library_name(MPI)
    driver = DRIVER.read_text("utf-8") if DRIVER.exists() else ""
    settings = sorted(launcher.settings().items())
    version = MPI.Get_library_version()
    code = cache.code_digest("parallel", "backends")  # of the test
    key = cache.digest(version, driver, platform.node(), repr(settings), backend, code)
    known = cache.get("gpu-mpi.json", key)
    if known is not None:
        return Verdict(**json.loads(known))
    if MPI.Is_initialized():
        return Verdict(
            None, "MPI was running before the test; MPILBM_GPU_MPI=1 sets the answer to yes"
        )
    found = judge(*run_probe(backend), library)
    cache.put("gpu-mpi.json", key, json.dumps(asdict(found)).encode())
    return found


def run_probe(backend: str) -> tuple[str, str]:
    """Run the probe with two ranks, or with one if mpirun cannot start; (output, how it ended)."""
    child = machine.module("mpilbm.parallel.gpu_aware", backend, str(LIMIT))
    mpirun = machine.locate("mpirun", os.path.dirname(sys.executable))
    for command in ([mpirun, "-n", "2", *child] if mpirun else None, child):
        if command:
            output, end = _run(command, LIMIT + 5)
            if f"{MARK} started" in output:
                return output, end
    return output, end


def _run(command: list[str], limit: int) -> tuple[str, str]:
    """Run a command; (its standard output, how it ended). The ranks also limit their own time."""
    with subprocess.Popen(
        command,
        env=machine.environment(launcher.without_launcher()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as child:
        try:
            output, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.communicate()[0], f"not done after {limit} s"
    return output, f"exit code {child.returncode}"


def judge(output: str, end: str, library: str) -> Verdict:
    """The verdict from the output of a probe."""
    printed = [line.removeprefix(MARK).strip() for line in output.splitlines() if MARK in line]
    fix = "if it does accept GPU memory, set MPILBM_GPU_MPI=1"
    if "query no" in printed:
        return Verdict(False, f"{library} reports that it does not accept GPU memory; {fix}")
    if "passed" in printed:
        between = "two processes" if "started 2" in printed else "one process and itself"
        return Verdict(True, f"{library} reports that it does, and a test between {between} passed")
    if "query yes" in printed:
        return Verdict(
            False,
            f"{library} reports that it accepts GPU memory, but the test failed ({end}); {fix}",
        )
    return Verdict(False, f"the test of {library} did not start ({end}); {fix}")


def agreed(comm: Communicator, mine: Verdict) -> Verdict:
    """The verdict of all ranks: yes if none says no and at least one says yes. Collective."""
    answers = comm.allgather(mine)
    for answer in (False, True):
        for one in answers:
            if one.answer is answer:
                return one
    return answers[0]


def library_says_yes(MPI: Any) -> bool:
    """Whether the library reports support of NVIDIA or AMD GPUs.

    Asks MPIX_Query_cuda_support and MPIX_Query_rocm_support, or MPIX_GPU_query_support.
    """
    library = ctypes.CDLL(MPI.__file__)
    if queries := [name for name in QUERIES if hasattr(library, name)]:
        return any(getattr(library, name)() == 1 for name in queries)
    answer = ctypes.c_int(0)
    for kind in GPU_KINDS if hasattr(library, "MPIX_GPU_query_support") else ():
        library.MPIX_GPU_query_support(kind, ctypes.byref(answer))
        if answer.value == 1:
            return True
    return False


def pattern(size: int, seed: int) -> np.ndarray:
    """Nonzero bytes that differ from those of any other seed."""
    return np.random.default_rng(seed).integers(1, 256, size, dtype=np.uint8)


def values_arrive(comm: Any, device: Any) -> bool:
    """Send device memory to the other rank (or to this one), receive as much, and compare."""
    right = True
    other = (comm.rank + 1) % comm.size
    for size in SIZES:
        source = device.upload(pattern(size, comm.rank))
        target = device.upload(np.zeros(size, np.uint8))
        device.stream("bulk").synchronize()
        for _ in range(3):
            requests = [comm.Irecv(target, other), comm.Isend(source, other)]
            type(requests[0]).Waitall(requests)
        right &= np.array_equal(device.download(target), pattern(size, other))
    return all(comm.allgather(right))


def main(backend: str, limit: int) -> None:
    """Print the result; the process ends after `limit` seconds, even in a call that hangs."""
    signal.alarm(limit)
    import mpi4py

    mpi4py.rc(thread_level="funneled")  # as in a run
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    report = print if comm.rank == 0 else (lambda *words, **options: None)
    report(MARK, "started", comm.size, flush=True)
    yes = backend == "cpu" or library_says_yes(MPI)
    report(MARK, "query", "yes" if yes else "no", flush=True)
    if yes:
        device = make("backends", backend).resolve().open(comm.rank, comm.size)
        if values_arrive(comm, device):
            report(MARK, "passed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

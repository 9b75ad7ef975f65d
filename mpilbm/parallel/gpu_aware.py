"""Does this MPI take pointers to GPU memory? Asked once per library, driver, node and settings."""

import functools
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from mpilbm.errors import CommandError
from mpilbm.parallel import launcher
from mpilbm.parallel.gpu_probe import MARK
from mpilbm.system import cache, processes

DRIVER = Path("/proc/driver/nvidia/version")
DEVICES = (DRIVER, Path("/dev/nvidiactl"), Path("/dev/nvidia0"))
LIMIT = 60  # seconds for the probe, a cold start of CUDA included


@dataclass(frozen=True)
class Verdict:
    """Yes, no or None (this rank does not know), and why."""

    answer: bool | None
    reason: str


def forced(environment=os.environ) -> Verdict | None:
    """What the user says by MPILBM_GPU_MPI; CommandError if that is neither 0 nor 1."""
    value = environment.get("MPILBM_GPU_MPI", "")
    if value not in ("", "0", "1"):
        raise CommandError(
            f"MPILBM_GPU_MPI={value} in the environment: allowed are 1 (MPI takes GPU memory), "
            "0 (it does not) and unset (find out)"
        )
    return Verdict(value == "1", f"MPILBM_GPU_MPI={value}") if value else None


@functools.cache
def verdict(backend: str = "cuda") -> Verdict:
    """This node's answer; starts a child if nobody has asked yet, so call it before MPI starts.

    Of the ranks of a node only the first asks; the others answer None.
    """
    said = forced()
    MPI = launcher.library()
    if said or MPI is None:
        return said or Verdict(False, "no MPI library")
    if backend == "cuda" and not any(path.exists() for path in DEVICES):
        return Verdict(False, "no NVIDIA driver")
    if launcher.local_rank() > 0:
        return Verdict(None, "another rank of the node asks")
    library = launcher.library_name(MPI)
    driver = DRIVER.read_text() if DRIVER.exists() else ""
    settings = sorted(launcher.settings().items())
    version = MPI.Get_library_version()
    key = cache.digest(version, driver, platform.node(), repr(settings), backend)
    known = cache.get("gpu-mpi.json", key)
    if known is not None:
        return Verdict(**json.loads(known))
    if MPI.Is_initialized():
        return Verdict(None, "MPI was running before it could be asked; MPILBM_GPU_MPI=1 says yes")
    found = judge(*run_probe(backend), library)
    cache.put("gpu-mpi.json", key, json.dumps(asdict(found)).encode())
    return found


def run_probe(backend: str, limit: int = LIMIT) -> tuple[str, str]:
    """Output of the probe between two ranks, or of one alone where no launcher starts; its end."""
    child = processes.module("mpilbm.parallel.gpu_probe", backend, str(limit))
    mpirun = processes.locate("mpirun", os.path.dirname(sys.executable))
    for command in ([mpirun, "-n", "2", *child] if mpirun else None, child):
        if command:
            output, end = _run(command, limit + 5)
            if f"{MARK} started" in output:
                return output, end
    return output, end


def _run(command: list[str], limit: int) -> tuple[str, str]:
    """Standard output of a command and how it ended; its ranks end themselves by an alarm."""
    with subprocess.Popen(
        command,
        env=processes.environment(launcher.without_launcher()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            output, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.communicate()[0], f"not done after {limit} s"
    return output, f"exit code {child.returncode}"


def judge(output: str, end: str, library: str) -> Verdict:
    """The verdict on what a probe printed."""
    said = [line.removeprefix(MARK).strip() for line in output.splitlines() if MARK in line]
    mend = "if it does take GPU memory, set MPILBM_GPU_MPI=1"
    if "query no" in said:
        return Verdict(False, f"{library} says that it takes no GPU memory; {mend}")
    if "passed" in said:
        between = "two processes" if "started 2" in said else "one process and itself"
        return Verdict(True, f"{library} says so and a test between {between} passed")
    if "query yes" in said:
        return Verdict(False, f"{library} says yes, but the test failed ({end}); {mend}")
    return Verdict(False, f"the test of {library} did not start ({end}); {mend}")


def agreed(comm, mine: Verdict) -> Verdict:
    """The answer of all ranks: yes if nobody says no and somebody says yes. Collective."""
    answers = comm.allgather(mine)
    for answer in (False, True):
        for one in answers:
            if one.answer is answer:
                return one
    return answers[0]

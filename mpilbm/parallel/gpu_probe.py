"""Tests whether MPI accepts device memory, in a child process: MPI may crash if it does not.

    mpirun -n 2 python -m mpilbm.parallel.gpu_probe cuda 60

Two ranks send patterns between their devices in both directions and compare; one rank sends to
itself. Prints `started N`, `query yes|no` (what the library reports; after `no` the probe ends
before any device pointer is sent), and `passed` if every value arrived unchanged.
"""

import ctypes
import signal
import sys
from typing import Any

import numpy as np

MARK = "mpilbm-probe:"
# Bytes: a message that MPI sends immediately, and one that it sends after a handshake.
SIZES = (1 << 10, 1 << 23)
QUERIES = ("MPIX_Query_cuda_support", "MPIX_Query_rocm_support")
GPU_KINDS = (0, 2)  # MPICH: MPIX_GPU_SUPPORT_CUDA and MPIX_GPU_SUPPORT_HIP


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

    from mpilbm.core.registry import make

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

"""Facts about the launcher and the MPI library that are known before MPI starts."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Variables by which users choose transports, and settings that launchers need.
SETTINGS = (
    *("UCX_", "MPICH_", "MPIR_CVAR_", "FI_", "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl"),
    *(
        "OMPI_MCA_opal",
        "OMPI_MCA_plm",
        "OMPI_ALLOW",
        "PRTE_MCA_rmaps",
        "PRTE_PREFIX",
        "PMIX_PREFIX",
    ),
)
# Variables that a launcher sets in its ranks.
LAUNCHERS = (
    *("PMI", "OMPI_", "PRTE_", "HYD", "SLURM_", "MPI_LOCAL", "MPIEXEC_", "PALS_", "FLUX_"),
    *("MV2_COMM_WORLD_", "MVP_COMM_WORLD_", "MPISPAWN_", "MPIRUN_"),
)
# The rank's number on its node. SLURM's comes last: mpirun may itself be started by srun.
LOCAL_RANKS = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"),
    *("MVP_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "FLUX_TASK_LOCAL_ID"),
    "SLURM_LOCALID",
)
SHARED_MEMORY = Path("/dev/shm")  # in which MPICH keeps its messages between ranks of a node
SHARED_MEMORY_FIX = (
    "mount it: mount -t tmpfs tmpfs /dev/shm, or in a container: docker run --shm-size=1g"
)

# Variables of launchers that do not report the number of ranks.
SILENT = ("PMIX_RANK", "PMI_RANK", "PALS_RANKID")


def ranks(environment: Mapping[str, str] = os.environ) -> int | None:
    """How many ranks the launcher started; None without a launcher, or if it does not report it.

    SLURM sets variables also for processes that srun did not start; only processes of srun have
    the variables of a step.
    """
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"):
        if environment.get(name, "").isdigit():
            return int(environment[name])
    if "SLURM_STEP_ID" in environment and "SLURM_PROCID" in environment:
        tasks = environment.get("SLURM_STEP_NUM_TASKS", environment.get("SLURM_NTASKS", ""))
        if tasks.isdigit():
            return int(tasks)
    return None


def several_ranks(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started several ranks, or a number that it does not report."""
    number = ranks(environment)
    return any(name in environment for name in SILENT) if number is None else number > 1


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """This rank's number on its node as the launcher reports it; 0 where it does not."""
    for name in LOCAL_RANKS:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return 0


def settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The user's own settings of MPI and its transports."""
    return {name: value for name, value in environment.items() if name.startswith(SETTINGS)}


def without_launcher(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a child that is not a rank of this run, with the user's settings."""
    kept = {name: value for name, value in environment.items() if not name.startswith(LAUNCHERS)}
    return kept | settings(environment)


def library() -> Any:
    """The module mpi4py.MPI, with the library loaded but not initialised; None if absent."""
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc(initialize=False, finalize=True)
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None
    return MPI


def library_name(MPI: Any) -> str:
    """Short name and version of the library: `MPICH 5.0.2`."""
    first = MPI.Get_library_version().splitlines()[0].split(",")[0]
    return " ".join(first.replace("Version:", "").strip("\0 ").split())


def belongs_to_another_mpi(MPI: Any, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the library is MPICH but Open MPI's mpirun started it: MPICH would then abort."""
    ours = MPI.get_vendor()[0] == "MPICH" and "MPIR_CVAR_PMI_VERSION" not in environment
    return ours and "OMPI_COMM_WORLD_SIZE" in environment and "PMI_SIZE" not in environment


def shared_memory_problem(folder: Path | None = None) -> str:
    """Why the shared memory of this node, in `folder`, cannot be used; "" if it can."""
    folder = folder or SHARED_MEMORY
    try:
        tempfile.TemporaryFile(dir=folder, prefix="mpilbm-").close()
    except FileNotFoundError:
        return f"{folder} is missing"
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"
    return ""


def needs_shared_memory(MPI: Any) -> bool:
    """Whether the library cannot start without it, not even with one rank."""
    return MPI.get_vendor()[0] == "MPICH"

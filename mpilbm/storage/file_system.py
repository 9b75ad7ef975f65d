"""The file system of an output folder: whether all ranks may write to one file, and how."""

import fcntl
import os
import re
import shlex
import subprocess
from pathlib import Path

from mpilbm.core import machine
from mpilbm.core.errors import MpilbmError
from mpilbm.parallel import Communicator, on_root
from mpilbm.parallel.ranks import local_rank
from mpilbm.storage import PARTIAL, fresh
from mpilbm.storage.partial_file import open_parallel

PROBE = f"probe.h5{PARTIAL}"
MOUNTS = Path("/proc/self/mountinfo")
# File systems where the processes of one machine may write parts of one file at the same time: they
# share the pages of the file.
ON_ONE_NODE = {"bcachefs", "beegfs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "panfs",
               "pvfs2", "ramfs", "tmpfs", "xfs", "zfs"}  # fmt: skip
# File systems where processes of several machines may, too: the servers grant the right to cache
# pages and revoke it. Not NFS: each client has its own pages, and if two clients write to the same
# page, the later one overwrites the other. Not BeeGFS: its clients may be configured to do the same
# (tuneFileCacheType = native), which a run cannot detect. PanFS and PVFS do not document it.
PARALLEL = {"ceph", "gpfs", "lustre", "wekafs"}


def best_writer(comm: Communicator, directory: Path) -> str:
    """The way to write files in this folder, see planes.py: "own", "mpio" or "root"; collective."""
    if comm.size == 1:
        return "own"
    one_node = local_rank(comm)[1] == comm.size
    if all(comm.allgather(takes_parts(kind(directory), one_node))):
        return "own"
    return "mpio" if open_together(comm, directory) else "root"


def takes_parts(file_system: str, one_node: bool) -> bool:
    """Whether ranks of one node, or of several, may write parts of one file at the same time."""
    return file_system in PARALLEL or (one_node and file_system in ON_ONE_NODE)


def threads_write(directory: Path) -> str:
    """How threads of a process write to one file in this folder in the shortest time.

    at_once   a parallel file system lets them write at the same time
    mapped    tmpfs: they reserve memory one after another, and copy to it at the same time
    in_turns  other local file systems lock the file during a write
    """
    found = kind(directory)
    return "at_once" if found in PARALLEL else "mapped" if found == "tmpfs" else "in_turns"


def kind(directory: Path | str, mounts: Path = MOUNTS) -> str:
    """The type of the file system of a folder, as `mount` prints it; "" if it is unknown.

    Of the mounts above the folder those of its device are preferred, and of these the deepest and
    last: a mount may hide another, and some file systems (btrfs) list no device.
    """
    try:
        path, device = Path(directory).resolve(), os.stat(directory).st_dev
        lines = os.fsdecode(mounts.read_bytes()).split("\n")[:-1]
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    found: list[tuple[bool, int, int, str]] = []  # of the device, depth, order, type
    for line in lines:
        fields, _, rest = line.partition(" - ")
        _, _, its_number, _, name, *_ = fields.split(" ")
        place = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), name))
        if path.is_relative_to(place):
            found.append((its_number == number, len(place.parts), len(found), rest.split(" ")[0]))
    return max(found)[-1] if found else ""


def open_together(comm: Communicator, directory: Path) -> bool:
    """Whether all ranks can open one file with MPI-IO; collective."""
    import h5py

    if comm.size == 1 or not all(comm.allgather(bool(h5py.get_config().mpi))):
        return False
    path = Path(directory) / PROBE
    on_root(comm, lambda: fresh(path).close())  # HDF5 would follow a link
    works = all(comm.allgather(_has_locks(path)))
    if works:
        try:
            open_parallel(path, "w", comm).close()
        except (OSError, ValueError, RuntimeError):
            works = False
        works = all(comm.allgather(works))
    if comm.rank == 0:
        path.unlink(missing_ok=True)
    comm.barrier()  # no rank finds the file in the folder later
    return works


def _has_locks(path: Path) -> bool:
    """Whether this process can lock a file; without locks, MPI-IO on NFS aborts all ranks."""
    try:
        with open(path, "rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


MOST_STRIPES = 16
SECONDS = 20.0  # in which `lfs` must answer
DEFAULTS = ["0", "1"]  # stripe counts of a folder that nobody has set


def spread(directory: Path, ranks: int, mounts: Path = MOUNTS) -> str:
    """Set the stripe count of a folder on Lustre for files of many ranks; to be called by one rank.

    Lustre keeps a file on as many of its targets as the file has stripes. By default this is one,
    whose bandwidth all ranks would share. The count applies to files created in the folder later.

    Returns a line for the user: the command that was executed, or the one to execute where `lfs`
    is missing or fails; "" if nothing is to do. A folder with more stripes, or with a layout of
    several components, keeps its layout.
    """
    if ranks == 1 or kind(directory, mounts) != "lustre":
        return ""
    command = ["setstripe", "-c", f"{min(ranks, MOST_STRIPES)}", str(directory.resolve())]
    text = shlex.join(["lfs", *command])
    lfs = machine.locate("lfs")
    if lfs is None:
        return _advice(directory, text, "lfs is not in PATH")
    found = _output(lfs, "getstripe", "-d", command[-1])
    counts = re.findall(r"stripe_count:\s*(-?\d+)", found or "")
    if counts and counts not in ([count] for count in DEFAULTS):
        return ""
    if found is None or _output(lfs, *command) is None:
        return _advice(directory, text, "lfs failed")
    return f"{directory} is on Lustre: executed {text} (spreads files over several targets)"


def _output(*command: str) -> str | None:
    """What a command prints; None if it fails."""
    try:
        done = machine.run(command, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, MpilbmError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def _advice(directory: Path, text: str, why: str) -> str:
    return (
        f"{directory} is on Lustre; many ranks write faster to files that have several stripes, "
        f"but {why}; execute: {text} (for files that are written later)"
    )

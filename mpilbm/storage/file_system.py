"""What the file system of a run allows: who may write its files, and how."""

import os
import re
from pathlib import Path

from mpilbm.parallel.agree import on_root
from mpilbm.parallel.ranks import local_rank
from mpilbm.storage.files import PARTIAL, fresh
from mpilbm.storage.planes import open_parallel

PROBE = f"probe.h5{PARTIAL}"
MOUNTS = Path("/proc/self/mountinfo")
# Where the processes of one machine may write parts of one file at once: they share its pages.
ON_ONE_NODE = {"bcachefs", "beegfs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "panfs",
               "pvfs2", "ramfs", "tmpfs", "xfs", "zfs"}  # fmt: skip
# Where those of several machines may too: servers lend the right to keep pages and call it back.
# Not NFS: each client keeps pages of its own, and the later one of two that meet in a page wins.
# Nor BeeGFS: its clients may be set to do the same (tuneFileCacheType = native), which a run cannot
# see; PanFS and PVFS are not known to promise it.
PARALLEL = {"ceph", "gpfs", "lustre", "wekafs"}


def best_writer(comm, directory) -> str:
    """Who writes files in this directory, see planes.py: "own", "mpio" or "root"; collective."""
    if each_may_write(comm, directory):
        return "own"
    return "mpio" if open_together(comm, directory) else "root"


def each_may_write(comm, directory) -> bool:
    """Whether all ranks may write parts of one file in this directory; collective."""
    if comm.size == 1:
        return True
    one_node = local_rank(comm)[1] == comm.size
    return all(comm.allgather(takes_parts(kind(directory), one_node)))


def takes_parts(file_system: str, one_node: bool) -> bool:
    """Whether ranks of one node, or of several, may write parts of one file at the same time."""
    return file_system in PARALLEL or (one_node and file_system in ON_ONE_NODE)


def kind(directory, mounts: Path = MOUNTS) -> str:
    """The type of the file system of a directory, as `mount` calls it; "" where that is unknown.

    Of the mounts above the directory that of its device, and of these the deepest and last: a mount
    may hide another, and some file systems (btrfs) name no device.
    """
    try:
        path, device = Path(directory).resolve(), os.stat(directory).st_dev
        lines = os.fsdecode(mounts.read_bytes()).split("\n")[:-1]
    except OSError:
        return ""
    number, found = f"{os.major(device)}:{os.minor(device)}", []
    for line in lines:
        before, _, after = line.partition(" - ")
        _, _, its_number, _, place, *_ = before.split(" ")
        place = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), place))
        if path.is_relative_to(place):
            found.append((its_number == number, len(place.parts), len(found), after.split(" ")[0]))
    return max(found)[-1] if found else ""


def open_together(comm, directory) -> bool:
    """Whether all ranks can open one file by MPI-IO; collective."""
    import h5py

    if comm.size == 1 or not all(comm.allgather(bool(h5py.get_config().mpi))):
        return False
    path = Path(directory) / PROBE
    on_root(comm, lambda: fresh(path).close())  # HDF5 would follow a link
    try:
        open_parallel(path, "w", comm).close()
        works = True
    except (OSError, ValueError, RuntimeError):
        works = False
    works = all(comm.allgather(works))
    if comm.rank == 0:
        path.unlink(missing_ok=True)
    comm.Barrier()  # no rank finds the file in the directory later
    return works

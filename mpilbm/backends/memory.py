"""Main memory that this process may still allocate, in bytes, limited by the machine or the job."""

import os
from pathlib import Path

from mpilbm.core.errors import CaseError
from mpilbm.core.units import counted, in_words


def least() -> tuple[int, int]:
    """(available, total) of the machine or of its job, whichever has less available."""
    return min([of_machine(), *of_groups()])


def require(count: int, ranks: int, what: str, path: Path | str | None = None) -> None:
    """CaseError unless `count` bytes for `what` fit the free memory, which `ranks` ranks share."""
    free, total = least()
    if count > free // ranks:
        shared = f", shared by {counted(ranks, 'rank')}" if ranks > 1 else ""
        raise CaseError(
            f"{what} needs {in_words(count)} of main memory, but this machine has {in_words(free)} "
            f"of {in_words(total)} free{shared}; choose a smaller domain.size or use more machines",
            "domain.size",
            path,
        )


def of_machine() -> tuple[int, int]:
    """(available, total) of this machine."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    except OSError:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return total, total
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return sizes.get("MemAvailable", sizes["MemFree"]), sizes["MemTotal"]


def of_groups(root: Path = Path("/sys/fs/cgroup"), own: str | None = None) -> list[tuple]:
    """(available, limit) of each control group above this process that has a limit.

    Pages of files that the kernel can reclaim count as available.
    """
    if own is None:
        try:
            own = Path("/proc/self/cgroup").read_text("utf-8")
        except OSError:
            return []
    found = []
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folder, words = root, ("memory.max", "memory.current", "inactive_file ")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
            folder, words = root / "memory", names
        else:
            continue
        steps = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(steps) + 1):
            found += _limit(folder.joinpath(*steps[:depth]), *words)
    return found


def _limit(folder: Path, limit: str, usage: str, cached: str) -> list[tuple[int, int]]:
    try:
        total = int((folder / limit).read_text("utf-8"))
        used = int((folder / usage).read_text("utf-8"))
        lines = (folder / "memory.stat").read_text("utf-8").splitlines()
    except (OSError, ValueError):  # no such group, or "max"
        return []
    used -= sum(int(line.split()[1]) for line in lines if line.startswith(cached))
    return [(max(total - used, 0), total)]

"""The duration of `mpilbm run` for a small case, with an empty and with a full kernel cache."""

import json
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from mpilbm.core.errors import MpilbmError
from mpilbm.core.files import toml_text
from mpilbm.core.machine import processes
from mpilbm.parallel.launcher import without_launcher
from mpilbm.storage.own_files import SUMMARY
from mpilbm.view.bench.boxes import SINGLE
from mpilbm.view.bench.variants import Series, dimensions

DEFAULTS = {
    "lattice": "D2Q9,D3Q19",
    "collision": "bgk,trt",
    "layout": "ab",
    "precision": SINGLE,
    "setting": "cavity",
}
SIDE = 16  # cells
WARM_STARTS = 3


def rows(series: Series) -> list[dict]:
    """A row for each variant, with the results of `starts`."""
    return [
        variant._asdict() | starts(series.tables(variant, (SIDE,) * dimensions(variant)))
        for variant in series.variants
    ]


def starts(tables: dict[str, Any]) -> dict[str, Any]:
    """Seconds of processes that run a case from start to end.

    `cold` generates and compiles all kernels, `warm` is the median of WARM_STARTS processes that
    find them in the cache.
    """
    with TemporaryDirectory(prefix="mpilbm-") as folder:
        case = Path(folder, "box.toml")
        case.write_text(toml_text.dumps(tables), "utf-8")
        cold, *warm = (seconds(case, folder) for _ in range(1 + WARM_STARTS))
        ran = json.loads(Path(folder, "out", SUMMARY).read_text("utf-8"))
    return {"cold": cold, "warm": median(warm), "device": ran["device"]}


def seconds(case: Path, folder: str) -> float:
    """Seconds of a run in a new process with kernel cache in `folder`; MpilbmError if it fails."""
    caches = {"MPILBM_CACHE_DIR": f"{folder}/kernels", "CUPY_CACHE_DIR": f"{folder}/cupy"}
    words = ["run", str(case), "--output", f"{folder}/out", "--overwrite"]
    start = perf_counter()
    environment = processes.environment(without_launcher() | caches)
    done = processes.run(processes.module("mpilbm", *words), env=environment)
    taken = perf_counter() - start
    if done.returncode:
        words = done.stderr.strip().replace("mpilbm: error: ", "").splitlines()
        raise MpilbmError([f"a run to be timed ended with exit code {done.returncode}:", *words])
    return taken

"""How long `mpilbm run` takes until a small case is done: with an empty cache, and from it."""

import json
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from mpilbm.bench.variants import Series
from mpilbm.errors import MpilbmError
from mpilbm.parallel.launcher import without_launcher
from mpilbm.registry import find
from mpilbm.storage.own_files import SUMMARY
from mpilbm.system import processes, toml_text

USUAL = {
    "lattice": "D2Q9,D3Q19",
    "collision": "bgk,trt",
    "layout": "ab",
    "precision": "single",
    "setting": "cavity",
}
SIDE = 16  # cells
WARM_STARTS = 3


def rows(series: Series) -> list[dict]:
    """A row for each variant, with the seconds that `starts` returns."""
    return [
        variant._asdict() | starts(series.tables(variant, (SIDE,) * find("lattices", variant[0]).D))
        for variant in series.variants
    ]


def starts(tables: dict) -> dict[str, float]:
    """Seconds of whole processes that run a case: `cold` generates and compiles all kernels.

    `warm` is the median of some that find them in the cache.
    """
    with TemporaryDirectory(prefix="mpilbm-") as folder:
        case = Path(folder, "box.toml")
        case.write_text(toml_text.dumps(tables))
        cold, *warm = (seconds(case, folder) for _ in range(1 + WARM_STARTS))
        ran = json.loads(Path(folder, "out", SUMMARY).read_text())
    return {"cold": cold, "warm": median(warm), "device": ran["device"]}


def seconds(case: Path, folder: str) -> float:
    """Of one run in a fresh process that keeps its kernels in `folder`; MpilbmError if it fails."""
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

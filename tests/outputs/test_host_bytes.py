"""The main memory of outputs: planned by check, measured, and refused before it is allocated."""

import tracemalloc

import numpy as np
import pytest
from support.host_samples import flow

from mpilbm.core.errors import CaseError
from mpilbm.core.units import in_words
from mpilbm.outputs.samples.host import HostSampled, with_planes
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run

MOMENTS = {"name": "higher_moments", "every": 2, "label": "m"}
SPECTRA = {"name": "line_spectra", "every": 2, "label": "s", "average": ["x", "y"]}
BOX = {"size": [48, 40, 80], "periodic": [True] * 3}
ROWS = {"name": "statistics", "every": 2, "average": ["x"]}


@pytest.mark.parametrize(
    ("output", "average"),
    [(MOMENTS, []), (MOMENTS, ["x"]), (MOMENTS, ["x", "y", "z"]),
     (SPECTRA, ["x"]), (SPECTRA, ["x", "y"]), (SPECTRA, ["x", "y", "z"])],
)  # fmt: skip
def test_the_planned_bytes_are_those_of_a_file_or_a_checkpoint(output, average):
    case = flow([output | {"average": average}], domain=BOX)
    sampled = case.outputs[-1]
    sums, planes = sampled.sums(case), case.shape[0]
    with_planes(sums.results, np.ones((1, sums.values)))  # modules that are imported at first use
    tracemalloc.start()
    state = np.ones((planes, sums.values))
    kept = state.copy()
    of_checkpoint = tracemalloc.get_traced_memory()[1]
    del kept
    tracemalloc.reset_peak()
    if not sampled.over_planes(case):
        with_planes(sums.results, state)
    of_file = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    measured, planned = max(of_checkpoint, of_file), sampled.host_bytes(case, planes)
    assert measured <= 1.02 * planned + 400_000  # arrays of one plane
    assert planned <= 1.2 * measured


def test_check_reports_them():
    def lines(backend, gpu_memory):
        case = flow([MOMENTS, SPECTRA, ROWS], domain=BOX, backend={"name": backend})
        found = {each.what: each.value for each in plan(case, 2, gpu_memory).sections["ranks"]}
        return case.outputs, found

    (snapshots, *sampled), on_cpu = lines("cpu", None)
    case = flow([MOMENTS, SPECTRA, ROWS], domain=BOX)
    assert snapshots.host_bytes(case, 40) == 0
    needed = {output.name: output.host_bytes(case, 40) for output in sampled}
    assert min(needed.values()) > 0
    for output in sampled:  # the sums of `statistics` are on the device
        total = needed[output.name] + output.device_bytes(case, 40)
        assert on_cpu[output.name] == in_words(total)
    assert "outputs" not in on_cpu
    for backend in ("cuda", "auto"):
        _, on_gpu = lines(backend, 80)
        assert on_gpu["outputs"] == in_words(sum(needed.values()))
        assert "higher_moments" not in on_gpu
    few = plan(flow([], domain=BOX), 2).sections["ranks"]
    assert "outputs" not in {line.what for line in few}


def test_a_run_refuses_what_the_machine_does_not_have(tmp_path, monkeypatch):
    monkeypatch.setattr(HostSampled, "host_bytes", lambda *_: 2**60)
    with pytest.raises(CaseError, match=r"the output 'higher_moments' needs .* of main memory"):
        run(flow([MOMENTS]), Serial(), tmp_path)

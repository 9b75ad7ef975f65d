"""Generated cases through `mpilbm check`: exit code 0 or 2, no exception, little time and memory.

More than 20 s: many cases. Each test is a process of its own (see support/fuzz.py), whose memory is
limited. To look at one case: `PYTHONPATH=tests python -m support.fuzz SEED INDEX INDEX+1 FOLDER`,
in FOLDER/case.toml.
"""

import json
import os
import subprocess
import sys

import pytest
from support import ROOT, TESTS
from support.pairs import ALL_COMBINATIONS

SEEDS, CASES = (4, 5000) if ALL_COMBINATIONS else (2, 500)
KNOWN = "RLIMIT_DATA counts private mappings on Linux alone"


@pytest.mark.skipif(sys.platform != "linux", reason=KNOWN)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_case_breaks_the_law(seed, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "support.fuzz", str(seed), "0", str(CASES), tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{TESTS}:{ROOT}"},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = (tmp_path / "index").read_text()
    assert done.returncode == 0, f"ended at seed {seed}, case {last}: {done.stderr[-3000:]}"
    *broken, counts = lines
    for each in broken[:3]:
        print(f"seed {seed}, case {each['index']}, --set {each['settings']}:\n{each['what']}")
    assert not broken, f"{len(broken)} of {CASES} cases of seed {seed}"
    assert counts["checked"] == CASES
    assert counts["right"] > CASES / 30, "too few cases are right to reach the plan"

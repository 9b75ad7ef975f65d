"""Run Python scripts on several ranks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpilbm.parallel import launcher

MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
PATIENCE = 120  # s, of ranks that wait for one another forever
LATE = 124  # exit code of `timeout`
with_mpirun = pytest.mark.skipif(MPIRUN is None, reason="no mpirun")


def python(text, ranks, tmp_path, **environment):
    """Run a script on `ranks` ranks and return (exit code, output, errors).

    Fails the test if the ranks do not end.
    """
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run(
        ["timeout", "-k", "5", str(PATIENCE), MPIRUN, "-n", str(ranks), sys.executable, script],
        env=launcher.without_launcher()
        | {"MPILBM_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
        | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode != LATE, f"not ended after {PATIENCE} s\n{done.stdout}\n{done.stderr}"
    return done.returncode, done.stdout, done.stderr

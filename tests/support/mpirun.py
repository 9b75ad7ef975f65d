"""Run Python scripts on several ranks."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpilbm.parallel import launcher

MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
with_mpirun = pytest.mark.skipif(MPIRUN is None, reason="no mpirun")


def python(text, ranks, tmp_path, **environment):
    """Run a script on `ranks` ranks and return (exit code, output, errors, seconds)."""
    script = tmp_path / "script.py"
    script.write_text(text)
    start = time.monotonic()
    done = subprocess.run(
        ["timeout", "-k", "5", "60", MPIRUN, "-n", str(ranks), sys.executable, script],
        env=launcher.without_launcher()
        | {"MPILBM_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
        | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr, time.monotonic() - start

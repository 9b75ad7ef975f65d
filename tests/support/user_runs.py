"""Runs of the command in a separate process, on one or several ranks."""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mpilbm.parallel import launcher
from support.mpirun import MPIRUN

CASE = """
[lattice]
name = "D2Q9"
[domain]
size = [12, 10]
[fluid]
viscosity = 0.05
[[boundary]]
name = "bounce_back"
where = ["x-", "x+", "y-"]
[[boundary]]
name = "bounce_back"
where = ["y+"]
velocity = [0.05, 0]
[run]
steps = 10
[backend]
name = "cpu"
[[output]]
name = "checkpoint"
every = 5
"""
FULL = (
    'body=[{label="plug", shape={name="box", lower=[0, 0], upper=[12, 10]}, '
    'boundary={name="bounce_back"}}]'
)
MOVING = (
    'body=[{label="ball", shape={name="sphere", centre=[6, 7.2], radius=1.9}, '
    'boundary={name="bounce_back", velocity=[0, 0.01]}}]'
)


def assert_reported(code, text, expected, sentence):
    """Assert the exit code, one message that matches `sentence`, and no traceback."""
    lead = "mpilbm: " if expected == 4 else "mpilbm: error: "
    lines = [line for line in text.splitlines() if line.startswith(lead)]
    assert code == expected, text
    assert "Traceback" not in text
    assert len(lines) == 1, text
    assert re.match(lead + sentence, lines[0]), lines[0]


def sets(settings):
    """The options `--set` for one or several settings."""
    settings = [settings] if isinstance(settings, str) else settings
    return [word for setting in settings for word in ("--set", setting)]


def ranks(count, *options, start=("-m", "mpilbm")):
    """Run box.toml on `count` ranks and return (exit code, output)."""
    command = ["timeout", "-k", "5", "60", MPIRUN, "-n", count, sys.executable, *start]
    done = subprocess.run(
        [*map(str, command), "run", "box.toml", *map(str, options)],
        env=launcher.without_launcher() | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


IN_TURN = """
import os, sys
from mpi4py import MPI
from mpilbm.cli import main
for number, options in enumerate({each!r}):
    with open(f"{folder}/{{number}}_{{MPI.COMM_WORLD.rank}}", "w") as file:
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
    sys.argv[1:], code = ["run", "box.toml", *options], None
    try:
        main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush(), sys.stderr.flush()
    os.write(1, f"\\n{{code}}".encode())
    MPI.COMM_WORLD.Barrier()
"""


def in_turn(count, *each):
    """Run box.toml with each list of options, one after the other, by one start of `count` ranks.

    Returns ([exit code of each rank], output of all of them) for each list.
    """
    with TemporaryDirectory() as folder:
        script = IN_TURN.format(each=[[*map(str, one)] for one in each], folder=folder)
        command = ["timeout", "-k", "5", "60", MPIRUN, "-n", str(count), sys.executable, "-c"]
        subprocess.run(
            [*command, script],
            env=launcher.without_launcher() | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        found = [
            [Path(folder, f"{number}_{rank}").read_text().rpartition("\n") for rank in range(count)]
            for number in range(len(each))
        ]
    return [
        ([int(code) for *_, code in ends], "".join(text for text, *_ in ends)) for ends in found
    ]

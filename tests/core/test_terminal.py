"""Whatever happens to standard output and standard error, a run ends as it would without.

More than 20 s: each test is a run in a process of its own.
"""

import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.mpirun import MPIRUN, with_mpirun
from support.user_runs import CASE

from mpilbm.cli import cli
from mpilbm.core.errors import CaseError, MpilbmError, StoppedEarly
from mpilbm.core.machine import terminal
from mpilbm.core.printable import one_line, several_lines
from mpilbm.parallel import launcher

# Each step is a line of the log, and a library in C prints too.
RUN = """
import os, sys
from mpilbm.run import progress
from mpilbm.solver.solver import Solver
original = Solver.step
def step(solver):
    original(solver)
    if solver.steps == 5:
        for number in (1, 2):
            assert os.get_inheritable(number)  # as a compiler needs it
            try:
                os.write(number, b"from C")
            except OSError:
                pass
Solver.step = step
progress.PLAIN_SECONDS = 0
from mpilbm.cli import main
sys.argv[1:] = ["run", "box.toml", "--set", "run.steps=3000"]
main()
"""
EVIL = "[red]a[/red] :smile: \x1b[2J\nmpilbm: error: forged\r\u202e\x9b31m\x00"
SAFE = r"[red]a[/red] :smile: \x1b[2J\nmpilbm: error: forged\r\u202e\x9b31m\x00"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASE.replace("every = 5", "every = 1500").replace(
        "[lattice]",
        f"""
title = {json.dumps(EVIL)}
[lattice]""",
    )
    Path("box.toml").write_text(case)
    return tmp_path


def shell(command, script=RUN, **more):
    """A command of the shell in which {python} runs the script: (exit code, output, errors)."""
    Path("script.py").write_text(script)
    done = subprocess.run(
        ["bash", "-c", command.format(python=f"{sys.executable} script.py", mpirun=MPIRUN)],
        env=launcher.without_launcher() | {"PYTHONPATH": os.pathsep.join(sys.path)} | more,
        capture_output=True,
        text=True,
        timeout=200,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


def is_complete():
    """The run reached its last step and all its files are there."""
    found = json.loads(Path("box.out/summary.json").read_text())
    assert (found["status"], found["exit_code"], found["steps"]) == ("done", 0, 3000)
    assert not any(b"from C" in path.read_bytes() for path in Path("box.out").iterdir())
    names = sorted(path.name for path in Path("box.out").iterdir())
    assert names == ["checkpoint_000001500.h5", "checkpoint_000003000.h5", "summary.json"]


WAYS = {
    "reader ends": "{{ {python}; echo $? >code; }} 2>&1 | head -n 1 >seen; exit $(cat code)",
    "full disk": "{python} >/dev/full 2>/dev/full",
    "closed": "{python} <&- >&- 2>&-",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_reaches_its_last_step(folder, way):
    code, output, errors = shell(WAYS[way])
    assert (code, output, errors) == (0, "", "")
    is_complete()
    if way == "reader ends":
        assert len(Path("seen").read_text().splitlines()) == 1


@with_mpirun
@pytest.mark.parametrize("streams", [">/dev/full 2>/dev/full", "<&- >&- 2>&-"])
def test_two_ranks_reach_their_last_step(folder, streams):
    """Each rank has such streams itself; a launcher that passes them on may end for its own."""
    inner = f"exec {sys.executable} script.py {streams}"
    code, _, errors = shell(f"{{mpirun}} -n 2 bash -c '{inner}'")
    assert code == 0, errors
    is_complete()


def test_an_encoding_without_these_letters_ends_no_run(folder):
    Path("box.toml").rename("bœx.toml")
    script = RUN.replace("box.toml", "bœx.toml")
    code, _, errors = shell("{python}", script, PYTHONIOENCODING="ascii")
    assert code == 0, errors
    assert r"the files are in b\u0153x.out" in errors


def test_a_pipe_that_does_not_block_gets_everything():
    """Launchers make such pipes of their ranks' output."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    stream = terminal._Stream(terminal._Descriptor(writing), "utf-8")
    with ThreadPoolExecutor(1) as pool, open(reading, "rb") as file:
        found = pool.submit(file.read)
        stream.write("x" * 10**6)
        stream.flush()
        os.close(writing)
        assert found.result(timeout=20) == b"x" * 10**6


VERBS = "from mpilbm.cli import main; main()"


@pytest.mark.parametrize("verb", ["list", "check box.toml", "list x"])
def test_other_verbs_end_quietly_when_their_reader_does(folder, verb):
    wanted = 2 if verb == "list x" else 0
    command = f"{{{{ {{python}} {verb}; echo $? >code; }}}} | head -n 1; exit $(cat code)"
    code, output, errors = shell(command, VERBS)
    assert code == wanted
    assert output.count("\n") == (0 if wanted else 1)
    assert ("mpilbm: error: list: unknown kind 'x'" in errors) if wanted else errors == ""


def test_other_verbs_report_output_that_was_lost(folder):
    code, _, errors = shell("{python} list >/dev/full", VERBS)
    assert code == 5
    assert errors == (
        "mpilbm: error: standard output: No space left on device; the output is incomplete: write "
        "it to another place\n"
    )
    assert shell("{python} chek >/dev/full 2>/dev/full", VERBS)[0] == 2


# ------------------------------------------------------------------------------- what is printed


def test_control_characters_become_escapes():
    assert one_line(EVIL) == SAFE
    assert one_line(SAFE) == SAFE
    assert one_line("a\u2028b\u2066c\ud800\U000e0041") == r"a\u2028b\u2066c\ud800\U000e0041"
    assert several_lines("a\tb\nc\rd") == "a\tb\nc\\rd"
    assert one_line("größer 渦 ü…") == "größer 渦 ü…"


def test_long_lines_keep_their_ends():
    line = one_line(f"start {'x' * 10**6} fix")
    assert len(line) == 2000
    assert (line[:5], line[-3:]) == ("start", "fix")
    assert len(one_line("x" * 2000)) == 2000


def test_an_error_is_a_line_a_problem():
    for error in (
        CaseError([f"found {EVIL}", "second"], "title", "a\nb.toml"),
        MpilbmError([f"found {EVIL}", "second"]),
        StoppedEarly(f"by {EVIL}"),
    ):
        assert str(error).count("\n") == len(error.problems) - 1
        assert "\x1b" not in str(error)
        again = pickle.loads(pickle.dumps(error))  # as between ranks
        assert (type(again), str(again)) == (type(error), str(error))


@pytest.mark.parametrize(
    "settings",
    [
        "run.steps={x}",
        "{x}=1",
        "fluid={{label={x}}}",
        "body=[{{mask={x}, boundary={{name='bounce_back'}}}}]",
        "initial={{file={x}}}",
        "lattice.name={x}",
        "backend.compiler={x}",
        "initial.u=[{x}, 0]",
        "body=[{{label='a', shape={{name={x}}}, boundary={{name='bounce_back'}}}}]",
    ],
)
def test_errors_do_not_repeat_control_characters(folder, settings):
    value = settings.format(x=json.dumps(EVIL))
    result = CliRunner().invoke(cli, ["run", "box.toml", "--set", value])
    assert result.exit_code == 2
    assert "mpilbm: error: forged" not in [line[:22] for line in result.output.split("\n")]
    assert not {"\x1b", "\r", "\u202e", "\x9b", "\0"} & set(result.output)


ON_A_TERMINAL = f"{sys.executable} -c 'import pty, sys; pty.spawn(sys.argv[1:])' {{}}"


@pytest.mark.parametrize("streams", ["{}", ON_A_TERMINAL], ids=["pipe", "terminal"])
def test_a_title_is_shown_as_it_is(folder, streams):
    code, output, _ = shell(streams.format("{python} check box.toml"), VERBS)
    assert code == 0
    assert SAFE in output
    assert ("\x1b[1m" in output) is (streams == ON_A_TERMINAL)
    assert "\x1b[2J" not in output


def test_a_run_of_such_a_title_can_be_drawn(folder):
    settings = [
        "--set",
        "output=[{name='snapshot', every=5}]",
        "--set",
        "run.steps=5",
        "--set",
        f"title={json.dumps(EVIL + '$^$')}",
    ]
    assert CliRunner().invoke(cli, ["run", "box.toml", *settings]).exit_code == 0
    result = CliRunner().invoke(cli, ["plot", "box.out"])
    assert result.exit_code == 0, result.output

"""The command: what it prints, and what it says of bad input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.commands import call, refused

from mpilbm.cli import cli
from mpilbm.core import registry
from mpilbm.core.errors import MpilbmError

PYTHON = (sys.executable, "-m", "mpilbm")


# ------------------------------------------------------------------------------------ start


def test_starts_without_the_slow_modules():
    slow = "numpy mpi4py h5py sympy matplotlib pydantic rich"
    code = f"import sys, mpilbm.cli; print([m for m in {slow.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [("list",), ("schema",), ("check", "cavity.toml")])
def test_these_verbs_never_touch_mpi(case, arguments):
    code = "import sys; from mpilbm.cli import cli; cli(sys.argv[1:], standalone_mode=False)\n"
    code = f"import atexit, sys; atexit.register(lambda: print('mpi4py' in sys.modules))\n{code}"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.stdout.rstrip().endswith("False"), done.stderr


def test_module_and_version():
    done = subprocess.run([*PYTHON, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mpilbm, version")


def test_under_mpirun_other_verbs_are_one_process_work(case):
    result = CliRunner(env={"PMI_RANK": "1"}).invoke(cli, ["new", "twice"])
    assert (result.exit_code, result.output) == (0, "")
    assert not Path("twice.toml").exists()


# ------------------------------------------------------------------------------------ verbs


def test_list_prints_every_name():
    result = call("list")
    assert result.exit_code == 0
    for kind in registry.KINDS:
        for name in registry.names(kind):
            assert f"  {name}" in result.output


def test_every_name_has_one_line_and_typed_parameters():
    for kind, entries in json.loads(call("list", "--json").output).items():
        for entry in entries:
            assert entry["summary"], f"{kind} {entry['name']} has no docstring"
            types = [parameter["type"] for parameter in entry["parameters"]]
            assert all(types)
            assert not any("Annotated" in text or " object at " in text for text in types), types


def test_list_of_one_kind():
    assert list(json.loads(call("list", "lattices", "--json").output)) == ["lattices"]


def test_schema_is_json_and_knows_the_names():
    assert "bounce_back" in json.dumps(json.loads(call("schema").output))


@pytest.mark.parametrize("dimensions", ["2", "3"])
def test_new_case_passes_check(tmp_path, monkeypatch, dimensions):
    monkeypatch.chdir(tmp_path)
    assert call("new", "first", "--dimensions", dimensions).exit_code == 0
    result = call("check", "first.toml")
    assert result.exit_code == 0, result.output


def test_source_prints_all_kernels_or_one(case):
    whole = call("source", case)
    assert whole.exit_code == 0
    one = call("source", case, "--kernel", "collide_stream_0")
    assert one.exit_code == 0
    assert one.output.strip() in whole.output
    assert "collide_stream_0(" in one.output
    assert one.output.startswith("/* D2Q9")
    assert "initialise" not in one.output


def test_info_writes_only_what_ranks_measure():
    assert "use mpirun -n 2" in refused("info", "--probe", "--json", "a.json")


def test_info_prints_versions_compiler_and_cache():
    result = call("info")
    assert result.exit_code == 0
    for word in ("mpilbm", "numpy", "h5py", "MPI", "compilers", "cache"):
        assert word in result.output


def test_plugin_registers_names(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from mpilbm.solids.shapes import Shape\n"
        "from mpilbm.core.registry import register\n\n\n"
        "@register('shapes', 'only_in_this_test')\n"
        "class Mine(Shape):\n"
        "    '''A shape.'''\n"
    )
    done = subprocess.run(
        [*PYTHON, "--plugin", plugin, "list", "shapes"], capture_output=True, text=True, check=True
    )
    assert "only_in_this_test" in done.stdout


def test_an_unknown_kind_names_the_nearest():
    words = "list: unknown kind 'boundary'; did you mean 'boundaries'? Kinds: lattices, "
    assert words in refused("list", "boundary")


def test_a_plugin_of_an_unknown_kind_is_refused_with_the_list_of_kinds():
    with pytest.raises(ValueError, match=r"unknown kind 'collision'; did you mean 'collisions'"):
        registry.register("collision", "mine")


# ------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("domain.sise=[1, 1]", ("domain", "sise", "size")),
        ("collision.name='bkg'", ("collision", "'bkg'", "bgk")),
        ("run.steps='many'", ("run.steps", "many")),
        ("domain.size=[0, 10]", ("domain.size", "0")),
        ("fluid.viscosity=-1", ("fluid", "viscosity")),
        ("boundary.1.velocity=[0.9, 0]", ("boundary.1.velocity", "0.9", "0.577")),
        ("initial.u=['sin(q)', 0]", ("initial.u", "q")),
        ("no_equals_sign", ("no_equals_sign",)),
    ],
)
@pytest.mark.parametrize("verb", ["check", "source", "run"])
def test_bad_override(case, verb, override, words):
    output = refused(verb, case, "--set", override)
    for word in words:
        assert word in output


@pytest.mark.parametrize("verb", ["check", "source", "run"])
def test_missing_case(case, verb):
    output = refused(verb, "nowhere.toml")
    assert "mpilbm: error: nowhere.toml" in output
    assert "mpilbm new" in output


def test_more_ranks_than_planes(case):
    output = refused("check", case, "--ranks", "11")
    assert "domain.size" in output
    assert "10 planes" in output


def test_several_problems_are_reported_at_once(case):
    output = refused("check", case, "--set", "run.stepps=1", "--set", "domain.sise=[1, 1]")
    assert output.count("mpilbm: error:") >= 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "collision"), ("'collision'", "did you mean 'collisions'")),
        (("source", "cavity.toml", "--kernel", "colide"), ("'colide'", "collide_stream")),
        (("new", "cavity"), ("cavity.toml", "exists", "another name")),
        (("new", "no/folder"), ("no/folder.toml", "create it first")),
        (("new", "."), ("not a name", "mpilbm new cavity")),
        (("new", "a\nb"), ("not a name", "mpilbm new cavity")),
        (("new", "\udcff"), ("not a name", "mpilbm new cavity")),
        (("plot", "long" * 99), ("no such folder", "folder of a run")),
        (("report", "long" * 99), ("no such folder",)),
        (("check", "cavity.toml", "--gpu-memory", "nan"), ("--gpu-memory", "not a finite number")),
        (("check", "cavity.toml", "--gpu-memory", "inf"), ("--gpu-memory", "not a finite number")),
        (("run", "cavity.toml", "--restart", ""), ("--restart", "no such file", "--restart auto")),
        (("plot", "nowhere.out"), ("nowhere.out", "folder of a run")),
        (("plot", "."), ("contains no results", "output folder")),
        (("--plugin", "nowhere.py", "list"), ("nowhere.py", "FILE.py")),
        (("--plugin", "cavity.toml", "list"), ("cavity.toml", "FILE.py")),
        (("check", "cavity.toml", "--ranks", "0"), ("--ranks", "x>=1")),
        (("chek",), ("No such command", "chek")),
    ],
)
def test_bad_arguments(case, arguments, words):
    output = refused(*arguments)
    for word in words:
        assert word in output


def test_debug_shows_the_traceback(case):
    result = call("--debug", "check", "nowhere.toml")
    assert result.exit_code == 2
    assert "Traceback" in result.output


def test_exit_code_is_that_of_the_error(monkeypatch):
    class FullError(MpilbmError):
        exit_code = 5

    def fail(*_):
        raise FullError(["first line", "second line"])

    monkeypatch.setattr("mpilbm.run.preflight.catalogue.describe", fail)
    result = call("list")
    assert result.exit_code == 5
    assert result.output == "mpilbm: error: first line\nmpilbm: error: second line\n"


def test_a_fault_of_the_program_keeps_its_traceback():
    code = (
        "import mpilbm.run.preflight.catalogue as l, mpilbm.cli as c\n"
        "l.describe = lambda kind: 1 / 0\nc.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "list"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_ctrl_c_is_a_line_and_the_code_of_shells(monkeypatch):
    def interrupt(kind):
        raise KeyboardInterrupt

    monkeypatch.setattr("mpilbm.run.preflight.catalogue.describe", interrupt)
    result = call("list")
    assert (result.exit_code, result.output) == (130, "mpilbm: error: interrupted\n")

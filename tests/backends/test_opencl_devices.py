"""The choice of OpenCL devices, and the message for each reason why there is none."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.commands import CASE
from support.user_runs import assert_reported

from mpilbm.backends.auto import Auto
from mpilbm.backends.gpu import drivers
from mpilbm.backends.opencl import Opencl, OpenclDevice, devices
from mpilbm.core.errors import CaseError

CPU, GPU, EXACT = 2, 4, 128


class Platform:
    """A platform with devices; `broken`: its driver reports none."""

    def __init__(self, name, *found):
        self.name, self._found = name, found
        for device in found:
            device.platform = self

    def get_devices(self):
        if not self._found:
            raise Module.Error("DEVICE_NOT_FOUND")
        return list(self._found)


class Module(SimpleNamespace):
    """What the package uses of pyopencl to find devices."""

    class Error(Exception):
        pass

    device_type = SimpleNamespace(CPU=CPU, GPU=GPU)
    device_fp_config = SimpleNamespace(CORRECTLY_ROUNDED_DIVIDE_SQRT=EXACT)


def device(name, kind=GPU, **more):
    facts = {"single_fp_config": EXACT, "max_work_group_size": 1024,
             "available": True, "compiler_available": True, "global_mem_size": 24 * 10**9,
             "max_mem_alloc_size": 6 * 2**30, "extensions": "cl_khr_fp64 cl_khr_fp16"}  # fmt: skip
    return SimpleNamespace(name=name, type=kind, **(facts | more))


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """`machine(platform, …)`: the OpenCL platforms of this machine, which has a GPU."""
    (tmp_path / "kfd").touch()
    monkeypatch.setattr(devices, "DEV", tmp_path)
    monkeypatch.setattr(drivers, "nvidia", lambda: None)
    find = devices.devices.__wrapped__

    def has(*platforms):
        module = Module(get_platforms=lambda: list(platforms))
        monkeypatch.setattr(devices, "load", lambda: module)
        monkeypatch.setattr(devices, "devices", find)

    return has


@pytest.fixture
def workstation(machine):
    machine(
        Platform("Portable CPU", device("epyc", CPU)),
        Platform("AMD APP", device("gfx90a one"), device("gfx90a two"), device("gfx942")),
        Platform("Intel", device("Arc A770", extensions="cl_khr_fp16")),
    )


def names(found):
    return [each.name for each in found]


def refusal(*choice):
    with pytest.raises(CaseError) as error:
        devices.chosen(*choice)
    assert error.value.exit_code == 2
    assert len(error.value.problems) == 1
    return str(error.value)


@pytest.mark.usefixtures("workstation")
@pytest.mark.parametrize(
    ("platform", "name", "expected"),
    [(None, None, ["gfx90a one", "gfx90a two", "gfx942"]),
     ("portable", None, ["epyc"]), (1, None, ["gfx90a one", "gfx90a two", "gfx942"]),
     (None, "90A", ["gfx90a one", "gfx90a two"]), (None, 2, ["gfx942"]), (None, 4, ["epyc"]),
     ("AMD", "two", ["gfx90a two"])],
)  # fmt: skip
def test_ranks_use_the_devices_that_match(platform, name, expected):
    assert names(devices.chosen(platform, name)) == expected


@pytest.mark.usefixtures("workstation")
@pytest.mark.parametrize(
    ("platform", "name", "words"),
    [("NVIDIA", None, 'backend.platform: found "NVIDIA"; allowed: a number or part of a name: '
      '0 "Portable CPU", 1 "AMD APP", 2 "Intel"'),
     (3, None, "backend.platform: found 3; allowed"),
     (None, 5, 'backend.device: found 5; allowed: a number or part of a name: 0 "gfx90a one"'),
     (None, "H200", 'backend.device: found "H200"; allowed: .* 4 "epyc"'),
     ("Intel", "gfx", "backend.platform: found \"Intel\", which has no device that matches "
      '"gfx"; `mpilbm info` lists the devices'),
     ("Intel", None, "Arc A770: the device has no float64, .*; use another device")],
)  # fmt: skip
def test_a_choice_without_a_device_lists_what_there_is(platform, name, words):
    assert re.search(words, refusal(platform, name))


def test_a_gpu_that_cannot_be_used_is_left_out(machine):
    machine(Platform("Intel", device("Arc A770", extensions="")), Platform("AMD", device("gfx942")))
    assert names(devices.chosen(None, None)) == ["gfx942"]
    assert "no float64" in refusal("Intel", None)


def test_a_driver_that_does_not_answer_is_left_out(machine):
    class Broken(SimpleNamespace):
        @property
        def available(self):
            raise Module.Error("INVALID_VALUE")

    machine(Platform("Old", Broken(name="Mali", type=GPU, extensions="")))
    assert devices.gpus() == ()
    assert "Mali: its driver does not answer: INVALID_VALUE" in refusal(None, None)


def test_other_reasons_against_a_device(machine):
    for change, words in (
        ({"available": False}, "is not available"),
        ({"compiler_available": False}, "its compiler is not available"),
        ({"max_work_group_size": 64}, "work-groups of 64 items at most, needed 256"),
    ):
        machine(Platform("P", device("small", **change)))
        assert words in refusal(None, None)
        assert devices.gpus() == ()


def test_platforms_without_a_device_name_the_permissions(machine):
    machine(Platform("AMD APP"), Platform("rusticl"))
    text = refusal(None, None)
    assert "the OpenCL platforms (AMD APP, rusticl) have no device" in text
    assert "usermod -aG render" in text


@pytest.mark.usefixtures("workstation")
def test_the_lines_of_info():
    lines = devices.listed()
    assert lines[0] == "device 0, platform 1: gfx90a one (AMD APP): GPU, 24 GB, float64, half"
    assert lines[3].endswith("Arc A770 (Intel): GPU, 24 GB, no float64, half, not usable")
    assert lines[4].startswith("device 4, platform 0: epyc (Portable CPU): CPU")


def test_info_reports_inexact_division(machine):
    machine(Platform("P", device("gpu", single_fp_config=0, extensions="")))
    (line,) = devices.listed()
    assert "half for storage only" in line
    assert "division and square root not correctly rounded" in line


# ------------------------------------------------------------------------------------ auto


def test_auto_uses_a_gpu(workstation):
    assert Auto().device_kind() == "opencl"
    assert Auto().resolve() == Opencl()


def test_auto_uses_no_cpu_and_no_gpu_without_float64(machine):
    machine(Platform("P", device("cpu", CPU)), Platform("Q", device("gpu", extensions="")))
    assert Auto().device_kind() == "cpu"


def test_without_files_of_gpus_auto_loads_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "DEV", tmp_path)
    monkeypatch.setattr(devices, "devices", lambda: pytest.fail("loads the drivers"))
    assert devices.gpus() == ()


# ------------------------------------------------------------------------------------ the command

BLOCKED = "import sys\nsys.modules['pyopencl'] = None\nfrom mpilbm.cli import main\nmain()"
PLAIN = "from mpilbm.cli import main\nmain()"


def command(text, *words, **environment):
    """(exit code, output, errors) of the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", text, *words], capture_output=True, text=True,
        env=os.environ | environment,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def box(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("box.toml").write_text(CASE)
    return ("run", "box.toml", "--set", "backend.name='opencl'")


def test_without_pyopencl_the_message_is_a_pip_command(box):
    code, out, errors = command(BLOCKED, *box)
    sentence = r"backend.name: pyopencl is not installed: pip install 'mpilbm\[opencl\]'"
    assert_reported(code, out + errors, 2, sentence)


def test_without_pyopencl_auto_prints_nothing_of_it(box):
    code, out, errors = command(BLOCKED, "run", "box.toml")
    assert code == 0, errors
    assert "opencl" not in (out + errors).lower()


def test_without_a_driver_the_message_names_one(box, tmp_path):
    pytest.importorskip("pyopencl")
    code, out, errors = command(PLAIN, *box, OCL_ICD_VENDORS=str(tmp_path / "nothing"))
    assert_reported(code, out + errors, 2, r"backend.name: no OpenCL platform .*; for a CPU: pip")


def test_a_plan_needs_no_driver(box, tmp_path):
    words = ("check", *box[1:])
    code, out, errors = command(PLAIN, *words, OCL_ICD_VENDORS=str(tmp_path / "nothing"))
    assert code == 0, errors
    assert "it would run" in out


# ------------------------------------------------------------------------------------ memory


def test_an_array_that_the_driver_refuses_is_one_line():
    """`allocate` of a driver that has memory, but no array of this size."""

    def refuse(*arguments):
        raise Module.Error("INVALID_BUFFER_SIZE")

    one = object.__new__(OpenclDevice)
    one.device, one.name, one._context = device("gfx"), "gfx (OpenCL)", None
    one.cl = Module(Buffer=refuse, mem_flags=SimpleNamespace(READ_WRITE=1))
    with pytest.raises(CaseError) as error:
        one.allocate(2**33, "u1")
    assert error.value.exit_code == 2
    (text,) = error.value.problems
    assert text.startswith("domain.size: gfx (OpenCL) cannot allocate an array of 8 GiB (INVALID")
    assert "arrays of 6 GiB at most; choose a smaller domain.size" in text

"""`mpilbm info`: the OpenCL devices, or why there are none; drivers that crash or hang."""

import shutil
import subprocess
import sys

import pytest

from mpilbm.run.preflight import devices

CRASH = "*(volatile int *)0 = 1;"
HANG = "for (;;) sleep(1);"


@pytest.fixture
def vendors(tmp_path, monkeypatch):
    """`vendors(text)`: the only OpenCL driver executes this text in C when it is loaded."""
    pytest.importorskip("pyopencl")

    def only(text):
        (tmp_path / "driver.c").write_text(
            f"#include <unistd.h>\n__attribute__((constructor)) void f(void) {{ {text} }}\n"
        )
        library = tmp_path / "libdriver.so"
        subprocess.run(
            [shutil.which("cc"), "-shared", "-fPIC", "-o", library, tmp_path / "driver.c"],
            check=True,
        )
        (tmp_path / "driver.icd").write_text(f"{library}\n")

    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    return only


def test_the_devices_are_listed_with_their_numbers():
    cl = pytest.importorskip("pyopencl")
    try:
        count = sum(len(platform.get_devices()) for platform in cl.get_platforms())
    except cl.Error:
        pytest.skip("no OpenCL platform")
    found = devices.opencl()
    assert len(found) == count
    for number, fact in enumerate(found):
        assert fact.name == "opencl"
        assert fact.value.startswith(f"device {number}, platform ")
        assert " GB, float64, half" in fact.value or "no float64" in fact.value
        assert not fact.fix


def test_without_pyopencl_the_fix_is_a_pip_command(monkeypatch):
    monkeypatch.setattr(devices, "version", lambda name: None)
    monkeypatch.setattr(devices, "ask", lambda question: pytest.fail("starts a child process"))
    (fact,) = devices.opencl()
    assert fact.value == "pyopencl is not installed"
    assert fact.fix == "pip install 'mpilbm[opencl]'"


def test_without_a_driver_the_fix_names_one(tmp_path, monkeypatch):
    pytest.importorskip("pyopencl")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "nothing"))
    (fact,) = devices.opencl()
    assert fact.value == "no OpenCL platform was found"
    assert "install the OpenCL driver (ICD)" in fact.fix
    assert "pip install pocl-binary-distribution" in fact.fix


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("text", "seconds", "words"),
    [(CRASH, 30, "it crashed (SIGSEGV)"), (HANG, 3, "no answer within 3 s")],
)
def test_a_broken_driver_is_reported(vendors, monkeypatch, text, seconds, words):
    vendors(text)
    monkeypatch.setattr(devices, "SECONDS", seconds)
    (fact,) = devices.opencl()
    assert fact.value == f"cannot be used: {words}"
    assert "OCL_ICD_VENDORS=FOLDER" in fact.fix


def test_lines_of_a_driver_are_no_devices(monkeypatch):
    lines = ["hello", "opencl:gpu", "driver: 3 warnings", "opencl:device 0, platform 0: X"]
    monkeypatch.setattr(devices, "version", lambda name: "1")
    monkeypatch.setattr(devices, "ask", lambda question: (lines, ""))
    assert [fact.value for fact in devices.opencl()] == ["device 0, platform 0: X"]


@pytest.mark.parametrize(
    ("usable", "kind", "layout"),
    [
        (False, "cpu", "aa on cpu"),
        (False, "opencl", "ab on opencl"),
        (True, "cuda", "ab on cuda"),
        (True, "cuda True", "ab on cuda: the fastest on GPUs; moments on cuda"),
        (False, "cuda", None),
    ],
)
def test_the_layout_is_that_of_the_device_of_auto(monkeypatch, usable, kind, layout):
    monkeypatch.setattr(devices, "cupy_gpus", lambda probe: ([], usable))
    monkeypatch.setattr(devices, "opencl", list)
    monkeypatch.setattr(devices, "ask", lambda question: ([kind], ""))
    found = [fact.value for fact in devices.devices(False) if fact.name == "layout auto"]
    assert [value.rpartition(":")[0] for value in found] == ([layout] if layout else [])


def test_info_does_not_load_a_driver_itself():
    text = (
        "import sys\nfrom mpilbm.run.preflight.devices import devices\n"
        "devices(False)\n"
        "print('pyopencl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

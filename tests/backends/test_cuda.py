"""Choice of a device by all ranks, and what can be known of CUDA without a GPU."""

import contextlib
import sys
import types

import numpy as np
import pytest

from mpilbm import backends
from mpilbm.backends import cuda
from mpilbm.backends.cpu import Cpu
from mpilbm.backends.cuda.launch import CudaKernel
from mpilbm.backends.gpu import drivers
from mpilbm.backends.gpu import launch as launch_shapes
from mpilbm.backends.units import Units
from mpilbm.codegen.program import Argument, Kernel, Program
from mpilbm.core import registry
from mpilbm.core.errors import CaseError
from mpilbm.run.preflight import devices as installed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))


def test_ranks_agree():
    backends.require_alike(["cpu", "cpu", "cpu"])
    with pytest.raises(CaseError, match="cpu on ranks 0, 2; cuda on rank 1"):
        backends.require_alike(["cpu", "cuda", "cpu"])


def test_shared_devices():
    assert backends.shared_devices(["", "", "a", "b"]) == []
    (words,) = backends.shared_devices(["node GPU-1", "node GPU-2", "node GPU-1"])
    assert words.startswith("ranks 0, 2 share one device (node GPU-1)")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("cells", 512, 512, 1, 513), ((2, 512, 512), (256, 1, 1))),
        (("cells", 100, 100, 0, 10), ((1, 50, 10), (128, 2, 1))),
        (("cells", 12, 4, 1, 6, 4), ((1, 1, 2), (16, 4, 1))),
        (("cells", 8, 200, 0, 7), ((1, 7, 7), (8, 32, 1))),
        (("cells", 300, 1, 0, 7), ((2, 1, 7), (256, 1, 1))),
        (("pairs", 512, 512, 1, 513), ((1, 512, 512), (256, 1, 1))),
        (("pairs", 512, 512, 1, 513, 1, 128), ((2, 512, 512), (128, 1, 1))),
        (("pairs", 67, 9, 1, 5, 2, 128), ((1, 5, 2), (64, 2, 1))),
        (("pairs", 1, 1, 0, 7), ((1, 1, 7), (1, 1, 1))),
        (("rows", 512, 41, 2, 5), ((11, 3), (128,))),
        (("entries", 0, 0, 5, 262), ((2,), (256,))),
    ],
)
def test_launch_shape(arguments, expected):
    assert launch_shapes.launch_shape(*arguments) == expected


def test_long_ranges_are_launched_in_pieces():
    assert launch_shapes.pieces("cells", 3, 3) == []
    assert launch_shapes.pieces("cells", 0, 65535) == [(0, 65535)]
    assert launch_shapes.pieces("rows", 1, 65540) == [(1, 65536), (65536, 65540)]
    assert launch_shapes.pieces("entries", 0, 10**6) == [(0, 10**6)]
    for first, last in launch_shapes.pieces("cells", 0, 10**6, 3):
        assert first % 3 == 0
        assert launch_shapes.launch_shape("cells", 5, 4, first, last, 3)[0][2] <= 65535


def test_cuda_launch_numbers():
    calls = []
    arguments = (("f", "store*"), ("nx", "int"), ("rows", "int"), ("omega", "real"))
    kernel = Kernel("collide", "cells", tuple(Argument(*argument) for argument in arguments))
    program = Program("", {}, {"collide": kernel}, compute="float64", storage="float32")
    stream = types.SimpleNamespace(cupy=contextlib.nullcontext())
    f = np.zeros(12, np.float32)
    module = types.SimpleNamespace(get_function=lambda name: lambda *call: calls.append(call))
    launch = CudaKernel(None, Units(program, lambda kernels: module), kernel, program).bind(
        f=f, nx=40, rows=9, omega=1
    )
    launch(stream, 1, 5, 2)
    launch(stream, 5, 5)
    ((grid, block, values),) = calls
    assert (grid, block) == ((1, 3, 2), (64, 4, 1))
    assert values[3] is f
    assert values[:3] + values[4:] == (1, 5, 2, 40, 9, 1)
    types_of_numbers = [type(value) for value in values[:3] + values[4:]]
    assert types_of_numbers == [np.int64] * 3 + [np.int32] * 2 + [np.float64]


def auto():
    return registry.make("backends", "auto").resolve()


@pytest.mark.parametrize(("sizes", "most"), [([], None), ([None], None), ([5, 9, None], 9)])
def test_the_memory_of_the_largest_device(sizes, most):
    def get(device, index):
        device._obj.value = index

    def total(found, device):
        size = sizes[device.value]
        found._obj.value = size or 0
        return int(size is None)

    assert drivers.largest(get, total, len(sizes)) == most


def test_auto_without_a_driver(monkeypatch):
    monkeypatch.setattr(drivers, "nvidia", lambda: None)
    assert auto() == Cpu()
    with pytest.raises(CaseError, match=r'no NVIDIA device.*"cpu" or "auto"'):
        cuda.Cuda().open()


@pytest.mark.parametrize(
    ("version", "words"), [(12, r"\[cuda12\]"), (13, r"\[cuda13\]"), (11, "update the")]
)
def test_a_driver_without_cupy_is_an_error(monkeypatch, version, words):
    monkeypatch.setattr(drivers, "nvidia", lambda: drivers.Driver(2, version))
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(CaseError, match=rf"2 NVIDIA devices.*CuPy or NVRTC.*{words}"):
        auto()


def test_a_broken_driver_is_an_error(monkeypatch):
    monkeypatch.setattr(drivers, "nvidia", lambda: drivers.Driver(problem="no libcuda.so.1"))
    with pytest.raises(CaseError, match=r"no libcuda\.so\.1.*container"):
        auto()


class Library:
    """The driver's library on a machine with GPUs of compute capability 9.0 and 8.6."""

    def __getattr__(self, name):
        def call(*arguments):
            numbers = [getattr(each, "_obj", each) for each in arguments]  # of ctypes.byref
            if name == "cuDeviceGet":
                numbers[0].value = numbers[1]
            elif name == "cuDeviceGetCount":
                numbers[0].value = 2
            elif name == "cuDeviceGetAttribute":
                digits = {75: (9, 8), 76: (0, 6)}[numbers[1]]
                numbers[0].value = digits[numbers[2].value]
            return 0

        return call


def test_the_driver_reports_the_lowest_compute_capability(monkeypatch):
    monkeypatch.setattr(drivers.ctypes, "CDLL", lambda name: Library())
    found = drivers.nvidia()
    assert (found.devices, found.capability) == (2, 86)
    assert cuda.Cuda().sweeps()
    assert not cuda.Cuda(fused=False).sweeps()


def test_auto_with_cupy_but_without_nvrtc(monkeypatch):
    def fail():
        raise RuntimeError("libnvrtc.so.12 not found")

    fake = types.ModuleType("cupy")
    fake.cuda = types.SimpleNamespace(
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 1),
        nvrtc=types.SimpleNamespace(getVersion=lambda: (12, 4)),
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(drivers, "nvidia", lambda: drivers.Driver(1, 12))
    assert auto() == cuda.Cuda()
    fake.cuda.nvrtc.getVersion = fail
    with pytest.raises(CaseError, match=r"libnvrtc\.so\.12 not found.*mpilbm\[cuda12\]"):
        auto()
    fake.cuda.nvrtc.getVersion = lambda: (12, 4)
    with pytest.raises(CaseError, match="found 3, allowed 0 to 0"):
        cuda.Cuda(device=3).open()


def test_rows_that_no_grid_holds():
    device = object.__new__(cuda.CudaDevice)
    assert device.problems((10, 65535, 500)) == []
    assert device.problems((10, 65536, 100)) == []
    (words,) = device.problems((10, 65536, 500))
    assert "65536 rows" in words


def test_info_reports_gpus_that_are_not_visible(tmp_path, monkeypatch):
    for name in ("0000:18:00.0", "0000:2a:00.0"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(installed, "NODE_GPUS", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = installed.visible("1 devices, driver for CUDA 13", 1)
    assert found.value.endswith("CUDA 13 (2 GPUs on this node, CUDA_VISIBLE_DEVICES=1)")
    assert "--gpu-bind=none" in found.fix
    assert installed.visible("2 devices, driver for CUDA 13", 2).fix == ""
    monkeypatch.setattr(installed, "NODE_GPUS", tmp_path / "missing")
    assert installed.visible("1 devices", 1).value == "1 devices"


def test_names():
    assert {"auto", "cpu", "cuda"} <= set(registry.names("backends"))
    assert registry.make("backends", {"name": "cuda", "fused": False}).name == "cuda"

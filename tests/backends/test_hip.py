"""AMD GPUs as far as no GPU is needed: the device with a simulated CuPy."""

import contextlib
import sys
import types

import pytest
from support.settings import tables

from mpilbm import codegen
from mpilbm.backends import cuda
from mpilbm.backends.cuda.sweep import SweepKernel
from mpilbm.backends.gpu import drivers
from mpilbm.backends.gpu.drivers import AMD, Driver
from mpilbm.backends.opencl import devices
from mpilbm.case.case import parse_case
from mpilbm.core import registry
from mpilbm.core.errors import CaseError
from mpilbm.run.preflight import devices as inspected

FUSED = (*AMD.options, "-DFUSED")


def program_of(case):
    return codegen.generate(parse_case(case, "test.toml"))


class Runtime:
    """The names of cupy.cuda.runtime on a machine with two AMD GPUs."""

    is_hip = True

    def getDeviceCount(self):  # noqa: N802
        return 2

    def getDeviceProperties(self, index):  # noqa: N802
        return {"name": b"AMD Instinct MI210", "gcnArchName": b"gfx90a:sramecc+:xnack-",
                "multiProcessorCount": 104, "totalGlobalMem": 64e9}  # fmt: skip

    def deviceGetPCIBusId(self, index):  # noqa: N802
        return f"0000:{index}c:00.0"

    def driverGetVersion(self):  # noqa: N802
        return 7_00_51831


class Module:
    """Replaces `cupy.RawModule`; keeps what it receives."""

    def __init__(self, code, backend, options):
        Module.received = backend, options

    def compile(self):
        pass

    def get_function(self, name):
        return name


def simulated_cupy():
    cupy, device = types.ModuleType("cupy"), contextlib.nullcontext()
    device.use, device.mem_info = (lambda: None), (60 << 30, 64 << 30)
    cupy.__version__, cupy.RawModule = "14.2.0", Module
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_bytes=lambda: 0)
    cupy.cuda = types.SimpleNamespace(
        runtime=Runtime(),
        nvrtc=types.SimpleNamespace(getVersion=lambda: (7, 0)),
        compiler=types.SimpleNamespace(CompileException=RuntimeError),
        Device=lambda index=0: device,
        Stream=lambda non_blocking, priority: types.SimpleNamespace(ptr=0),
    )
    return cupy


@pytest.fixture
def machine(monkeypatch):
    """`machine(cupy)`: one with AMD GPUs, and with a CuPy or with none."""
    monkeypatch.setattr(drivers, "nvidia", lambda: None)
    monkeypatch.setattr(drivers, "amd", lambda: Driver(2, 7, vendor=AMD))

    def this(cupy):
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setattr("mpilbm.backends.auto.find_spec", lambda name: cupy)

    return this


def test_auto_opens_an_amd_gpu(machine):
    machine(simulated_cupy())
    device = registry.make("backends", "auto").resolve().open(local_rank=3)
    assert (device.kind, device.index, device.records) == ("cuda", 1, False)
    assert device.name == "AMD Instinct MI210 (gfx90a)"
    assert device.identity.endswith(" 0000:1c:00.0")
    assert "driver for HIP 7, CuPy 14.2.0, HIPRTC 7.0" in device.description


def test_the_general_kernel_replaces_the_sweep(machine):
    machine(simulated_cupy())
    device = cuda.Cuda().open()
    plain = device.compile(program_of(tables("D2Q9", "ab", "bgk", "periodic", "single")))
    assert (Module.received, device.warning) == (("nvrtc", FUSED), "")
    choice = {"lattice": "D3Q27", "layout": "moments", "collision": "regularized"}
    program = program_of(tables(**choice, setting="through", precision="mixed_moments"))
    kernels = device.compile(program)
    assert program.sweep
    assert not isinstance(kernels["collide_stream_0"], SweepKernel)
    assert type(kernels["collide_stream_0"]) is type(plain["collide_stream_0"])
    assert "the sweep requires an NVIDIA GPU" in device.warning
    assert device.two_steps(kernels, None) is None


def test_cuda_ipc_is_refused(machine):
    machine(simulated_cupy())
    ranks = types.SimpleNamespace(size=2)
    with pytest.raises(CaseError, match=r"'cuda_ipc' sends by .* found AMD GPUs; use 'auto'"):
        registry.make("halo", "cuda_ipc").open(None, ranks, cuda.Cuda().open())


def test_auto_without_cupy(machine, monkeypatch):
    """By OpenCL if there is a driver; else the message names the package."""
    machine(None)
    monkeypatch.setattr(devices, "gpus", lambda: ("a GPU",))
    assert registry.make("backends", "auto").resolve().name == "opencl"
    monkeypatch.setattr(devices, "gpus", lambda: ())
    assert registry.make("backends", "auto").device_kind() == "cuda"
    with pytest.raises(CaseError, match=r"2 AMD devices.*HIP 7.*HIPRTC.*mpilbm\[rocm\]"):
        registry.make("backends", "auto").resolve()


def test_info_shows_an_amd_gpu(machine, monkeypatch, capsys):
    machine(simulated_cupy())

    def ask(question):
        exec(question, {})
        return capsys.readouterr().out.split("\n")[:-1], ""

    monkeypatch.setattr(inspected, "ask", ask)
    monkeypatch.setattr(inspected, "device_memory", lambda probe: inspected.processor())
    facts = {fact.name: fact.value for fact in inspected.devices(probe=False)}
    assert facts["amd"] == "2 devices, driver for HIP 7"
    assert "1: AMD Instinct MI210, 64 GB; HIPRTC 7.0" in facts["cupy"]


class Library:
    """libamdhip64 with so many devices of 64 and 128 GiB."""

    def __init__(self, devices):
        self._devices = devices

    def hipInit(self, flags):  # noqa: N802
        return 0

    def hipGetDeviceCount(self, count):  # noqa: N802
        count._obj.value = self._devices
        return 0

    def hipDriverGetVersion(self, version):  # noqa: N802
        version._obj.value = 60_342_134

    def hipDeviceGet(self, device, index):  # noqa: N802
        device._obj.value = index

    def hipDeviceTotalMem(self, size, device):  # noqa: N802
        size._obj.value = (device.value + 1) << 36
        return 0


@pytest.mark.parametrize(
    ("library", "found"),
    [(None, None), (Library(0), None), (Library(2), Driver(2, 6, memory=2 << 36, vendor=AMD))],
)
def test_the_driver(monkeypatch, library, found):
    monkeypatch.setattr(drivers, "_hip", lambda: library)
    assert drivers.amd() == found

"""The CUDA text compiled for AMD GPUs, without one.

More than 20 s: HIPRTC takes two seconds for a text. Runs as a part of .ci/run alone.
"""

import os

import pytest
from support import hip_compilers as hip
from support import scalars
from support.body_forces import rotor
from support.coupled import two_fluids
from support.free_energy import waves
from support.pairs import every_value, label
from support.sampled_flows import with_statistics
from support.settings import OPTIONS, defined, tables

from mpilbm import codegen
from mpilbm.backends.gpu.drivers import AMD
from mpilbm.case.case import parse_case

pytestmark = pytest.mark.skipif(
    not os.environ.get("MPILBM_TEST_HIP"), reason="runs in .ci/run, which installs the compilers"
)
CASES = {label(choice): tables(**choice) for choice in every_value(OPTIONS, defined, pairs=())}
QUICK = tables("D2Q9", "ab", "entropic", "periodic", "single")
QUICK["precision"] = QUICK["precision"] | {"intrinsics": True}
MORE = {
    "quick quotients": QUICK,
    "statistics": with_statistics(tables("D3Q19", "esopull", "trt", "walls", "half")),
    "forces on bodies": rotor("aa", "interpolated"),
    "scalars": scalars.flow("D2Q9", "aa", "single", **scalars.setting("body", 2)),
    "two fluids": two_fluids("D2Q9"),
    "free energy": waves("D2Q9"),
}
FUSED = (*AMD.options, "-DFUSED")


def program_of(case):
    return codegen.generate(parse_case(case, "test.toml"))


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_texts_compile_at_run_time(name):
    """As CuPy compiles them, with the backend's options."""
    hip.require(hip.runtime_compiler(), "HIPRTC")
    text = program_of((CASES | MORE)[name]).text
    size, messages = hip.compiled_at_run_time(text, "--offload-arch=gfx90a", *FUSED)
    assert size, messages[:2000]
    assert messages.strip() == ""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("name", list(CASES)[:3])
def test_kernels_keep_populations_in_registers(name, target):
    words = hip.command(target)
    hip.require(words, f"hipcc or Clang for {target}")
    program = program_of(CASES[name])
    done = hip.compiled((*words, *FUSED, hip.REPORT), program.text)
    assert done.returncode == 0, done.stderr[:2000]
    found = hip.scratch(done.stderr)
    assert found.keys() == program.kernels.keys()
    assert {kernel: size for kernel, size in found.items() if size} == {}

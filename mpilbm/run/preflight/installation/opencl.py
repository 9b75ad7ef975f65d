"""The OpenCL devices in `mpilbm info`, or the reason why there are none."""

from mpilbm.run.preflight.installation.facts import Fact, ask, version

MARK = "opencl:"  # begins the lines of the answer; drivers may print, too
QUESTION = f"""
from mpilbm.backends.opencl import devices
from mpilbm.core.errors import CaseError
try:
    lines = ["", *devices.listed()]
except CaseError as error:
    lines = ["problem", str(error).removeprefix("backend.name: ")]
for line in lines:
    print({MARK!r} + line)
"""
CRASHED = (
    "a driver may be broken: OCL_ICD_VENDORS=FOLDER uses only the drivers (*.icd) in a folder "
    'instead of those in /etc/OpenCL/vendors; or set name = "cpu"'
)


def opencl() -> list[Fact]:
    """A line for each OpenCL device, with the numbers that `[backend]` uses."""
    if version("pyopencl") is None:
        return [_fact("pyopencl is not installed", "pip install 'mpilbm[opencl]'")]
    answer, problem = ask(QUESTION)
    lines = [line.removeprefix(MARK) for line in answer if line.startswith(MARK)]
    if not lines:
        return [_fact(f"cannot be used: {problem or 'no answer'}", CRASHED)]
    kind, *lines = lines
    if kind == "problem":
        what, _, fix = lines[0].partition(": ")
        return [_fact(what, fix)]
    return [_fact(line) for line in lines]


def _fact(value: str, fix: str = "") -> Fact:
    return Fact("devices", "opencl", value, fix)

"""Initial fields evaluated by a kernel: the same bits as NumPy's, and the same messages."""

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.settings import SETTINGS
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.codegen.initial_values import Tables
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.parser import FUNCTIONS, Formula
from mpilbm.core.registry import names
from mpilbm.solver import initialise

SIZE = {"x": 5, "y": 4, "z": 13}
EVERY = (  # all functions, and all operations between coordinates
    "0.01*(sin(x) + cos(y)*tan(z/29) - exp(-x*y/nx)/z + log(x + z)**3 - sqrt(x*y*z)/9)",
    "0.01*(where(x < y, abs(x - z), -y) + min(x, y, z)*max(y/ny, z/nz) + (x - y)**2/nx**2)",
    "0.01*(tanh(x + y) + where(1 <= x < y, (x*z)**-1, 2) + where(x*y == z, x, y) + x**0*z**-2)",
)


@pytest.fixture
def small(monkeypatch):
    """Boxes of all sizes use the kernel."""
    monkeypatch.setattr(initialise, "KERNEL_CELLS", 0)


@pytest.mark.parametrize("device", [None, EmulatedDevice], ids=["C", "CUDA"])
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q13"])
def test_the_kernel_computes_the_bits_of_numpy(lattice, device, monkeypatch):
    """On one slab and on three; all functions occur."""
    assert all(f"{name}(" in "".join(EVERY) for name in FUNCTIONS)
    if device and not command():
        pytest.skip("no C++ compiler")
    u = list(EVERY) if lattice != "D2Q9" else ["0.01*sin(x)*cos(y)", "0.01*min(x/y, y, 3)**2"]
    initial = {"rho": "1 + 0.1*sin(x)*cos(y)", "u": u}
    more = {"collision": {"name": "mrt"}} if lattice == "D3Q13" else {}
    tables = box(lattice, initial=initial, precision=PRECISIONS["double"], **more)
    expected = Cluster(tables, 1, device).start().state()
    monkeypatch.setattr(initialise, "KERNEL_CELLS", 0)
    used = []
    planes = initialise.KernelValues.planes
    monkeypatch.setattr(
        initialise.KernelValues, "planes", lambda *given: used.append(0) or planes(*given)
    )
    for slabs in (1, 3):
        assert np.array_equal(Cluster(tables, slabs, device).start().state(), expected)
    assert used


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("layout", names("layouts"))
def test_layouts_begin_alike(layout, monkeypatch):
    """With solids, and with a velocity that is held for a few steps."""
    tables = box("D3Q19", **SETTINGS["forced"]("D3Q19"), layout={"name": layout})
    if layout == "moments":
        tables["collision"] = {"name": "regularized"}
    else:
        tables["initial"] |= {"iterate": 2}
    found = Cluster(tables, 2).start().state()
    monkeypatch.setattr(initialise, "KERNEL_CELLS", 2**62)
    assert np.array_equal(Cluster(tables, 2).start().state(), found)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("initial", "sentence"),
    [
        ({"rho": "1/(x*y - 2.25)"}, "initial.rho: inf in cell x=4, y=0, z=0 .* is not finite"),
        ({"rho": "1 + x*z/9 - y*z"}, "initial.rho: -.* in cell .* allowed: from 1e-30"),
        ({"u": ["sqrt(9 - y*x)", 0, 0]}, "initial.u.0: nan in cell .* is not finite"),
        ({"u": [0, "x*z/9", 0]}, "initial.u: .* in cell .* allowed: below 0.57"),
    ],
)
def test_a_wrong_value_is_refused(initial, sentence):
    tables = box("D3Q19", initial={"u": [0, 0, 0]} | initial)
    with pytest.raises(CaseError, match=sentence):
        Cluster(tables, 2).start()


def test_what_numpy_alone_computes():
    """An inexact function of all coordinates, or a table that would be large."""
    tables = Tables(SIZE)
    assert tables.divided(Formula("tanh(x + y*z)").tree) is None
    assert tables.divided(Formula("1 + (x + y + z)**3").tree) is None
    assert tables.divided(Formula("sqrt(x + y*z)**2").tree) is not None
    assert Tables(SIZE | {"x": 10**4, "y": 10**4}).divided(Formula("exp(x*y)").tree) is None

"""Storage in 16 bits: what a Taylor-Green vortex loses against storage in 64."""

import numpy as np
import pytest
from slabs import PRECISIONS, Cluster, box

from mpilbm.errors import CaseError

U = ["0.05*sin(2*pi*x/nx)*cos(2*pi*y/ny)*cos(2*pi*z/nz)",
     "-0.05*cos(2*pi*x/nx)*sin(2*pi*y/ny)*cos(2*pi*z/nz)", 0]  # fmt: skip


def test_half_precision_keeps_a_vortex():
    found = {}
    for precision in ("half", "double"):
        case = box("D3Q19", size=[16, 16, 16], precision=PRECISIONS[precision])
        case |= {"initial": {"rho": 1.0, "u": U}, "layout": {"name": "aa"}}
        found[precision] = Cluster(case).start().run(200).fields("rho", "u")
    half, double = found["half"], found["double"]
    error = np.linalg.norm(half["u"] - double["u"]) / np.linalg.norm(double["u"])
    assert 1e-6 < error < 2e-3
    assert np.abs(half["rho"] - double["rho"]).mean() < 1e-5


def test_it_needs_deviations_and_float32():
    with pytest.raises(CaseError, match="float16"):
        Cluster(box("D2Q9", precision=PRECISIONS["half"] | {"offset": False}))

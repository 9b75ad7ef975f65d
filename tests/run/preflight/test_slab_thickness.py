"""Slabs of too few planes: compared with measured efficiencies and with the model of a step."""

import json
from pathlib import Path

import pytest
from support.commands import call
from support.settings import tables
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight import slabs
from mpilbm.run.preflight.rank_memory import halo_bytes
from mpilbm.run.preflight.slabs import (
    COPY,
    NETWORK,
    NVLINK,
    OVERHEAD,
    Model,
    least_planes,
    thin_slabs,
    update_bytes,
)

MEASURED = Path(__file__).parents[3] / "tools/measured/scaling"
AB, MOMENTS = (152, 20), (80, 40)  # bytes of an update, and of a cell of a face: D3Q19, float32


def thinnest(side, kind, link):
    update, sent = kind
    return least_planes(side**2, update, side**2 * sent, link)


def test_measured_boxes_are_judged_as_they_scaled():
    """Four GPUs: 384^3 and 192^3 reached 95 % or more, 128^3 and 64^3 less than 60 %."""
    file = MEASURED / "h200_4gpus_strong_cuda_ipc.json"
    for row in json.loads(file.read_text())["rows"]:
        if row["ranks"] == 4:
            side, adequate = row["size"][0], row["size"][0] > 150
            assert (side // 4 >= thinnest(side, AB, NVLINK)) is adequate


@pytest.mark.parametrize("kind", [AB, MOMENTS])
@pytest.mark.parametrize("link", [NVLINK, NETWORK])
def test_thinner_slabs_wait_in_the_model(kind, link):
    """A slab of one plane less takes longer than its traffic."""
    side, (update, sent) = 512, kind
    least = thinnest(side, kind, link)
    for planes, waits in ((least, False), (least - 1, True)):
        model = Model(
            weak=True,
            planes=planes,
            plane_cells=side**2,
            plane_fluid=side**2,
            bytes_per_update=update,
            copy=COPY,
            overhead=OVERHEAD,
            latency=slabs.LATENCY,
            face_bytes=link.faces * sent * side**2,
            bandwidth=link.bandwidth,
        )
        assert (model.seconds(2) > model.seconds(1) * (1 + 1e-9)) is waits


@pytest.mark.parametrize("layout", ["ab", "aa", "moments", "indirect"])
@pytest.mark.parametrize("precision", ["single", "half"])
def test_the_bytes_of_an_update_are_those_of_the_kernel(layout, precision):
    """Except for tables of neighbours."""
    collision = "trt" if layout != "moments" else "regularized"
    found = tables("D2Q9", layout, collision, "periodic", precision)
    solver = Cluster(found).solvers[0]
    neighbour_tables = solver.bytes_per_update - update_bytes(solver.case)
    assert neighbour_tables > 0 if layout == "indirect" else neighbour_tables == 0


def test_large_boxes_need_the_planes_of_the_manual():
    assert [thinnest(2048, *each) for each in ((AB, NVLINK), (AB, NETWORK))] == [6, 14]
    assert [thinnest(2048, *each) for each in ((MOMENTS, NVLINK), (MOMENTS, NETWORK))] == [15, 45]


def test_check_warns_of_thin_slabs_on_gpus_only(case):
    thin = "--ranks", "3", "--gpu-memory", "1"
    output = " ".join(call("check", case, *thin).output.split())
    assert "warning: ranks: slabs of 4 planes are thin" in output
    assert "use at most 1 GPU, or" in output
    assert "are thin" not in call("check", case, "--gpu-memory", "1").output
    assert "are thin" not in call("check", case, *thin, "--set", "backend.name='cpu'").output


@pytest.mark.parametrize("ranks", [8, 16])
def test_the_advice_includes_the_gpus_of_one_node(ranks):
    """256^3 with moments: 3 GPUs over the network, but 7 with NVLink."""
    text = tables("D3Q19", "moments", "regularized", "periodic", "single")
    text |= {"domain": {"size": [256] * 3, "periodic": [True] * 3}, "backend": {"name": "cuda"}}
    case = parse_case(text, "test.toml")
    slabs = split((256,) * 3, ranks, True)
    (found,) = thin_slabs(case, slabs, halo_bytes(case, slabs[1])[0], None)
    assert "use at most 7 GPUs, or" in found.message


def test_opencl_sends_through_the_host():
    """512^3 with ab on 8 ranks: adequate with NVLink, but not through host memory."""
    text = tables("D3Q19", "ab", "trt", "periodic", "single")
    text |= {"domain": {"size": [512] * 3, "periodic": [True] * 3}}
    slabs = split((512,) * 3, 8, True)
    for name in ("cuda", "opencl"):
        case = parse_case(text | {"backend": {"name": name}}, "test.toml")
        found = thin_slabs(case, slabs, halo_bytes(case, slabs[1])[0], None)
        assert [each.message.count("H200, through host memory") for each in found] == (
            [1] if name == "opencl" else []
        )


def test_check_does_not_warn_of_thick_slabs(case, monkeypatch):
    monkeypatch.setattr(slabs, "COPY", 1.0)
    output = call("check", case, "--ranks", "3", "--gpu-memory", "1").output
    assert "are thin" not in output

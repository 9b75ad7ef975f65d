"""The warning that a slab has too few planes for the threads of its rank."""

import pytest
from support.commands import call
from support.slabs import box

from mpilbm.case.case import parse_case
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight.slabs import LEAST_BUSY, busy, idle_threads


@pytest.mark.parametrize(
    ("planes", "edges", "threads", "share"),
    [(7, 2, 1, 1.0), (64, 0, 16, 1.0), (62, 2, 16, 62 / 80), (1, 0, 4, 0.25), (17, 0, 16, 17 / 32)],
)
def test_busy_threads(planes, edges, threads, share):
    assert busy(planes, edges, threads) == pytest.approx(share)


def found(planes, ranks, threads, periodic=True):
    tables = box("D2Q9", [8, planes], domain={"size": [8, planes], "periodic": [True, periodic]})
    tables["domain"] = {"size": [8, planes], "periodic": [True, periodic]}
    if not periodic:
        tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    case = parse_case(tables | {"backend": {"name": "cpu", "threads": threads}}, "test.toml")
    return idle_threads(case, split(case.shape, ranks, periodic))


def test_threads_with_enough_planes_are_not_reported():
    assert found(64, 1, 16) == []
    assert found(64, 2, 8) == []
    assert found(5, 5, 1) == []


@pytest.mark.parametrize(("planes", "ranks", "threads"), [(17, 1, 16), (22, 2, 8), (3, 1, 8)])
def test_the_advice_keeps_threads_busy(planes, ranks, threads):
    (finding,) = found(planes, ranks, threads)
    assert finding.where == "backend.threads"
    enough = int(finding.message.split("use ")[1].split()[0])
    assert 1 <= enough < threads
    edges = 2 * (ranks > 1)
    assert busy(planes // ranks, edges, enough) >= LEAST_BUSY
    assert all(busy(planes // ranks, edges, n) < LEAST_BUSY for n in range(enough + 1, threads + 1))


def test_check_reports_it(case):
    more = ("--set", "backend.name='cpu'", "--set")
    output = " ".join(call("check", case, *more, "backend.threads=50").output.split())
    assert "warning: backend.threads: the 50 threads of a rank share the" in output
    assert "backend.threads" not in call("check", case, *more, "backend.threads=1").output

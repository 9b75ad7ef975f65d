"""`mpilbm info`: who writes the files of a run."""

import pytest

from mpilbm.run.preflight import installation
from mpilbm.storage import file_system

OWN, ROOT, MPIO = "each rank writes its own planes", "rank 0 writes for all", "MPI-IO"


@pytest.mark.parametrize(
    ("name", "parallel", "one", "several", "fix"),
    [
        ("ext4", False, OWN, ROOT, False),
        ("ext4", True, OWN, MPIO, False),
        ("lustre", False, OWN, OWN, False),
        ("nfs4", False, ROOT, ROOT, True),
        ("nfs4", True, MPIO, MPIO, False),
        ("", False, ROOT, ROOT, True),
    ],
)
def test_the_writers_are_those_of_a_run(monkeypatch, name, parallel, one, several, fix):
    monkeypatch.setattr(file_system, "kind", lambda directory: name)
    found = installation.writers(parallel)
    on_one_node, _, on_several = found.value.partition("; on several nodes ")
    assert one in on_one_node
    assert several in (on_several or on_one_node)
    assert (name or "unknown") in found.value
    assert bool(found.fix) == fix

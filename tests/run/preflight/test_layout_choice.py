"""The layout `auto`: device, memory and geometry; runs and checkpoints keep their bits."""

import json
import zlib

import h5py
import numpy as np
import pytest

from mpilbm.case.case import parse_case
from mpilbm.core.files import file_digest
from mpilbm.core.files.file_digest import Extent, trailer
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight import layout_choice
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solver.memory_plan import bytes_needed
from mpilbm.view.bench import boxes

SIZE = [24, 20, 16]


def case_of(setting="periodic", layout="auto", size=SIZE, steps=20_000, folder=None, **more):
    tables = boxes.box(setting, size, more.pop("lattice", "D3Q19"), layout=layout) | more
    tables["run"] = {"steps": steps}
    tables["backend"] = {"name": "cpu"}
    return parse_case(tables, ((folder or "") and folder / "box.toml") or "box.toml")


def chosen(case, device="cpu", room=None, ranks=1):
    slab = split(case.shape, ranks, case.domain.periodic[-1])[0]
    return layout_choice.choose(case, device, slab, room)[0].name


def rock(folder, porosity, **more):
    np.save(folder / boxes.MASK, boxes.rock(SIZE[::-1], radius=3.0, porosity=porosity))
    return case_of("porous", folder=folder, **more)


def test_a_mask_is_verified_once_in_a_run(tmp_path, monkeypatch):
    """By the choice of the layout; the run and its geometry rely on it."""
    path, read = tmp_path / "rock.h5", []
    with h5py.File(path, "w") as file:
        file["solid"] = np.arange(60).reshape(6, 10) % 7 == 0
    content = path.read_bytes()
    extent, original = Extent(0, 1, len(content)), file_digest.verify
    path.write_bytes(content + trailer([extent], [zlib.crc32(content)]))
    monkeypatch.setattr(file_digest, "verify", lambda path: (read.append(path), original(path)))
    tables = boxes.box("periodic", [10, 6], "D2Q9", layout="auto")
    tables |= {"run": {"steps": 2}, "backend": {"name": "cpu"}}
    tables["body"] = [{"mask": "rock.h5:solid", "boundary": {"name": "bounce_back"}}]
    run(parse_case(tables, tmp_path / "box.toml"), Serial(), tmp_path / "out")
    assert read == [path]


def test_auto_is_the_default():
    tables = boxes.box("periodic", SIZE, "D3Q19")
    del tables["layout"]
    assert parse_case(tables, "box.toml").layout.name == "auto"


def test_device_decides():
    assert chosen(case_of()) == "aa"
    assert chosen(case_of(), "cuda") == "ab"


def test_a_named_layout_is_kept():
    case = case_of(layout="esopull")
    assert layout_choice.choose(case, "cpu", split(case.shape, 1, True)[0], 1) == (case.layout, "")


def test_short_memory_halves_the_arrays():
    slab = split(case_of().shape, 1, True)[0]
    needed = sum(bytes_needed(case_of(layout="ab"), slab).values())
    assert chosen(case_of(), "cuda", needed + 1) == "ab"
    assert chosen(case_of(), "cuda", needed) == "esopull"
    assert chosen(case_of(), "cuda", needed, ranks=2) == "ab"


def test_a_rock_is_stored_without_solid_cells(tmp_path):
    assert chosen(rock(tmp_path, 0.5)) == "indirect"
    assert chosen(rock(tmp_path, 0.5), "cuda") == "indirect"
    assert chosen(rock(tmp_path, 0.97)) == "aa"
    assert chosen(rock(tmp_path, 0.5, steps=99)) == "aa"
    assert chosen(rock(tmp_path, 0.5, steps=9_999), "cuda") == "ab"
    assert chosen(rock(tmp_path, 0.5), room=1) == "aa"


def test_a_box_of_bench_represents_a_long_run(tmp_path):
    """So that `mpilbm bench --layout auto` measures the layout that users get."""
    np.save(tmp_path / boxes.MASK, boxes.rock(SIZE[::-1], radius=3.0, porosity=0.5))
    case = parse_case(boxes.box("porous", SIZE, "D3Q19", layout="auto"), tmp_path / "box.toml")
    assert [chosen(case, device) for device in ("cpu", "cuda")] == ["indirect", "indirect"]


def test_the_reason_contains_the_porosity(tmp_path):
    """Counted in 8 planes of 16."""
    case = rock(tmp_path, 0.5)
    solid = np.load(tmp_path / boxes.MASK)[np.linspace(0, 15, 8).astype(int)]
    slab = split(case.shape, 1, True)[0]
    _, why = layout_choice.choose(case, "cpu", slab, None)
    assert why == f"porosity {1 - solid.mean():.2f} in 8 planes, stores no solid cells"
    assert layout_choice.choose(case_of(), "cpu", slab, None)[1] == "the fastest on CPUs"


def test_a_layout_that_the_case_refuses_is_not_chosen(tmp_path):
    case = rock(tmp_path, 0.5, lattice="D3Q13", collision={"name": "mrt"})
    assert chosen(case) == "aa"


def test_a_missing_mask_is_reported_later():
    assert chosen(case_of("porous")) == "aa"


def test_check_shows_layout_and_memory():
    found = plan(case_of("cavity"))
    line = next(line for line in found.sections["box"] if line.what == "layout")
    assert (line.value, line.verdict) == ("aa", "the fastest on CPUs")
    assert found.sections["ranks"] == plan(case_of("cavity", layout="aa")).sections["ranks"]


@pytest.mark.parametrize("first", ["auto", "ab"])
def test_runs_and_restarts_keep_their_bits(first, tmp_path):
    """A run that continues a checkpoint of another layout ends like one with `esopull`."""

    def go(name, layout, steps, restart=None):
        more = {"lattice": "D2Q9", "output": [{"name": "checkpoint", "every": 5}]}
        case = case_of("cavity", layout, [9, 8], steps, **more)
        run(case, Serial(), tmp_path / name, restart=restart, overwrite=restart is None)

    go("whole", "esopull", 10)
    go("parts", first, 5)
    go("parts", "auto" if first == "ab" else "ab", 10, restart="auto")
    ends = [next((tmp_path / name).glob("*_000000010.h5")) for name in ("whole", "parts")]
    f = [h5py.File(path)["fluid/f"][:] for path in ends]
    assert np.array_equal(*f)
    summary = json.loads((tmp_path / "parts" / "summary.json").read_text())
    assert (summary["layout"], summary["layout_why"]) == (
        ("ab", "") if first == "auto" else ("aa", "the fastest on CPUs")
    )

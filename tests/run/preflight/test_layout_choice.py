"""The layout `auto`: device, memory and geometry; runs and checkpoints keep their bits."""

import json
import zlib

import h5py
import numpy as np
import pytest

from mpilbm.backends.gpu import drivers
from mpilbm.case.case import parse_case
from mpilbm.case.checks import problems_with
from mpilbm.core.errors import CaseError
from mpilbm.core.files import file_digest
from mpilbm.core.files.file_digest import Extent, trailer
from mpilbm.core.registry import make
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight import layout_choice
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solver.memory_plan import bytes_needed
from mpilbm.view import bench

SIZE = [40, 20, 16]


def case_of(setting="periodic", layout="auto", size=SIZE, steps=20_000, folder=None, **more):
    tables = bench.box(setting, size, more.pop("lattice", "D3Q19"), layout=layout) | more
    tables["run"] = {"steps": steps}
    tables["backend"] = {"name": "cpu"}
    return parse_case(tables, ((folder or "") and folder / "box.toml") or "box.toml")


def chosen(case, device="cpu", room=None, ranks=1, sweeps=False):
    return layout_choice.choose(case, device, ranks, room, sweeps)[0].name


def with_collision(name, setting="periodic", **more):
    return case_of(setting, collision={"name": name}, **more)


def rock(folder, porosity, **more):
    np.save(folder / bench.MASK, bench.rock(SIZE[::-1], radius=3.0, porosity=porosity))
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
    tables = bench.box("periodic", [10, 6], "D2Q9", layout="auto")
    tables |= {"run": {"steps": 2}, "backend": {"name": "cpu"}}
    tables["body"] = [{"mask": "rock.h5:solid", "boundary": {"name": "bounce_back"}}]
    run(parse_case(tables, tmp_path / "box.toml"), Serial(), tmp_path / "out")
    assert read == [path]


def test_auto_is_the_default():
    tables = bench.box("periodic", SIZE, "D3Q19")
    del tables["layout"]
    assert parse_case(tables, "box.toml").layout.name == "auto"


def test_device_decides():
    assert chosen(case_of()) == "aa"
    assert chosen(case_of(), "cuda") == "ab"


SWEPT = "regularized", "recursive_regularized"
FORCE = {"name": "guo", "value": [1e-6, 0.0, 0.0]}
BALL = {"shape": {"name": "sphere", "centre": [12, 10, 8], "radius": 3.1}}
LISTED = {"body": [BALL | {"boundary": {"name": "bounce_back"}}]}
PARTIAL = {"body": [BALL | {"boundary": {"name": "partially_saturated"}}]}


@pytest.mark.parametrize("collision", SWEPT)
@pytest.mark.parametrize("setting", ["periodic", "cavity"])
def test_moments_where_a_device_sweeps(collision, setting):
    """On no other device: on a CPU and with the general kernel it is slower."""
    case = with_collision(collision, setting)
    assert chosen(case, "cuda", sweeps=True) == "moments"
    assert chosen(case, "cuda") == chosen(case, "opencl") == "ab"
    assert chosen(case) == "aa"


def test_bits_depend_neither_on_memory_nor_on_ranks_nor_on_steps():
    for steps in (1, 100_000):
        case = with_collision("regularized", steps=steps)
        for room, ranks in ((1, 1), (None, 1), (1, 4)):
            assert chosen(case, "cuda", room, ranks, sweeps=True) == "moments"


@pytest.mark.parametrize("steps", [9_999, 10_000])
def test_populations_in_many_solids_for_any_number_of_steps(tmp_path, steps):
    case = rock(tmp_path, 0.5, collision={"name": "regularized"}, steps=steps)
    assert chosen(case, "cuda", sweeps=True) == ("ab" if steps < 10_000 else "indirect")


def test_moments_with_few_solids(tmp_path):
    case = rock(tmp_path, 0.97, collision={"name": "regularized"})
    assert chosen(case, "cuda", sweeps=True) == "moments"


@pytest.mark.parametrize(
    ("collision", "more", "wanted"),
    [
        ("trt", {}, "ab"),
        ("regularized", {"lattice": "D3Q27"}, "moments"),
        ("regularized", {"force": FORCE}, "moments"),
        ("regularized", {"precision": {"storage": "float16"}}, "ab"),
        ("regularized", {"precision": {"compute": "float64", "storage": "float64"}}, "moments"),
        ("recursive_regularized", {"force": FORCE}, "ab"),
        ("regularized", PARTIAL, "moments"),
        ("recursive_regularized", LISTED, "moments"),
        ("recursive_regularized", PARTIAL, "ab"),
    ],
)
def test_moments_only_where_the_flow_is_the_same(collision, more, wanted):
    assert chosen(with_collision(collision, **more), "cuda", sweeps=True) == wanted


@pytest.mark.parametrize(("nx", "wanted"), [(33, "moments"), (32, "ab")])
def test_populations_where_no_tile_of_the_sweep_fits(nx, wanted):
    """The general kernel of moments is slower than populations."""
    case = with_collision("regularized", size=[nx, 20, 16])
    assert chosen(case, "cuda", sweeps=True) == wanted


def test_moments_in_2d_and_populations_with_a_force_for_each_cell():
    """The force needs the general kernel."""
    flat = case_of(size=SIZE[:2], lattice="D2Q9", collision={"name": "regularized"})
    assert chosen(flat, "cuda", sweeps=True) == "moments"
    forces = [np.full(SIZE[::-1], 1e-6), 0.0, 0.0]
    field = with_collision("regularized", force={"name": "guo", "value": forces})
    assert chosen(field, "cuda", sweeps=True) == "ab"


def test_mixed_storage_is_that_of_moments_on_all_devices():
    case = with_collision("regularized", precision={"storage": "mixed"})
    assert chosen(case) == chosen(case, "opencl") == "moments"
    moments = with_collision("regularized", layout="moments", precision={"storage": "mixed"})
    assert case.formats == moments.formats
    needed = [bytes_needed(each, split(each.shape, 1, True)[0]) for each in (case, moments)]
    assert needed[0] == needed[1]


def test_mixed_storage_with_another_collision_is_refused():
    with pytest.raises(CaseError, match=r"'auto' takes moments for .*of collision = 'trt'"):
        with_collision("trt", precision={"storage": "mixed"})


def test_advice_on_collisions_is_that_of_the_file():
    """It is not limited to the collisions of the layout that a run has chosen."""
    case = with_collision("regularized")
    moments = case.model_copy(update={"layout": make("layouts", "moments")})
    trt = (case.fluids[0].model_copy(update={"collision": make("collisions", "trt")}),)
    assert not problems_with(moments, fluids=trt)
    named = with_collision("regularized", layout="moments")
    assert problems_with(named, fluids=trt)


@pytest.mark.parametrize(
    ("backend", "capability", "wanted"),
    [
        ({"name": "cuda"}, 80, True),
        ({"name": "cuda", "fused": False}, 90, False),
        ({"name": "cuda"}, 75, False),
        ({"name": "auto"}, 90, True),
        ({"name": "cpu"}, 90, False),
    ],
)
def test_which_devices_sweep(monkeypatch, backend, capability, wanted):
    """With fused = false a GPU has the bits of a CPU, and the layout of a CPU's flow."""
    monkeypatch.setattr(drivers, "driver", lambda: drivers.Driver(1, 13, capability=capability))
    assert make("backends", backend).sweeps() is wanted


def test_a_named_layout_is_kept():
    case = case_of(layout="esopull")
    assert layout_choice.choose(case, "cpu", 1, 1) == (case.layout, "")


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
    np.save(tmp_path / bench.MASK, bench.rock(SIZE[::-1], radius=3.0, porosity=0.5))
    case = parse_case(bench.box("porous", SIZE, "D3Q19", layout="auto"), tmp_path / "box.toml")
    assert [chosen(case, device) for device in ("cpu", "cuda")] == ["indirect", "indirect"]


def test_the_reason_contains_the_porosity(tmp_path):
    """Counted in 8 planes of 16."""
    case = rock(tmp_path, 0.5)
    solid = np.load(tmp_path / bench.MASK)[np.linspace(0, 15, 8).astype(int)]
    _, why = layout_choice.choose(case, "cpu", 1, None)
    assert why == f"porosity {1 - solid.mean():.2f} in 8 planes, stores no solid cells"
    assert layout_choice.choose(case_of(), "cpu", 1, None)[1] == "the fastest on CPUs"


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


@pytest.mark.parametrize(("first", "second"), [("ab", "moments"), ("moments", "esopull")])
@pytest.mark.parametrize("collision", SWEPT)
def test_a_restart_converts_populations_and_moments(collision, first, second, tmp_path, capsys):
    """The flow goes on as in the layout of the restart, up to rounding."""
    ends = {}

    def go(folder, layout, steps, restart=None):
        more = {"lattice": "D2Q9", "collision": {"name": collision}}
        more["output"] = [{"name": "checkpoint", "every": 5}]
        more["precision"] = {"compute": "float64", "storage": "float64"}
        case = case_of("cavity", layout, [9, 8], steps, **more)
        run(case, Serial(), tmp_path / folder, restart=restart, overwrite=restart is None)
        with h5py.File(tmp_path / folder / f"checkpoint_{steps:09d}.h5") as file:
            ends[folder] = file["fluid/f"][:]

    go("whole", second, 10)
    go("parts", first, 5)
    capsys.readouterr()
    go("parts", second, 10, restart="auto")
    ways = {"ab": "populations", "moments": "moments", "esopull": "populations"}
    text = f"the layout has changed: {ways[first]} are converted to {ways[second]} and rounded"
    assert text in capsys.readouterr().err
    assert ends["parts"].shape == ends["whole"].shape
    np.testing.assert_allclose(ends["parts"], ends["whole"], rtol=0, atol=1e-15)


@pytest.mark.parametrize(("first", "second"), [("ab", "moments"), ("moments", "ab")])
def test_a_restart_in_a_layout_with_another_flow_says_by_what_it_differs(
    first, second, tmp_path, capsys
):
    """More than rounding: terms of the force."""
    for layout, steps, restart in ((first, 2, None), (second, 4, "auto")):
        more = {"lattice": "D2Q9", "collision": {"name": "recursive_regularized"}}
        more |= {
            "force": FORCE | {"value": [1e-6, 0.0]},
            "output": [{"name": "checkpoint", "every": 2}],
        }
        case = case_of("cavity", layout, [9, 8], steps, **more)
        run(case, Serial(), tmp_path / "out", restart=restart)
    text = "and rounded; moments adds terms of the order F u^2 to the third moments of the force"
    assert text in capsys.readouterr().err

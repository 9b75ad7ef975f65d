"""Flow rates and mean pressures: the exact ones of a channel, openings, solids, units, mistakes."""

import numpy as np
import pytest
from support.channels import DROP, IN, MEAN, OUTPUT, PLANES, H, L, U, channel
from support.runs import run_case
from support.scalars import flow, setting
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.outputs.openings import Opening
from mpilbm.view.plot import pyplot
from mpilbm.view.plot.time_series import of_tables
from mpilbm.view.plot.watch import curves_of
from mpilbm.view.results import open_run
from mpilbm.view.results.tables import read_table

PARTS = [
    {"label": "lower", "normal": "x", "position": IN, "rectangle": [[H / 2], [0]]},
    {"label": "middle", "normal": "x", "position": IN, "centre": [H / 2], "radius": 1},
]


def rows(folder, tables, name="0"):
    run_case(parse_case(tables, "channel.toml"), folder)
    return read_table(folder / f"flow_rate_{name}.csv")


def test_flow_and_pressure_drop_of_a_channel_are_the_exact_ones(tmp_path):
    found = rows(tmp_path, channel(output=[OUTPUT | {"plane": PLANES + PARTS}]))
    last = {name: values[-1] for name, values in found.items()}
    assert last["volume_flow_in"] == pytest.approx(MEAN * H, rel=1e-9)
    assert last["mass_flow_in"] == pytest.approx(last["mass_flow_out"], rel=1e-9)
    assert last["pressure_drop"] == pytest.approx(DROP, rel=1e-3)
    assert last["total_pressure_drop"] == pytest.approx(DROP, rel=1e-3)
    assert last["loss_coefficient"] == pytest.approx(DROP / (MEAN**2 / 2), rel=1e-3)
    y = np.arange(H) + 0.5
    u = 6 * U * y * (H - y) / H**2
    head = last["total_pressure_in"] - last["pressure_in"]
    assert head == pytest.approx((u**3).sum() / u.sum() / 2, rel=1e-3)
    assert last["volume_flow_lower"] == pytest.approx(MEAN * H / 2, rel=1e-6)
    middle = u[[H // 2 - 1, H // 2]].sum()  # the two cells whose centres are within 1
    assert last["volume_flow_middle"] == pytest.approx(middle, rel=1e-3)


def test_columns_in_si_are_those_in_lattice_units(tmp_path):
    """The exact pressure drop of water in Pa, and flows per metre of depth."""
    units = {"cell": 0.001, "step": 0.002, "density": 1000.0}
    pairs = {
        "volume_flow_in (m^2/s)": ("volume_flow_in", 0.001**2 / 0.002),
        "mass_flow_in (kg/(m s))": ("mass_flow_in", 1000 * 0.001**2 / 0.002),
        "mean_velocity_in (m/s)": ("mean_velocity_in", 0.001 / 0.002),
        "pressure_drop (Pa)": ("pressure_drop", 1000 * (0.001 / 0.002) ** 2),
    }
    tables = channel(units=units, run={"steps": 4}, output=[OUTPUT | {"label": "water"}])
    found = rows(tmp_path, tables, "water")
    for name, (lattice, unit) in pairs.items():
        assert found[name][-1] == pytest.approx(unit * found[lattice][-1], rel=1e-12)
    assert abs(found["pressure_drop"][-1]) > 0


def test_sums_are_those_of_the_fields_over_fluid_cells(tmp_path):
    """Of a flow around a body that carries a scalar, in an opening across the planes of slabs."""
    tables = flow("D3Q19", **setting("body", 3))
    plane = {"label": "a", "normal": "x", "position": 3.2, "rectangle": [[0, 1], [3, 9]]}
    output = {"name": "flow_rate", "every": 4, "plane": [plane]}
    start = {"u": ["0.02*sin(2*pi*y/ny)+0.01", 0, 0]}
    tables |= {"output": [output], "run": {"steps": 4}, "initial": start}
    tables["backend"] = {"name": "cpu"}
    last = {name: values[-1] for name, values in rows(tmp_path, tables).items()}
    cluster = Cluster(tables).start().run(4)
    solid = np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))[1:, :3, 3]
    fields = {n: v[1:, :3, 3] for n, v in cluster.fields("rho", "u", "pressure", "T").items()}
    fluid = {name: values[~solid] for name, values in fields.items()}
    assert 0 < solid.sum() < solid.size
    u, normal = fluid["u"], fluid["u"][:, 0]
    total = fluid["pressure"] + fluid["rho"] * (u**2).sum(axis=1) / 2
    expected = {
        "volume_flow_a": normal.sum(),
        "mass_flow_a": (fluid["rho"] * normal).sum(),
        "mean_velocity_a": normal.mean(),
        "pressure_a": fluid["pressure"].mean(),
        "total_pressure_a": (total * normal).sum() / normal.sum(),
        "mean_T_a": (fluid["T"] * normal).sum() / normal.sum(),
    }
    assert {name: last[name] for name in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("lattice", ["D3Q19", "D3Q13"])
def test_rows_are_the_same_in_all_layouts(tmp_path, lattice):
    """Of planes and a disc through a body; D3Q13 stores half of the nodes."""
    block = {"name": "box", "lower": [2, 1, 1], "upper": [5, 4, 3]}
    planes = [
        {"label": "a", "normal": "x", "position": 3.5, "centre": [3, 2], "radius": 2.6},
        {"label": "b", "normal": "y", "position": 4},
        {"label": "c", "normal": "z", "position": 2.5, "rectangle": [[1, 1], [6, 6]]},
    ]
    texts = []
    for layout in ("ab", "aa", "esopull", "indirect"):
        tables = {
            "lattice": {"name": lattice},
            "domain": {"size": [8, 6, 4], "periodic": [True] * 3},
            "fluid": {"viscosity": 0.1},
            "collision": {"name": "mrt"},
            "layout": {"name": layout},
            "initial": {"u": ["0.02*sin(2*pi*y/ny)+0.01", "0.01", 0]},
            "body": [{"label": "b", "shape": block, "boundary": {"name": "bounce_back"}}],
            "run": {"steps": 3},
            "backend": {"name": "cpu"},
            "output": [{"name": "flow_rate", "every": 1, "plane": planes}],
        }
        try:
            case = parse_case(tables, "layouts.toml")
        except CaseError:
            continue  # a layout that has not this lattice
        run_case(case, tmp_path / layout)
        texts.append((tmp_path / layout / "flow_rate_0.csv").read_text())
    assert len(texts) >= 2
    assert len(set(texts)) == 1
    last = {
        name: values[-1] for name, values in read_table(tmp_path / "ab/flow_rate_0.csv").items()
    }
    assert last["volume_flow_a"] / last["mean_velocity_a"] == pytest.approx(
        # cells with their centre in the disc, of which the body covers 3 x 2
        sum((y - 3) ** 2 + (z - 2) ** 2 <= 2.6**2 for y in np.arange(6) + 0.5
            for z in np.arange(4) + 0.5) - 3 * 2
    )  # fmt: skip


def test_a_fluid_at_rest_has_no_total_pressure(tmp_path):
    still = [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}]
    tables = channel(boundary=still, initial={}, run={"steps": 2})
    last = {name: values[-1] for name, values in rows(tmp_path, tables).items()}
    assert last["pressure_drop"] == last["volume_flow_in"] == 0
    assert np.isnan([last["total_pressure_in"], last["loss_coefficient"]]).all()


def test_a_run_ends_when_the_pressure_drop_is_steady(tmp_path):
    steady = {"every": 100, "tolerance": 1e-5, "of": "flow_rate"}
    found = rows(tmp_path, channel(run={"steps": 5000, "steady": steady}))
    assert found["step"][-1] < 3000
    assert found["pressure_drop"][-1] == pytest.approx(DROP, rel=1e-3)


def test_cells_of_a_disc_are_those_with_their_centre_inside():
    tables = flow("D3Q19", domain={"size": [6, 5, 9], "periodic": [True] * 3})
    disc = {"label": "a", "normal": "y", "position": 5, "centre": [3, 4], "radius": 1}
    nodes = Opening(**disc).nodes(parse_case(tables, "disc.toml"), 4, 9)
    assert nodes.tolist() == [[4, 4, 2], [4, 4, 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normal": "z"}, "normal: found 'z' in 2D; allowed: x, y"),
        ({"position": L + 1}, f"position: found {L + 1}; allowed: 0 to {L}"),
        ({"centre": [3]}, "a disc requires centre and radius"),
        ({"centre": [3, 3], "radius": 2}, "centre: found a point of 2 coordinates; allowed: y"),
        ({"rectangle": [[0], [2]], "centre": [3], "radius": 2}, "give rectangle, or centre"),
        ({"centre": [], "radius": 2}, "centre: found a point of 0 coordinates; allowed: y"),
        ({"rectangle": [[], []]}, "rectangle: found a point of 0 coordinates; allowed: y"),
        ({"centre": [4], "radius": 0.4}, "contains no centre of a cell"),
        ({"centre": [-1e300], "radius": 1e299}, "contains no centre of a cell"),
        ({"label": "out"}, "two have the label 'out'"),
        ({"label": "inlet"}, "between: found 'in'; allowed: inlet, out"),
        ({"label": "drop"}, "two columns have the name 'pressure_drop', because of labels"),
    ],
)
def test_mistakes_are_named(change, message):
    output = OUTPUT | {"plane": [PLANES[0] | change, PLANES[1]]}
    with pytest.raises(CaseError, match="output") as error:
        parse_case(channel(output=[output]), "channel.toml")
    assert message in str(error.value)


def test_a_plane_in_a_solid_is_refused(tmp_path):
    block = {"name": "box", "lower": [0, 0], "upper": [5, H]}
    body = [{"label": "block", "shape": block, "boundary": {"name": "bounce_back"}}]
    tables = channel(body=body)
    tables["boundary"] = [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}]
    with pytest.raises(CaseError, match="plane 'in' has no fluid cell"):
        rows(tmp_path, tables)


def test_labels_of_scalars_that_make_two_columns_of_one_name_are_refused():
    """mean_velocity_in is the mean velocity, mean_T_a_in the mean of T_a, or of T at a_in."""
    for label in ("velocity", "T_a"):
        tables = flow("D3Q19", **setting("body", 3))
        (scalar,) = tables["scalar"]
        planes = [{"label": each, "normal": "x", "position": 1} for each in ("in", "a_in")]
        output = {"name": "flow_rate", "every": 4, "plane": planes}
        both = [scalar, scalar | {"label": label}]
        with pytest.raises(CaseError, match="two columns have the name 'mean_"):
            parse_case(tables | {"output": [output], "scalar": both}, "labels.toml")


def test_a_plane_is_not_compared_with_itself():
    output = OUTPUT | {"between": ["in", "in"]}
    with pytest.raises(CaseError, match="between: found 'in' twice; allowed: two different planes"):
        parse_case(channel(output=[output]), "channel.toml")


def test_flows_and_pressures_are_drawn_with_their_means(tmp_path):
    """In SI with [units]; the exact drop of pressure is within the error, or 1e-3 of it."""
    pytest.importorskip("matplotlib")
    units = {"cell": 0.001, "step": 0.002, "density": 1000.0}
    output = OUTPUT | {"every": 20}
    for name, more in (("lattice", {}), ("si", {"units": units})):
        folder = tmp_path / name
        run_case(parse_case(channel(output=[output], **more), "channel.toml"), folder)
        figures, lines = of_tables(pyplot(), open_run(folder), None)
        figure = figures["flow_rate_0"]
        labels = [axis.get_ylabel() for axis in figure.axes]
        assert len(labels) == 6
        flow_unit, pressure = {
            "lattice": ("cells^2/step", "rho_0 cells^2/step^2"), "si": ("m^2/s", "Pa")
        }[name]  # fmt: skip
        assert labels[0] == f"volume flow\n({flow_unit})"
        assert labels[3] == f"pressure drop\n({pressure})"
        assert labels[5] == "loss coefficient\n(1)"
        assert [line.get_label() for line in figure.axes[0].lines] == ["in", "out"]
        (line,) = [each for each in lines if each.startswith("flow_rate_0: pressure_drop = ")]
        value = float(line.split(" = ")[1].split()[0])
        assert value == pytest.approx(DROP * (250 if more else 1), rel=2e-3)
        assert f" {pressure} (mean of the last half of the time)" in line
        titles = [each.title for each in curves_of(folder)]
        assert "flow_rate_0: total_pressure_drop" in titles
        assert "flow_rate_0: loss_coefficient" in titles

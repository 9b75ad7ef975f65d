"""Coupled fluids: their equations, slabs and restarts that do not show, and what is refused.

More than 20 s: kernel texts of coupled fluids, by lattice and layout.
"""

import numpy as np
import pytest
from support.coupled import box_of, one_fluid, raw, restored, solid, state, two_fluids, walled
from support.slabs import PRECISIONS, Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find, make, names

SINGLE = {"precision": PRECISIONS["single"]}
CASES = {
    "one D2Q9": one_fluid("D2Q9"),
    "one D3Q19": one_fluid("D3Q19", **SINGLE),
    "two D2Q9": two_fluids("D2Q9", **SINGLE, **walled("D2Q9")),
    "two D2Q9 neutral": two_fluids("D2Q9", "exact_difference", **walled("D2Q9", None)),
    "two D3Q19": two_fluids("D3Q19", **SINGLE),
}


def fluid_alone(cluster, values):
    """Zero in solids, where fields of a coupling are none."""
    wall = solid(cluster)
    return np.where(wall[..., None] if values.ndim == 4 else wall, 0, values)


@pytest.mark.parametrize(
    ("choice", "layouts"),
    [
        ("one D2Q9", "ab aa esopull"),
        ("one D3Q19", "esopull"),
        ("two D2Q9", "ab aa"),
        ("two D2Q9 neutral", "esopull"),
        ("two D3Q19", "ab"),
    ],
)
def test_neither_slabs_nor_layout_show(choice, layouts):
    expected = None
    for layout in layouts.split():
        for slabs in (1, 2, 3, 6):
            cluster = Cluster(CASES[choice] | {"layout": {"name": layout}}, slabs).start().run(5)
            fields = cluster.fields(*cluster.solvers[0].field_names)
            found = [state(cluster), *(fluid_alone(cluster, v) for v in fields.values())]
            found.append(cluster.run(2).sums()[1])
            found.append(state(cluster))
            expected = expected or found
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert all(np.isfinite(each).all() for each in expected)
    assert expected[0].std() > 0.01


@pytest.mark.parametrize(("before", "after"), [("ab", "aa"), ("aa", "ab")])
@pytest.mark.parametrize("steps", [3, 4])
def test_restart_does_not_show(before, after, steps):
    """Also with outputs in between, which recompute the fields of the coupling."""
    first, second = (CASES["two D2Q9"] | {"layout": {"name": name}} for name in (before, after))
    whole = state(Cluster(first).start().run(7))
    half = Cluster(first, 3).start().run(steps)
    half.fields("rho", "u")
    resumed = restored(second, 2, raw(half), steps, half.kept()).run(7 - steps)
    assert np.array_equal(state(resumed), whole)
    half.run(7 - steps)
    assert np.array_equal(state(half), whole)


def shifted(values, lattice, i, sign=-1):
    """values(x + sign c_i) of (planes, rows, nx, …)."""
    return np.roll(values, [-sign * step for step in lattice.offset(i)], (0, 1, 2))


def moments(f, lattice):
    """rho and momentum of (Q, planes, rows, nx)."""
    return f.sum(axis=0), np.einsum("i...,ia->...a", f, np.array(lattice.c, float))


def forces(rho, lattice, G, psi):
    """F_k = -psi_k sum_l G_kl sum_i w_i psi_l(x + c_i) c_i, as the papers have it."""
    pull = [
        sum(
            float(w) * shifted(psi(r), lattice, i, 1)[..., None] * np.array(c)
            for i, (w, c) in enumerate(zip(lattice.w, lattice.c, strict=True))
        )
        for r in rho
    ]
    return [
        -psi(r)[..., None] * sum(G[k][n] * pull[n] for n in range(len(rho)))
        for k, r in enumerate(rho)
    ]


def stepped(cluster):
    """Per fluid what streams in to the next step and what then leaves, (Q, …), full populations."""
    lattice = cluster.case.lattice
    w = np.array(lattice.w, float)[:, None, None, None]

    def full():
        return [each.transpose(1, 0, 2, 3) + w for each in raw(cluster).values()]

    before = full()
    cluster.run(1)
    after = full()
    arrives = [np.stack([shifted(f[i], lattice, i) for i in range(lattice.Q)]) for f in before]
    return arrives, after


@pytest.mark.parametrize("force", names("forcing"))
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_one_fluid_is_pulled_as_the_paper_has_it(lattice, force):
    tables = one_fluid(lattice, coupling={"name": "shan_chen", "G": -4.5, "force": force})
    cluster = Cluster(tables).start().run(2)
    (arrives,), (leaves,) = stepped(cluster)
    lattice = cluster.case.lattice
    rho, j = moments(arrives, lattice)
    (F,) = forces([rho], lattice, [[-4.5]], lambda r: 1 - np.exp(-r))
    found, after = moments(leaves, lattice)
    assert np.abs(found - rho).max() < 1e-14
    assert np.abs(after - j - F).max() < 1e-14
    assert np.abs(F).max() > 0.01


@pytest.mark.parametrize("force", names("forcing"))
def test_two_fluids_collide_at_a_common_velocity(force):
    """j*_k = j_k + F_k - omega_k (j_k + half F_k / 2 - rho_k u); the momentum of both is kept."""
    plain = two_fluids("D2Q9", force)
    del plain["fluid"][0]["force"]
    cluster = Cluster(plain).start().run(2)
    arrives, leaves = stepped(cluster)
    lattice, fluids = cluster.case.lattice, cluster.case.fluids
    half = 1 if force == "guo" else 0
    rho, j = zip(*(moments(f, lattice) for f in arrives), strict=True)
    F = forces(rho, lattice, [[0, 1.2], [1.2, 0]], lambda r: r)
    nu = fluids[0].viscosity
    trt = fluids[1].collision.rates(fluids[1].viscosity, lattice)
    odd = next(rate for name, rate in trt.items() if "minus" in name or "odd" in name)
    omega = [1 / (3 * nu + 0.5), odd]
    whole = [each + half * F_k / 2 for each, F_k in zip(j, F, strict=True)]
    weight = sum(w * r for w, r in zip(omega, rho, strict=True))[..., None]
    u = sum(w * each for w, each in zip(omega, whole, strict=True)) / weight
    for k, f in enumerate(leaves):
        expected = j[k] + F[k] - omega[k] * (whole[k] - rho[k][..., None] * u)
        assert np.abs(moments(f, lattice)[1] - expected).max() < 1e-14
    assert np.abs(sum(F).sum(axis=(0, 1, 2))).max() < 1e-13


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_mass_of_each_and_momentum_of_all_are_kept(lattice):
    tables = two_fluids(lattice) if lattice == "D2Q9" else one_fluid(lattice)
    for fluid in tables["fluid"] if lattice == "D2Q9" else ():
        fluid.pop("force", None)
    cluster = Cluster(tables).start()
    columns, before = cluster.sums()
    kept = [k for k, name in enumerate(columns) if name.startswith(("mass", "momentum"))]
    after = cluster.run(20).sums()[1]
    assert np.abs(after.sum(axis=0) - before.sum(axis=0))[kept].max() < 1e-11


@pytest.mark.parametrize("name", names("collisions"))
def test_every_collision_that_is_taken_keeps_mass_and_momentum(name):
    kind = find("collisions", name)
    force = (kind.forces or ["guo"])[0]
    pair, taken = two_fluids("D2Q9", force), 0
    for fluid in pair["fluid"]:
        fluid["collision"] = {"name": name}
        fluid.pop("force", None)
    coupling = {"name": "shan_chen", "G": -4.5, "force": force}
    for tables in (one_fluid("D2Q9", coupling=coupling, collision={"name": name}), pair):
        try:
            cluster = Cluster(tables).start()
        except CaseError:
            continue
        before = cluster.sums()[1].sum(axis=0)[:3]
        after = cluster.run(10).sums()[1].sum(axis=0)[:3]
        assert np.abs(after - before).max() < 1e-12
        taken += 1
    assert taken > 0 or "D2Q9" not in (kind.lattices or ["D2Q9"])


def test_outputs_hold_half_of_the_force():
    """At step 0 each fluid moves as the case says, whatever pulls it."""
    cluster = Cluster(two_fluids("D2Q9")).start()
    fields = cluster.fields("rho", "u", "rho_water", "rho_oil", "pressure")
    y = (np.arange(13) + 0.5)[:, None, None]
    wanted = np.stack(np.broadcast_arrays(0.02 * np.cos(2 * np.pi * y / 13), 0.01), -1)
    share = (fields["rho_water"] / fields["rho"])[..., None]
    assert np.abs(fields["u"] - share * wanted).max() < 1e-14
    assert np.abs(fields["rho_water"] + fields["rho_oil"] - fields["rho"]).max() < 1e-15
    water, oil = fields["rho_water"], fields["rho_oil"]
    assert np.abs(fields["pressure"] - (fields["rho"] / 3 + 1.2 * water * oil / 3)).max() < 1e-14


@pytest.mark.parametrize("wetting", [None, {"water": 0.7, "oil": 0.2}])
def test_walls_that_show_the_fluid_do_not_pull_it(wetting):
    tables = two_fluids("D2Q9", **walled("D2Q9", wetting))
    tables["boundary"][1] |= {"wetting": wetting} if wetting else {}
    tables["fluid"][0] |= {"initial": {"rho": 0.7}, "force": None}
    tables["fluid"][1] |= {"initial": {"rho": 0.2}}
    del tables["fluid"][0]["force"]
    cluster = Cluster(tables).start().run(10)
    assert np.abs(fluid_alone(cluster, cluster.fields("u")["u"])).max() < 1e-14


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_walls_pull_by_what_they_show(lattice):
    """A uniform fluid at rest, after a step: j = F of psi that is another one in the walls."""
    D, rho, shown = make("lattices", lattice).D, 0.8, 0.1
    tables = walled(lattice, {"fluid": shown})
    tables["boundary"][1]["wetting"] = {"fluid": shown}
    tables = one_fluid(lattice, **tables) | {"initial": {"rho": rho}}
    tables["coupling"] = {"name": "shan_chen", "G": -1.0, "psi": "rho"}
    cluster = Cluster(tables)
    # without the force that the beginning adds, all cells hold their equilibrium
    cluster.each(lambda s: s.fill())
    cluster.each(lambda s: s.resume(0))
    _, leaves = stepped(cluster)
    one_, wall = cluster.case.lattice, solid(cluster)
    wide = np.pad(
        np.where(wall, shown, rho),
        [(1, 1), (1 if D == 3 else 0,) * 2, (1, 1)],
        constant_values=shown,
    )
    (F,) = forces([wide], one_, [[-1.0]], lambda r: r)
    F = F[1:-1, 1:-1, 1:-1] if D == 3 else F[1:-1, :, 1:-1]
    found = moments(leaves[0], one_)[1]
    assert np.abs(np.where(wall[..., None], 0, found - F)).max() < 1e-14
    assert np.abs(F).max() > 0.05


@pytest.mark.parametrize(
    ("G", "vapour", "liquid"), [(-4.5, 0.23299031, 1.47039533), (-5.0, 0.11942020, 1.88843889)]
)
def test_densities_beside_a_flat_interface(G, vapour, liquid):
    """int (p_0 - p) psi'/psi drho = 0 between both: Shan 2008, Phys. Rev. E 77, 066702."""
    n, jump = 48, (liquid - vapour) / 2
    rho = f"{vapour} + {jump}*(tanh((y - {n / 4})/2) - tanh((y - {3 * n / 4})/2))"
    coupling = {"name": "shan_chen", "G": G}
    cluster = Cluster(box_of("D2Q9", [3, n], coupling=coupling, initial={"rho": rho}))
    fields = cluster.start().run(2000).fields("rho", "pressure")
    rho, p = fields["rho"][:, 0, 0], fields["pressure"][:, 0, 0]
    assert abs(rho[n // 2] / liquid - 1) < 2e-3
    assert abs(rho[0] / vapour - 1) < 3e-3
    assert abs(p[n // 2] / p[0] - 1) < 2e-3


def refused(tables, **changes):
    with pytest.raises(CaseError) as error:
        parse_case(tables | changes, "a.toml")
    return " ".join(error.value.problems)


def test_what_is_refused():
    pair, wall = two_fluids("D2Q9"), walled("D2Q9")
    bad = {"name": "shan_chen", "G": [[0, 1], [2, 0]]}
    assert "coupling.G: found [[0.0, 1.0], [2.0, 0.0]]" in refused(pair, coupling=bad)
    assert "allowed: G_kl = G_lk" in refused(pair, coupling=bad)
    assert "allowed for 2 fluids: 2 lists of 2 numbers" in refused(
        pair, coupling={"name": "shan_chen", "G": [[1]]}
    )
    found = refused(pair, coupling={"name": "shan_chen", "G": 1, "psi": "1-exp(-u)"})
    assert "coupling.psi: unknown name 'u'; allowed: rho" in found
    found = refused(pair, coupling={"name": "shan_chen", "G": 1, "force": "guo2"})
    assert "coupling.force: found 'guo2'; allowed: exact_difference, guo" in found
    wall["boundary"][0]["wetting"] = {"water": 1, "mercury": 2}
    wanted = "boundary.0.wetting: found water, mercury; allowed: a density for each of water, oil"
    assert wanted in refused(pair, **wall)
    wall["boundary"][0] = {"name": "bounce_back", "where": ["x-", "x+", "y-"], "velocity": [0, 0.1]}
    assert "but shan_chen needs walls at rest" in refused(pair, **wall)
    for layout in ("moments", "indirect"):
        found = refused(pair, layout={"name": layout})
        assert (
            f"layout.name: '{layout}' does not support coupled fluids; allowed layouts: " in found
        )
    assert "16 bits" in refused(pair, precision=PRECISIONS["half"])
    output = [{"name": "snapshot", "every": 1, "fields": ["rho_mercury"]}]
    found = refused(pair, output=output)
    assert "'rho_mercury' is not a field; choose from rho, u" in found
    assert "rho_water, rho_oil" in found
    pair["fluid"][0]["collision"] = {"name": "mrt"}
    assert "fluid.water.collision: mrt does not relax momentum" in refused(pair)


def test_wetting_is_of_coupled_fluids():
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [4, 4], "periodic": [True, False]},
        "fluid": {"viscosity": 0.1},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"], "wetting": {"fluid": 1}}],
        "run": {"steps": 1},
    }
    assert "boundary.0.wetting: needs coupled fluids" in refused(tables)

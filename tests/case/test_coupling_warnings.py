"""Warnings of couplings unsuitable for the given densities, with numbers and a fix."""

import pytest
from support.coupled import box_of, two_fluids
from support.findings import warnings_of

from mpilbm.case.case import parse_case


@pytest.mark.parametrize(
    ("G", "rho", "warned"),
    [(-3.9, 0.69, False), (-4.1, 0.69, True), (-4.1, 0.1, False), (-4.1, "0.69", False)],
)
def test_a_uniform_fluid_that_separates_is_reported(G, rho, warned):
    """The critical point of psi = 1 - exp(-rho): G = -4 at rho = ln 2."""
    coupling = {"name": "shan_chen", "G": G}
    case = parse_case(box_of("D2Q9", [4, 4], coupling=coupling, initial={"rho": rho}), "a.toml")
    assert any("is unstable" in warning for warning in warnings_of(case)) == warned


def interface(G, low, high, tau=1.0):
    """Warnings of one fluid with two densities."""
    rho = f"{low} + {high - low}*(1 + tanh(x - nx/2))/2"
    tables = box_of("D2Q9", [32, 4], initial={"rho": rho}, fluid={"viscosity": (tau - 0.5) / 3})
    case = parse_case(tables | {"coupling": {"name": "shan_chen", "G": G}}, "a.toml")
    return " ".join(warnings_of(case))


def test_two_phases_that_mix_are_reported():
    """Above the critical G = -4."""
    assert "coupling.G: found -3.9; phases with the densities 0.2 and 1.5 mix" in interface(
        -3.9, 0.2, 1.5
    )
    assert not interface(-4.5, 0.2, 1.5)
    assert not interface(-3.9, 0.6, 0.8)
    pair = two_fluids("D2Q9")
    for fluid, sign in zip(pair["fluid"], "+-", strict=True):
        fluid["initial"] = {"rho": f"0.5 {sign} 0.45*tanh(y - ny/2)"}
    pair["coupling"]["G"] = 0.9  # they part where G^2 rho_1 rho_2 > 1, here at most 0.45^2
    assert "phases with the densities 0.05 and 0.95 mix" in " ".join(
        warnings_of(parse_case(pair, "a"))
    )
    pair["coupling"]["G"] = 2.2
    pair["fluid"][0]["viscosity"] = 0.05
    assert not warnings_of(parse_case(pair, "a.toml"))


def pair(nu, G=2.4, rho=(0.964, 0.128), **tables):
    """Warnings of two fluids with two phases."""
    mean, half = sum(rho) / 2, (rho[0] - rho[1]) / 2
    fluids = [
        {
            "label": label,
            "viscosity": each,
            "initial": {"rho": f"{mean} {sign} {half}*tanh(y-ny/2)"},
        }
        for label, each, sign in zip(("oil", "water"), nu, "+-", strict=True)
    ]
    coupling = {"name": "shan_chen", "psi": "rho", "G": G}
    found = box_of("D2Q9", [4, 32], fluid=fluids, coupling=coupling) | tables
    return " ".join(warnings_of(parse_case(found, "a.toml")))


@pytest.mark.parametrize("rho", [(0.964, 0.128), (1.09, 0.002)])
def test_viscosities_that_the_dissolved_fluid_changes_are_reported(rho):
    """From the densities after 4e4 steps in 64 cells, the viscosities are 0.065 and 0.184."""
    found = pair((0.05, 0.2), rho=rho)
    assert "the phases of oil and water have the viscosities 0.068 and 0.182 instead of" in found
    assert "about 12% of each is the other fluid" in found
    assert "give 0.0263 and 0.224, or raise |G|" in found
    assert "the largest ratio of the viscosities of the phases is 7.3" in pair((0.02, 0.2), rho=rho)
    assert pair((0.1, 0.1), rho=rho) == ""
    assert pair((0.05, 0.2), G=5.0, rho=rho) == ""


@pytest.mark.parametrize(("oil", "expected"), [(0.9, False), (1.5, True)])
def test_walls_without_a_contact_angle_are_reported(oil, expected):
    faces = {"where": ["y-", "y+"], "wetting": {"oil": oil, "water": 0.1}}
    tables = {"domain": {"size": [4, 32], "periodic": [True, False]}}
    found = pair((0.1, 0.1), boundary=[{"name": "bounce_back"} | faces], **tables)
    sentence = "boundary.0.wetting: psi of oil minus psi of water is 1.4 in the wall"
    assert (sentence in found) == expected
    assert bool(found) == expected


@pytest.mark.parametrize(
    ("G", "low", "high", "tau", "warned"),
    [
        (-5.0, 0.119, 1.888, 0.51, True),
        (-5.0, 0.119, 1.888, 0.6, False),
        (-6.0, 0.021, 3.1, 0.8, True),
        (-6.0, 0.021, 3.1, 1.0, False),
    ],
)
def test_tau_near_its_limit_is_reported(G, low, high, tau, warned):
    """Drops of R = 10, 4000 steps, bgk: those with a warning ended in NaN, the others did not."""
    found = interface(G, low, high, tau)
    assert ("coupling: tau = " in found and "too near 1/2" in found) == warned


@pytest.mark.parametrize(
    ("psi", "G", "low", "high", "taus", "warned"),
    [
        ("4*exp(-200/rho)", -120, 85, 520, (0.51,), True),
        ("4*exp(-200/rho)", -120, 85, 520, (0.525,), False),
        ("rho", 2.7, 0.081, 1.019, (0.53, 0.53), True),
        ("rho", 2.7, 0.081, 1.019, (0.55, 0.55), False),
        ("rho", 3.6, 0.0244, 1.076, (0.55, 0.55), True),
        ("rho", 3.6, 0.0244, 1.076, (0.6, 0.6), False),
        ("rho", 3.6, 0.0244, 1.076, (0.51, 1.0), False),
        ("rho", 2.0, 0.001, 1.1, (0.55, 0.55), False),  # which settles at 0.04 and 0.9
        ("1-exp(-rho)", 5.0, 0.05, 1.5, (0.55, 0.55), True),
        ("1-exp(-rho)", 5.0, 0.05, 1.5, (0.6, 0.6), False),
    ],
)
def test_tau_near_its_limit_is_reported_for_any_psi_and_two_fluids(psi, G, low, high, taus, warned):
    """As above: those with a warning ended in NaN, the others did not."""
    fluids = [
        {
            "label": f"fluid{k}",
            "viscosity": (tau - 0.5) / 3,
            "initial": {"rho": f"{(low + high) / 2} {sign} {(high - low) / 2}*tanh(x - nx/2)"},
        }
        for k, (tau, sign) in enumerate(zip(taus, "+-", strict=False))
    ]
    if len(fluids) == 1:
        del fluids[0]["label"]
        (fluids,) = fluids
        tables = box_of("D2Q9", [32, 4], fluid=fluids, initial=fluids.pop("initial"))
    else:
        tables = box_of("D2Q9", [32, 4], fluid=fluids)
    tables["coupling"] = {"name": "shan_chen", "G": G, "psi": psi}
    found = " ".join(warnings_of(parse_case(tables, "a.toml")))
    assert ("too near 1/2 for a density ratio of" in found) == warned
    assert "raise" in found or not warned


@pytest.mark.parametrize(
    ("psi", "G", "rho", "warned"),
    [
        ("rho", -1.0, "1 + 0.2*sin(2*pi*x/nx)", True),
        ("rho", -1.0, 1.2, True),
        ("rho", -1.0, 0.8, False),
        ("1-exp(-rho)", -5.0, 0.7, False),
        ("rho*exp(-rho)", -10.0, "0.3 + 0.1*sin(2*pi*x/nx)", False),
    ],
)
def test_a_fluid_without_a_liquid_is_reported(psi, G, rho, warned):
    """The first, with rho = 0.8 to 1.2, ended in NaN before step 500."""
    coupling = {"name": "shan_chen", "G": G, "psi": psi}
    tables = box_of("D2Q9", [8, 4], coupling=coupling, initial={"rho": rho})
    found = " ".join(warnings_of(parse_case(tables, "a.toml")))
    assert ("coupling.psi: found 'rho', with which 'fluid' has no stable liquid" in found) == warned


@pytest.mark.parametrize(
    ("name", "tau", "warned"), [("trt", 0.54, False), ("trt", 0.53, True), ("bgk", 0.54, True)]
)
def test_two_fluids_with_trt_allow_a_smaller_tau(name, tau, warned):
    """Drops at tau = 0.54 stayed stable with trt and ended in NaN with bgk; R = 10, 4000 steps."""
    fluids = [
        {
            "label": f"fluid{k}",
            "viscosity": (tau - 0.5) / 3,
            "collision": {"name": name},
            "initial": {"rho": f"0.5502 {sign} 0.5258*tanh(x - nx/2)"},
        }
        for k, sign in enumerate("+-")
    ]
    tables = box_of("D2Q9", [32, 4], fluid=fluids)
    tables["coupling"] = {"name": "shan_chen", "G": 3.6, "psi": "rho"}
    found = " ".join(warnings_of(parse_case(tables, "a.toml")))
    assert ("too near 1/2 for a density ratio of" in found) == warned

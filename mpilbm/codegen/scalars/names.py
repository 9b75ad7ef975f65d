"""The numbers of scalars that kernels take as arguments."""


def buoyancy_names(number: int, D: int) -> tuple[list[str], str]:
    """Arguments of kernels: gravity times beta along each axis, and the reference of a scalar."""
    return [f"buoyancy_{axis}_{number}" for axis in "xyz"[:D]], f"reference_{number}"


def buoyancy_numbers(case) -> dict[str, float]:
    """The arguments of `buoyancy_names` for all scalars of a case that act on the flow.

    The force is -rho_0 gravity sum_k beta_k (phi_k - reference_k).
    """
    if case.buoyancy is None:
        return {}
    found: dict[str, float] = {}
    for label, each in case.buoyancy.expansions.items():
        along, reference = buoyancy_names(case.labels.index(label), case.dimensions)
        found |= {
            name: -g * each.beta for name, g in zip(along, case.buoyancy.gravity, strict=True)
        }
        found[reference] = each.reference
    return found

"""The public names for plug-ins: base classes, `register`, and the types that methods use.

    from mpilbm.plugin import Collision, register

Everything else in the package may move between versions.
"""

from mpilbm.backends import Backend, Device
from mpilbm.core import quantity
from mpilbm.core.errors import CaseError, MpilbmError
from mpilbm.core.formulas.values import GivenVector as Vector
from mpilbm.core.formulas.values import Value
from mpilbm.core.registry import register
from mpilbm.halo import Exchange, Exchanger, Halo, incoming, outgoing
from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.outputs import Context, Output
from mpilbm.parallel import on_root
from mpilbm.physics.algebra import dot
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundaries.outflow import FromInside
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import (
    Behind,
    Beyond,
    Capabilities,
    LinkValue,
    PerLink,
    Reads,
)
from mpilbm.physics.closures import Closure
from mpilbm.physics.collisions import Collision
from mpilbm.physics.couplings import Coupling
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.motions import Motion, Placement
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.physics.scalars.collisions import ScalarCollision
from mpilbm.solids.rigid_shape import RigidShape
from mpilbm.solids.shapes import Shape
from mpilbm.storage.csv_log import Rows

__all__ = [
    "HERE",
    "Backend",
    "Behind",
    "Beyond",
    "Boundary",
    "Capabilities",
    "CaseError",
    "Closure",
    "Collision",
    "Context",
    "Coupling",
    "Device",
    "Equilibrium",
    "Exchange",
    "Exchanger",
    "Forcing",
    "FromInside",
    "Halo",
    "Lattice",
    "Layout",
    "LinkValue",
    "Motion",
    "MpilbmError",
    "Output",
    "PerLink",
    "Place",
    "Placement",
    "Reads",
    "RigidShape",
    "Rows",
    "ScalarBoundary",
    "ScalarCollision",
    "Shape",
    "Value",
    "Vector",
    "Wall",
    "against",
    "dot",
    "incoming",
    "on_root",
    "outgoing",
    "quantity",
    "register",
]

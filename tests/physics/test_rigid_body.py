"""The equations of motion of a rigid body, without a fluid: balances, springs, fixed degrees."""

import numpy as np
import pytest

from mpilbm.core.registry import make
from mpilbm.physics.rigid_body import WIDTH, State, rotation_of, turned_by

ZERO = np.zeros(3)
MOMENTS = np.diag([8.5, 18.25, 22.25])
CENTRE = np.array([5.0, 6.0, 7.0])


def start(D=3, volume=10.0, moments=MOMENTS, endless=(), **motion):
    free = make("motions", {"name": "free", "density": 2.0} | motion)
    inertia = free.inertia(volume, moments, endless, D, CENTRE)
    return inertia, free.start(inertia, CENTRE)


def test_a_body_that_tumbles_keeps_energy_and_angular_momentum():
    """About its middle axis, so that it turns over; the errors are of second order in the step."""
    errors = []
    for rate in (0.04, 0.02):
        inertia, state = start(rate=[rate / 30, rate, 0.0])
        energy, angular, tumbled = state.spin @ state.angular, state.angular, 0.0
        for _ in range(round(16 / rate)):
            state = inertia.advanced(state, ZERO, ZERO)
            tumbled = max(tumbled, abs((state.rotation.T @ state.spin)[0]))
            state = inertia_free(state)
        errors.append(abs(state.spin @ state.angular / energy - 1))
        assert state.angular == pytest.approx(angular, abs=1e-12)
        assert state.rotation @ state.rotation.T == pytest.approx(np.eye(3), abs=1e-13)
        assert tumbled > 0.5 * rate
    assert errors[0] < 2e-3
    assert errors[1] < 0.35 * errors[0]


def test_axes_of_the_shape_need_not_be_principal():
    """A shape whose tensor is not diagonal turns as the same shape along its principal axes."""
    R = rotation_of(turned_by(np.array([0.4, -0.7, 1.1]), np.array([1.0, 0, 0, 0])))
    spin = np.array([0.02, -0.01, 0.03])
    found = []
    for moments, rate in ((MOMENTS, spin), (R @ MOMENTS @ R.T, R @ spin)):
        inertia, state = start(moments=moments, rate=rate.tolist())
        for _ in range(50):
            state = inertia_free(inertia.advanced(state, ZERO, ZERO))
        found.append(state)
    assert found[1].spin == pytest.approx(R @ found[0].spin, abs=1e-13)
    assert found[1].rotation == pytest.approx(R @ found[0].rotation @ R.T, abs=1e-12)
    assert np.abs(found[0].spin - spin).max() > 1e-3


def inertia_free(state: State) -> State:
    """Without the inertia of the fluid inside, which the force on cells would contain."""
    return State(**(vars(state) | {"gained": ZERO, "turned": ZERO}))


@pytest.mark.parametrize("D", [2, 3])
def test_springs_and_torsion(D):
    """Period 2 pi sqrt(m / k) and amplitude of an oscillator in 20 periods."""
    T, m, J = 60.0, 20.0, 2.0 * 22.25
    k = (2 * np.pi / T) ** 2
    fixed = ["rotation_x", "rotation_y"] if D == 3 else []
    more = {"rate": [0, 0, 0.01] if D == 3 else 0.01, "torsion": J * k, "fixed": fixed}
    inertia, state = start(D, spring=[0, m * k, 0][:D], velocity=[0, 0.02, 0][:D], **more)
    seen = []
    for _ in range(round(20 * T)):
        state = inertia_free(inertia.advanced(state, ZERO, ZERO))
        seen.append((state.centre[1] - 6.0, float(state.angle[0]), state.centre[0] - 5.0))
    first, last = (np.abs(part).max(axis=0) for part in np.split(np.array(seen), 20)[::19])
    assert last == pytest.approx(first, rel=2e-3)
    assert last == pytest.approx([0.02 * T / (2 * np.pi), 0.01 * T / (2 * np.pi), 0], rel=5e-3)
    assert np.abs(seen[-1][:2]) == pytest.approx([0, 0], abs=0.02)


def test_dampers():
    """exp(-c t / m) of velocity and rate."""
    more = {"damper": [0.2, 0], "friction": 0.5, "velocity": [0.03, 0.01], "rate": 0.02}
    inertia, state = start(2, **more)
    for _ in range(100):
        state = inertia_free(inertia.advanced(state, ZERO, ZERO))
    assert state.velocity[:2] == pytest.approx([0.03 * np.exp(-1), 0.01], rel=1e-4)
    assert state.spin[2] == pytest.approx(0.02 * np.exp(-50 / 44.5), rel=1e-4)


def test_fixed_degrees_and_endless_axes():
    """They do not move; an infinite cylinder turns about its axis only."""
    push, turn = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    inertia, state = start(fixed=["y", "rotation_x"])
    for _ in range(5):
        state = inertia.advanced(inertia_free(state), push, turn)
    assert state.velocity == pytest.approx([0.25, 0, 0.75])
    assert state.spin[0] == 0
    assert np.abs(state.spin[1:]).min() > 0.01
    inertia, state = start(endless=(2,))
    state = inertia.advanced(state, push, turn)
    assert state.spin == pytest.approx([0, 0, 1 / 44.5])
    assert start(2, fixed=["rotation"])[0].turns.tolist() == [False] * 3


def test_packed_states_and_rotations():
    numbers = np.arange(float(WIDTH))
    assert np.array_equal(State.unpacked(numbers).packed(), numbers)
    turn = np.array([1.0, 0, 0, 0])
    for _ in range(4):
        turn = turned_by(np.array([0, 0, np.pi / 8]), turn)
    assert rotation_of(turn) @ [1, 0, 0] == pytest.approx([0, 1, 0])
    assert turned_by(ZERO, turn) == pytest.approx(turn)


def test_a_state_of_other_parameters():
    """After a restart with another density a body turns on, with a fixed rotation it does not."""
    _, state = start(rate=[0.01, 0.02, 0.0])
    heavier, _ = start(density=4.0)
    assert heavier.advanced(state, ZERO, ZERO).spin == pytest.approx(state.spin, abs=2e-4)
    at_rest, _ = start(fixed=["rotation"])
    found = at_rest.advanced(state, ZERO, ZERO)
    assert not found.spin.any()
    assert not found.angular.any()


@pytest.mark.parametrize(("fixed", "continues"), [([], True), (["rotation_x"], False)])
def test_one_free_axis_continues_rotations_about_it_only(fixed, continues):
    """The angle of such a body is that about its axis."""
    inertia, state = start(rate=[0.01, 0.0, 0.0])
    for _ in range(3):
        state = inertia.advanced(state, ZERO, ZERO)
    assert inertia.continues(state)
    fixed = [*fixed, "rotation_z"]
    other, _ = start(fixed=[*fixed, "rotation_y"] if continues else fixed)
    assert other.continues(state) is continues

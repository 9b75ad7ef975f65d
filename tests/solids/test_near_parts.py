"""The parts of a surface that are near another one, of gaps along a line."""

import numpy as np

from mpilbm.solids.near_parts import near_parts

X = np.arange(0, 80, 0.5)
POINTS = np.pad(X[:, None], ((0, 0), (0, 2)))


def force(saddle: float) -> float:
    """The sum of shares times normals of minima at 20, 30 and 60, the last one downwards.

    saddle: how far the gap rises between the first two; towards the last one it rises by 0.8.
    """
    places, rises = [0, 20, 25, 30, 45, 60, 80], [0.7, 0, saddle, 0, 0.8, 0, 0.7]
    normals = np.where(X < 45, 1.0, -1.0)[:, None]
    parts = near_parts(0.8 + np.interp(X, places, rises), POINTS, 1.0, 2.0)
    return sum(part.share * part.mean(normals)[0] for part in parts)


def test_a_third_contact_has_a_force_of_its_own_while_the_others_join():
    """From one contact upwards and one downwards to two upwards and one downwards."""
    found = np.array([force(saddle) for saddle in np.arange(0.0, 0.4, 0.005)])
    assert abs(found[0]) < 1e-12
    assert abs(found[-1] - 1) < 1e-12
    assert (np.diff(found) > -1e-12).all()
    assert np.diff(found).max() < 0.1

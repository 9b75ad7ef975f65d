"""The frequency of a signal, from its zero crossings, with its error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_PERIODS = 3
LEAST_SAMPLES = 4  # per period
NOISE = 1e-4  # rms relative to the size of the force: less may be round-off
IRREGULAR = 0.2  # standard deviation of the periods, relative to their mean
EXPLAINED = 0.7  # part of the variance that a periodic signal of this frequency has at least
HARMONICS = 3
REFINED = 2  # fits of mean and trend
CLEAR = 0.5  # of the rms: a crossing counts if the signal goes beyond it on both sides


@dataclass(frozen=True)
class Oscillation:
    """The frequency of a signal: the inverse of the mean period.

    error    standard error, from the scatter of the periods
    periods  the number of complete periods
    """

    frequency: float
    error: float
    periods: int


def oscillation(time: Floats, values: Floats, size: float = 0) -> Oscillation | None:
    """The frequency of a signal; None if there is none.

    The periods are the times between upward zero crossings of the signal without its mean and
    linear trend, at which it passes from below -CLEAR rms to above CLEAR rms. Mean and trend are
    fitted together with waves of the period found before. With n periods T_k

        f = 1 / T,   T = mean of T_k,   error = f std(T_k) / (T sqrt(n))

    `size`: the size of the force of which the signal is a component. A signal has no frequency if
    its rms is below NOISE times the size or times its own largest value, if it has fewer than
    LEAST_PERIODS periods or LEAST_SAMPLES values in a period, if its periods differ by more than
    IRREGULAR, and if waves of this frequency and its multiples have less than EXPLAINED of its
    variance.
    """
    if len(values) < LEAST_PERIODS * LEAST_SAMPLES or not np.isfinite(values).all():
        return None
    time = time - time[0]
    least = NOISE * max(size, float(np.abs(values).max()))
    steps, period = float(np.median(np.diff(time))), 0.0
    for _ in range(1 + REFINED):
        trend, waves = _fitted(time, values, period)
        signal = values - trend
        rms = float(signal.std())
        if not rms > least:
            return None
        periods = np.diff(upward_crossings(time, signal, CLEAR * rms))
        if periods.size < LEAST_PERIODS:
            return None
        period, scatter = float(periods.mean()), float(periods.std(ddof=1))
        if period < LEAST_SAMPLES * steps or scatter > IRREGULAR * period:
            return None
    if 1 - float(np.square(signal - waves).sum() / np.square(signal).sum()) < EXPLAINED:
        return None
    error = scatter / period / np.sqrt(periods.size) / period
    return Oscillation(1 / period, float(error), periods.size)


def upward_crossings(time: Floats, signal: Floats, margin: float) -> Floats:
    """The times of upward zero crossings from below -margin to above margin, interpolated.

    Of several crossings on the way the middle between the first and the last one counts.
    """
    beyond = np.where(signal > margin, 1, np.where(signal < -margin, -1, 0))
    known = np.flatnonzero(beyond)
    rises = np.flatnonzero((beyond[known][:-1] < 0) & (beyond[known][1:] > 0))
    found = []
    for begin, end in zip(known[rises], known[rises + 1], strict=True):
        part = slice(begin, end + 1)
        y, t = signal[part], time[part]
        changes = np.flatnonzero((y[:-1] < 0) != (y[1:] < 0))
        at = t[changes] - y[changes] * (t[changes + 1] - t[changes]) / (y[changes + 1] - y[changes])
        found.append((at[0] + at[-1]) / 2)
    return np.array(found)


def _fitted(time: Floats, values: Floats, period: float) -> tuple[Floats, Floats]:
    """A linear trend and the sum of waves with this period and its fractions, by least squares.

    The amplitude of the first wave may change linearly. No waves for the period 0.
    """
    angles = [2 * np.pi * k * time / period for k in range(1, 1 + HARMONICS)] if period else []
    waves = [f(angle) for angle in angles for f in (np.sin, np.cos)]
    waves += [wave * time / time[-1] for wave in waves[:2]]
    terms = np.stack([np.ones_like(time), time, *waves], axis=1)
    factors = np.linalg.lstsq(terms, values, rcond=None)[0]
    return terms[:, :2] @ factors[:2], terms[:, 2:] @ factors[2:]

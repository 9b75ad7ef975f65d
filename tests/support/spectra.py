"""Reference formulas of spectra, with complete arrays and complex transforms."""

import numpy as np


def wave_numbers(shape, D):
    """k along each of D axes, (D, *shape), and the waves with < 1/3 period per cell."""
    periods = np.stack(np.meshgrid(*map(np.fft.fftfreq, shape), indexing="ij"))[::-1]
    resolved = np.all(
        [np.rint(3 * abs(p) * n) < n for p, n in zip(periods, shape[::-1], strict=True)], axis=0
    )
    return 2 * np.pi * periods, resolved


def convective_transfer(u):
    """-Re(conj(u(k)).((u.grad) u)(k)) of each wave, for u (*shape, D) without divergence.

    The convective form and derivatives of complete arrays; no wave may reach 1/3 period per cell.
    """
    D, shape = u.shape[-1], u.shape[:-1]
    k, _ = wave_numbers(shape, D)
    waves = [np.fft.fftn(u[..., a]) / np.prod(shape) for a in range(D)]
    rate = np.zeros(shape)
    for a in range(D):
        gradients = [np.fft.ifftn(1j * k[b] * waves[a]) * np.prod(shape) for b in range(D)]
        term = sum(u[..., b] * gradients[b] for b in range(D))
        rate -= (waves[a].conj() * np.fft.fftn(term) / np.prod(shape)).real
    return k, rate


def solenoidal(shape, D, seed, below=1 / 3):
    """A random velocity (*shape, D) without divergence, of waves with less than `below` periods."""
    k, _ = wave_numbers(shape, D)
    kept = np.all(abs(k) < 2 * np.pi * (below - 1e-9), axis=0)
    noise = np.random.default_rng(seed).standard_normal((D, *shape))
    waves = np.fft.fftn(noise, axes=range(1, D + 1)) * kept
    squared = np.where((k**2).sum(axis=0) > 0, (k**2).sum(axis=0), 1)
    waves -= k * (k * waves).sum(axis=0) / squared
    return np.moveaxis(np.fft.ifftn(waves, axes=range(1, D + 1)).real, 0, -1)

"""Linear waves in a uniform flow: a step is a matrix that acts on their populations."""

import numpy as np

from support.equations import Numbers, model

CHANGE = 1e-5  # of a population, for central differences; the error is of second order


class Waves:
    """f(x, t) = feq(rho = 1, u) + a(t) exp(i k.x), a small: a(t + 1) = exp(-i k.c) J a(t).

    J = df*/df is the Jacobian of a collision at that equilibrium, from central differences of its
    equations; nothing is compiled. [Lallemand & Luo 2000, Phys. Rev. E 61, 6546]
    """

    def __init__(self, lattice: str, collision, nu: float, u=(0, 0, 0)):
        self._model = model(lattice, collision)
        self.lattice, self.nu = self._model.lattice, nu
        self._rates = self._model.collision.rates(nu, self.lattice)
        self.c, self._w = np.array(self.lattice.c), np.array(self.lattice.w, float)
        u = [float(v) for v in u[: self.lattice.D]]
        feq = np.array(self._model.collision.feq(self.lattice, 0.0, 1.0, u), float)
        changes = [(self._leaving(feq + e), self._leaving(feq - e))
                   for e in CHANGE * np.eye(self.lattice.Q)]  # fmt: skip
        self._J = np.stack([(a - b) / (2 * CHANGE) for a, b in changes], axis=1)

    def _leaving(self, f) -> np.ndarray:
        f_star = self._model.collide(Numbers(), [float(f_i) for f_i in f], self._rates)
        return np.array(f_star, float)

    def step(self, k) -> np.ndarray:
        """The matrices (…, Q, Q) of a step at wave vectors k (…, D)."""
        return np.exp(-1j * (np.asarray(k) @ self.c.T))[..., None] * self._J

    def viscosity(self, k, shear) -> float:
        """The viscosity, from the decay of the momentum along `shear` after the faster modes."""
        k, along = np.asarray(k, float), self.c @ np.asarray(shear, float)
        steps = round(1 / (self.nu * (k @ k)))
        many = np.linalg.matrix_power(self.step(k), steps)
        before = many @ (self._w * along)
        decay = abs(along @ before) / abs(along @ many @ before)
        return np.log(decay) / (steps * (k @ k))

    def growth(self, k) -> float:
        """The growth per step of the fastest growing wave; negative if none grows."""
        return abs(np.linalg.eigvals(self.step(k))).max() - 1

    def growth_between_walls(self, k, cells: int = 6) -> float:
        """The growth of waves along x (and z) between half-way walls at y- and y+.

        The walls move with the flow at u. They return each outgoing population plus a constant.
        It does not change the wave and preserves the uniform flow.
        """
        Q, opp = self.lattice.Q, list(self.lattice.opp)
        along = np.delete(self.c, 1, axis=1)
        crossing = np.exp(-1j * (along @ np.asarray(k, float)))[:, None] * self._J
        step = np.zeros((cells, Q, cells, Q), complex)
        for y in range(cells):
            for i, source in enumerate(y - self.c[:, 1]):
                inside = 0 <= source < cells
                step[y, i, source if inside else y] = crossing[i] if inside else self._J[opp[i]]
        return abs(np.linalg.eigvals(step.reshape(cells * Q, -1))).max() - 1

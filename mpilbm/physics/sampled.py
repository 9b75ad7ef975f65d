"""What samples of a flow contain, and the means and covariances that follow from their sums."""

from dataclasses import dataclass
from functools import cached_property

from mpilbm.physics.algebra import pairs


@dataclass(frozen=True)
class Sampled:
    """Samples of rho and q = (u, scalars), in D dimensions; `labels`: those of the scalars.

    Sums over samples are numbered: rho, q, and then the products q_a q_b of `pairs`.
    """

    D: int
    labels: tuple[str, ...] = ()

    @property
    def values(self) -> int:
        """The number of components of q."""
        return self.D + len(self.labels)

    @cached_property
    def fields(self) -> dict[str, list[int]]:
        """The fields of the results, and the numbers of the sums of their components.

        rho, u, reynolds_stress          <rho>, <u_a>, <u_a' u_b'>
        <label>, flux_<label>            <phi>, <u_a' phi'>
        variance_<label>                 <phi'^2>
        covariance_<label>_<label>       <phi' psi'>
        """
        D, first = self.D, 1 + self.values
        number = {pair: first + k for k, pair in enumerate(pairs(self.values))}
        found = {
            "rho": [0],
            "u": [1 + a for a in range(D)],
            "reynolds_stress": [number[pair] for pair in pairs(D)],
        }
        for k, label in enumerate(self.labels, D):
            found[label] = [1 + k]
            found[f"flux_{label}"] = [number[a, k] for a in range(D)]
            found[f"variance_{label}"] = [number[k, k]]
            for other, second in enumerate(self.labels[k - D + 1 :], k + 1):
                found[f"covariance_{label}_{second}"] = [number[k, other]]
        return found

    @property
    def components(self) -> dict[str, tuple[int, ...]]:
        """The fields of the results, and their shape at a place."""
        vectors = {"u", "reynolds_stress", *(f"flux_{label}" for label in self.labels)}
        return {name: (len(of),) if name in vectors else () for name, of in self.fields.items()}

    @property
    def repeated(self) -> list[str]:
        """Names that two of the fields would have."""
        made = [part + label for label in self.labels for part in ("flux_", "variance_")]
        return sorted(set(made) & set(self.labels))

"""Several slabs in one process, without MPI: for tests, and for a single rank."""

from collections import defaultdict, deque
from functools import partial

from mpilbm.errors import CaseError
from mpilbm.halo import Exchange, Exchanger, Halo
from mpilbm.halo.plan import incoming, outgoing
from mpilbm.registry import register


class LocalWorld:
    """The letter boxes of all slabs: start() of all of them, then finish() of all of them."""

    def __init__(self, ranks: int):
        self.ranks = ranks
        self._mail = defaultdict(deque)

    def exchanger(self, rank: int, slab, device) -> Exchanger:
        """The exchanger of slab `rank`."""
        if slab.rank != rank or slab.ranks != self.ranks:
            raise ValueError(f"slab {slab.rank} of {slab.ranks} is not slab {rank} of {self.ranks}")
        return Exchanger(partial(LocalExchange, self._mail, slab, device))


class LocalExchange(Exchange):
    """Copies to the letter box at start(), from it at finish()."""

    def __init__(self, mail, slab, device, plan, arrays):
        self._mail, self._device, self._rank = mail, device, slab.rank
        self._sends = [
            (message, piece, device.pinned(piece.size, piece.dtype))
            for message in outgoing(plan, slab)
            for piece in [message.of(arrays)]
        ]
        self._receives = [(message, message.of(arrays)) for message in incoming(plan, slab)]

    def start(self) -> None:
        """Post a copy of every piece."""
        copies = self._device.stream("copy")
        for message, piece, host in self._sends:
            self._device.copy(host, piece, copies)
            self._mail[self._rank, message.peer, message.tag].append(host)
        copies.synchronize()

    def finish(self) -> None:
        """Take what the neighbours posted; RuntimeError if they have not, or not as much."""
        copies = self._device.stream("copy")
        for message, piece in self._receives:
            box = self._mail[message.peer, self._rank, message.tag]
            if not box or box[0].size != piece.size:
                found = f"{box[0].size} values" if box else "nothing"
                raise RuntimeError(
                    f"slab {self._rank} awaits {piece.size} values of slab {message.peer} and "
                    f"finds {found}: all slabs must start before one finishes, by matching plans"
                )
            self._device.copy(piece, box.popleft(), copies)
        copies.synchronize()


@register("halo", "local")
class Local(Halo):
    """One process, no MPI: one rank only."""

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of the only slab; CaseError with more than one rank."""
        if comm.size > 1:
            raise CaseError(
                f"'local' does not reach other processes and there are {comm.size} ranks; "
                "use 'auto', 'direct' or 'staged'",
                "halo.name",
            )
        return LocalWorld(1).exchanger(0, slab, device)

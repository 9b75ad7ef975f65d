"""Planes travel by non-blocking messages of host memory: for CPUs."""

from functools import partial

from mpilbm.plugin import Exchange, Exchanger, Halo, incoming, outgoing, register


class PlainExchange(Exchange):
    """One exchange: prepared once, started at every step."""

    def __init__(self, slab, comm, device, plan, arrays):
        self.comm, self.requests = comm, []
        self.receives = [(message, message.of(arrays)) for message in incoming(plan, slab)]
        self.sends = [(message, message.of(arrays)) for message in outgoing(plan, slab)]

    def start(self, ready=None):
        """Post everything."""
        if ready is not None:
            self.wait(ready.synchronize)
        self.requests = [
            self.comm.Irecv(piece.view("u1"), m.peer, m.tag) for m, piece in self.receives
        ] + [self.comm.Isend(piece.view("u1"), m.peer, m.tag) for m, piece in self.sends]

    def arrival(self):
        """Wait on the host; None: nothing to wait for on the device."""
        for request in self.requests:
            self.wait(request.Wait)


@register("halo", "plain")
class Plain(Halo):
    """Non-blocking messages of host memory, on two ranks or more."""

    def open(self, slab, comm, device):
        """The exchanger of this rank's slab."""
        return Exchanger(partial(PlainExchange, slab, comm, device))

"""GPUs send to each other in the order of their streams, by NCCL: the host waits for nothing."""

import atexit
from functools import partial
from itertools import chain, zip_longest

from mpilbm import backends
from mpilbm.errors import CaseError, MpilbmError
from mpilbm.halo import Exchange, Exchanger, Halo, self_exchange
from mpilbm.halo.plan import Plan, incoming, outgoing
from mpilbm.parallel.agree import together
from mpilbm.registry import register


class NcclExchange(Exchange):
    """All messages of an exchange as one group of NCCL calls, behind the edge planes.

    ```
    edge stream  | edge kernels |===== group =====|arrived      | next edge kernels …
    bulk stream  | bulk kernel .............................|   | next lists, bulk kernel …
    ```

    NCCL knows no tags: what one rank sends another arrives in the order in which both name it.
    [NCCL user guide, Point-to-point communication]
    """

    in_streams = True

    def __init__(self, slab, network, device, plan: Plan, arrays):
        self._stream = device.stream("edge")
        sends, receives = (
            [(message.of(arrays), message.peer) for message in sorted(side, key=_tag)]
            for side in (outgoing(plan, slab), incoming(plan, slab))
        )
        self._group = network.group(sends, receives, self._stream)

    def start(self, ready=None) -> None:
        """Enqueue the group."""
        if ready is not None:
            self._stream.wait(ready)
        self._group()

    def arrival(self):
        """Behind the group."""
        return self._stream.record()


def _tag(message) -> int:
    return message.tag


class Network:
    """The GPUs of all ranks, as NCCL knows them. Collective."""

    def __init__(self, nccl, comm):
        identity = comm.bcast(nccl.get_unique_id() if comm.rank == 0 else None)
        self._nccl, self._rank = nccl, comm.rank
        self._communicator = nccl.NcclCommunicator(comm.size, identity, comm.rank)
        atexit.register(self._communicator.abort)  # waits for nobody; nothing once left

    def group(self, sends, receives, stream):
        """What enqueues sends and receives of (array, peer) in a stream, all at once."""
        nccl, ours, queue = self._nccl, self._communicator, stream.cupy.ptr
        both = zip_longest(
            ((ours.send, *each) for each in sends), ((ours.recv, *each) for each in receives)
        )
        calls = [
            partial(call, piece.data.ptr, piece.nbytes, nccl.NCCL_UINT8, peer, queue)
            for call, piece, peer in filter(None, chain.from_iterable(both))
        ]

        def enqueue():
            try:
                nccl.groupStart()
                for call in calls:
                    call()
                nccl.groupEnd()
            except nccl.NcclError as error:
                self._lost(error)

        return enqueue if calls else lambda: None

    def check(self) -> None:
        """MpilbmError if another rank or the way to it is gone: what is awaited will not come."""
        try:
            self._communicator.check_async_error()
        except self._nccl.NcclError as error:
            self._lost(error)

    def _lost(self, error):
        """Give up what waits in the device, and tell the user."""
        self._communicator.abort()
        raise MpilbmError(
            f"rank {self._rank}: NCCL lost the other ranks ({error}); see what they say, and with "
            "NCCL_DEBUG=WARN what NCCL says of the network; --restart auto goes on from the last "
            "checkpoint"
        ) from error

    def leave(self) -> None:
        """Give the network back, all ranks at once."""
        self._communicator.destroy()


class NcclExchanger(Exchanger):
    """Exchanges over one network, which ends with them if all goes well.

    Leaving a network is collective: a rank that fails, or forgets, leaves that to its end.
    """

    def __init__(self, slab, comm, device, network):
        super().__init__(partial(NcclExchange, slab, network, device))
        self._comm, self._device, self._network = comm, device, network
        device.watch(network.check)  # a stream that waits for a rank that is gone never ends

    def __exit__(self, kind, *error):
        super().__exit__(kind, *error)
        if kind is None:  # what a neighbour still receives may lie in this rank's memory
            self._device.synchronize()
            self._comm.Barrier()
            self._network.leave()
        self._device.watch(None)


def library():
    """CuPy's module for NCCL; CaseError with the mend where it cannot be loaded."""
    from cupy.cuda import nccl, runtime

    if not nccl.available:
        cuda = runtime.runtimeGetVersion() // 1000
        raise CaseError(
            f"CuPy finds no NCCL library; pip install nvidia-nccl-cu{cuda}, or use 'direct' or "
            "'staged'",
            "halo.name",
        )
    return nccl


@register("halo", "nccl")
class Nccl(Halo):
    """GPUs send to each other by NCCL, in the order of streams; one GPU per rank."""

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of this rank's slab. Collective; CaseError on all ranks alike."""
        if comm.size == 1:
            return self_exchange.exchanger(slab, device)
        if device.kind != "cuda":
            raise CaseError(
                "'nccl' sends from GPU to GPU, and the ranks run on CPUs; use 'auto', 'direct' "
                "or 'staged'",
                "halo.name",
            )
        if shared := backends.shared_devices(comm.allgather(device.identity)):
            raise CaseError(
                f"NCCL takes one GPU per rank: {'; '.join(shared)}, or use 'direct' or 'staged'",
                "halo.name",
            )
        return NcclExchanger(slab, comm, device, Network(together(comm, library), comm))

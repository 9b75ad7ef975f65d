"""GPUs send to each other by NCCL in the order of their streams, asynchronously."""

import atexit
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, zip_longest
from operator import attrgetter
from typing import Any, NoReturn, TypeVar

from mpilbm.backends import Device
from mpilbm.backends.cuda.launch import CudaStream
from mpilbm.backends.interfaces import Event
from mpilbm.core.errors import CaseError, MpilbmError
from mpilbm.core.registry import register
from mpilbm.halo import Exchange, Exchanger, Halo, Plan, incoming, outgoing
from mpilbm.halo.local import alone
from mpilbm.halo.neighbours import arrives, own_gpus
from mpilbm.parallel import Communicator, on_root, together
from mpilbm.parallel.slabs import Slab

T = TypeVar("T")
Piece = tuple[Any, int]  # a device array, and the other rank
TRIAL_SECONDS = 30.0  # for the bytes of a trial to arrive


class NcclExchange(Exchange):
    """All messages of an exchange as one group of NCCL calls, after the edge planes.

    ```
    edge stream  | edge kernels |===== group =====|arrived      | next edge kernels …
    bulk stream  | bulk kernel .............................|   | next lists, bulk kernel …
    ```

    NCCL has no tags: messages between two ranks match in the order in which both name them.
    [NCCL user guide, Point-to-point communication]
    """

    in_streams = True

    def __init__(
        self, slab: Slab, network: "Network", device: Any, plan: Plan, arrays: Sequence[Any]
    ):
        self._stream = device.stream("edge")
        sends, receives = (
            [(message.of(arrays), message.peer) for message in sorted(side, key=attrgetter("tag"))]
            for side in (outgoing(plan, slab), incoming(plan, slab))
        )
        self._pieces = sends, receives  # kept alive: NCCL has their addresses only
        self._group = network.group(sends, receives, self._stream)

    def start(self, ready: Event | None = None) -> None:
        """Enqueue the group."""
        if ready is not None:
            self._stream.wait(ready)
        self._group()

    def arrival(self) -> Event:
        """The event after the group."""
        return self._stream.record()


class Network:
    """The NCCL communicator of all ranks. Collective."""

    def __init__(self, nccl: Any, comm: Communicator, identity: tuple[int, ...]):
        self._nccl, self._rank = nccl, comm.rank
        self._communicator = nccl.NcclCommunicator(comm.size, identity, comm.rank)
        atexit.register(self._communicator.abort)  # not collective; no effect after `leave`

    def group(
        self, sends: Sequence[Piece], receives: Sequence[Piece], stream: CudaStream
    ) -> Callable[[], None]:
        """A function that enqueues sends and receives of (array, peer) in a stream as one group."""
        nccl, ours, queue = self._nccl, self._communicator, stream.cupy.ptr
        both = zip_longest(
            ((ours.send, *each) for each in sends), ((ours.recv, *each) for each in receives)
        )
        calls = [
            partial(call, piece.data.ptr, piece.nbytes, nccl.NCCL_UINT8, peer, queue)
            for call, piece, peer in filter(None, chain.from_iterable(both))
        ]

        def enqueue() -> None:
            try:
                nccl.groupStart()
                for call in calls:
                    call()
                nccl.groupEnd()
            except nccl.NcclError as error:
                self._lost(error)

        return enqueue if calls else lambda: None

    def check(self) -> None:
        """Raise MpilbmError if another rank or the network to it has failed."""
        try:
            self._communicator.check_async_error()
        except self._nccl.NcclError as error:
            self._lost(error)

    def abort(self) -> None:
        """End the communication that waits on the device. Not collective."""
        self._communicator.abort()

    def _lost(self, error: Exception) -> NoReturn:
        """Abort the communication that waits on the device, and raise MpilbmError."""
        self.abort()
        raise MpilbmError(
            f"rank {self._rank}: NCCL lost the other ranks ({error}); see their messages, and with "
            "NCCL_DEBUG=WARN those of NCCL about the network; --restart auto continues from the "
            "last checkpoint"
        ) from error

    def leave(self) -> None:
        """Destroy the communicator. Collective."""
        self._communicator.destroy()


class NcclExchanger(Exchanger):
    """Exchanges over one network, which is destroyed with them unless an error has occurred.

    Destroying a network is collective. After an error the network is not destroyed; it is aborted
    when the process ends.
    """

    def __init__(self, slab: Slab, comm: Communicator, device: Device, network: Network):
        super().__init__(partial(NcclExchange, slab, network, device))
        self._comm, self._device, self._network = comm, device, network
        device.watch(network.check)  # a stream that waits for a rank that has ended never ends

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:  # a neighbour may still receive from this rank's memory
            self._device.synchronize()
            self._comm.Barrier()
            self._network.leave()
        self._device.watch(None)


def library() -> Any:
    """CuPy's module for NCCL; CaseError with the fix if it cannot be loaded."""
    from cupy.cuda import nccl, runtime

    if not nccl.available:
        cuda = runtime.runtimeGetVersion() // 1000
        raise CaseError(
            f"CuPy finds no NCCL library; pip install nvidia-nccl-cu{cuda}, or use 'direct' or "
            "'staged'",
            "halo.name",
        )
    return nccl


def joined(comm: Communicator) -> Network:
    """The network of all ranks. Collective; CaseError on all ranks."""
    nccl = together(comm, library)
    identity = on_root(comm, _reported, nccl, nccl.get_unique_id)
    return together(comm, _reported, nccl, Network, nccl, comm, identity, waits=True)


def _reported(nccl: Any, action: Callable[..., T], *arguments: Any) -> T:
    """`action(*arguments)`; an error of NCCL becomes a CaseError."""
    try:
        return action(*arguments)
    except nccl.NcclError as error:
        raise CaseError(
            f"NCCL does not connect the ranks ({error}); NCCL_DEBUG=WARN shows the reason, or use "
            "'direct' or 'staged'",
            "halo.name",
        ) from error


def require_arrival(network: Network, slab: Slab, comm: Communicator, device: Device) -> None:
    """Abort the network and raise CaseError on all ranks unless a trial succeeds. Collective."""
    end = time.monotonic() + TRIAL_SECONDS

    def check() -> None:
        network.check()
        if time.monotonic() > end:
            raise MpilbmError(f"rank {comm.rank} received nothing within {TRIAL_SECONDS:g} s")

    device.watch(check)
    try:
        arrived = arrives(partial(NcclExchange, slab, network, device), slab, comm, device)
        wrong = [str(k) for k, one in enumerate(comm.allgather(arrived)) if not one]
        why = f"wrong values arrived on rank {', '.join(wrong)}" if wrong else ""
    except MpilbmError as error:  # on all ranks
        why, *_ = str(error).split(";")
    device.watch(None)
    if why:
        network.abort()
        raise CaseError(
            f"a trial of 'nccl' failed: {why}; try NCCL_P2P_DISABLE=1, NCCL_DEBUG=WARN shows more, "
            "or use 'direct' or 'staged'",
            "halo.name",
        )


@register("halo", "nccl")
class Nccl(Halo):
    """GPUs send to each other by NCCL, in the order of streams; one GPU per rank.

    A trial transfer to both neighbours must succeed before it is used.
    """

    def open(self, slab: Slab, comm: Communicator, device: Device) -> Exchanger:
        """The exchanger of this rank's slab. Collective; CaseError on all ranks."""
        if comm.size == 1:
            return alone(slab, device)
        own_gpus("nccl", comm, device)
        network = joined(comm)
        require_arrival(network, slab, comm, device)
        return NcclExchanger(slab, comm, device, network)

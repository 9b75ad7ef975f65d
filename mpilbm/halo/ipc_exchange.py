"""Exchanges between GPUs of one node, each of which writes into the neighbours' memory."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from mpilbm.backends.cuda import CudaDevice
from mpilbm.backends.interfaces import Array, Event, Launch
from mpilbm.core.errors import CaseError, MpilbmError
from mpilbm.halo import Exchange, Exchanger, Message, Plan, incoming, ipc_kernel, outgoing
from mpilbm.halo.ipc_kernel import (
    ARRIVED,
    FLAG_BYTES,
    FREE,
    JOINT_ARRIVED,
    JOINT_STEPS,
    LOWER,
    UPPER,
    ExchangeKernel,
    JointStep,
    flag_place,
)
from mpilbm.halo.neighbours import Neighbours
from mpilbm.layouts.grid import Grid
from mpilbm.parallel import Communicator, together
from mpilbm.parallel.slabs import Slab

WAYS = "use 'auto' or 'nccl'"
VISIBLE = (
    "which this rank does not see: --gpu-bind=none (SLURM), or CUDA_VISIBLE_DEVICES unset, makes "
    "all GPUs of the node visible to every rank"
)


def refuse(why: str) -> NoReturn:
    """Raise the CaseError that says why 'cuda_ipc' cannot be used."""
    raise CaseError(f"'cuda_ipc' {why}", "halo.name")


class Windows:
    """GPU memory shared among the ranks of a node; the GPUs of `hidden` ranks are not visible."""

    def __init__(self, runtime: Any, hidden: frozenset[int] = frozenset()):
        self._runtime, self._driver = runtime, ctypes.CDLL("libcuda.so.1")
        self._hidden = hidden
        self._opened: dict[tuple, int] = {}

    def address(self, array: Any) -> int:
        """The address of an array of this rank."""
        return array.data.ptr

    def export(self, array: Any) -> tuple[bytes, int]:
        """(IPC handle, offset of the array), with which another rank calls `open`.

        The handle refers to a whole allocation of cudaMalloc, of which the array may be a part.
        Raises CaseError if the driver returns an error.
        """
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        place = ctypes.c_uint64(array.data.ptr)
        ask = self._driver.cuMemGetAddressRange_v2
        if error := ask(ctypes.byref(base), ctypes.byref(size), place):
            refuse(
                "cannot share memory with other ranks: "
                f"cuMemGetAddressRange returns {error}; {WAYS}"
            )
        try:
            handle = self._runtime.ipcGetMemHandle(base.value)
        except self._runtime.CUDARuntimeError as error:  # such as: not supported
            refuse(f"cannot share memory with other ranks ({error}); {WAYS}")
        return handle, array.data.ptr - base.value

    def open(self, rank: int, exported: tuple[bytes, int]) -> int:
        """The address of another rank's array in this rank's address space."""
        handle, offset = exported
        key = rank, handle
        if key not in self._opened:
            try:
                self._opened[key] = self._runtime.ipcOpenMemHandle(handle)
            except self._runtime.CUDARuntimeError as error:
                hidden = f", {VISIBLE}" if rank in self._hidden else ""
                refuse(
                    f"cannot open memory of rank {rank}'s GPU ({error}){hidden}; containers must "
                    f"share IPC and PID namespaces, or {WAYS}"
                )
        return self._opened[key] + offset

    def close(self) -> None:
        """Close all opened memory, before the other ranks free it."""
        while self._opened:
            self._runtime.ipcCloseMemHandle(self._opened.popitem()[1])


class Peers:
    """The data that the exchanges of a rank share: GPU, memory of the neighbours, and kernel.

    `prepared`: exchanges that `connect` has not connected yet. `joint_flags`: of all joint steps,
    each of which awaits the planes of the previous one, whichever exchange it belongs to.
    """

    def __init__(self, slab: Slab, comm: Communicator, device: CudaDevice, windows: Windows):
        self.slab, self.comm, self.device, self.windows = slab, comm, device, windows
        self.kernel, self.prepared = ExchangeKernel(device), list[IpcExchange]()
        self.joint_flags = self.kernel.allocate_flags()
        self.neighbours: Neighbours | None = None  # watched from connect() on

    def check(self) -> None:
        """Raise MpilbmError if a neighbour's process has ended; kernels then stop waiting."""
        try:
            if self.neighbours is not None:
                self.neighbours.check()
        except MpilbmError:
            self.kernel.stop_waiting()
            raise

    def connect(self) -> None:
        """Connect all exchanges that are prepared, the same on all ranks; collective."""
        self.neighbours = Neighbours(self.slab, self.comm)
        self.device.watch(self.check)
        new = list(self.prepared)
        self.prepared.clear()
        exports = self.comm.allgather(together(self.comm, lambda: [each.exports() for each in new]))

        def connect() -> None:
            for each, of_all_ranks in zip(new, zip(*exports, strict=True), strict=True):
                each.connect(of_all_ranks)

        together(self.comm, connect)


class IpcExchange(Exchange):
    """The pieces of a plan, written by a kernel in the edge stream.

    The first start() of any exchange connects all that have been prepared before it.
    """

    in_streams = True

    def __init__(self, peers: Peers, plan: Plan, arrays: tuple[Any, ...]):
        self._peers, self._plan, self._arrays = peers, plan, arrays
        self._stream = peers.device.stream("edge")
        self._flags = peers.kernel.allocate_flags()
        self._launch: Callable[..., None] | None = None  # set by connect()
        self._step: JointStep | None = None  # set by join()
        self._faces: Array | None = None  # set by connect() with `joint`
        peers.prepared.append(self)

    def join(self, launch: Launch, grid: Grid) -> None:
        """Offer the kernel of the step; `connect` sets `joint` if all ranks can use theirs."""
        size = self._arrays[0].itemsize
        self._step = JointStep(self._peers.slab, self._plan, launch, grid, size)

    def await_joint(self) -> None:
        """Let the bulk stream wait for the planes of the last joint launch."""
        assert self._faces is not None
        self._peers.kernel.arrive(self._faces, self._peers.device.stream("bulk"))

    def start(self, ready: Event | None = None) -> None:
        """Enqueue the kernel. The first call is collective, and the host waits for the others."""
        if self._launch is None:
            self._peers.connect()
        assert self._launch is not None
        if ready is not None:
            self._stream.wait(ready)
        self._launch(self._stream, await_free=ready is None or not self._plan.alternating)

    def arrival(self) -> Event:
        """The event after the kernel."""
        return self._stream.record()

    def free(self) -> None:
        """Remove the exchange, and so its arrays, from those that wait for `connect`."""
        if self in self._peers.prepared:
            self._peers.prepared.remove(self)

    def connect(self, exports: Sequence[dict]) -> None:
        """Bind the kernel to the neighbours' planes; `exports`: those of all ranks."""
        self._launch = self._peers.kernel.bind(self._flags, *self.tables(exports))
        if self._step is not None and all(each["joint"] for each in exports):
            self._faces = self._peers.device.upload(self._joint_table(self._step, exports))
            assert self._step.launch.joint is not None
            self.joint = self._step.launch.joint(self._faces)

    def exports(self) -> dict:
        """IPC handles of the flags and arrays that neighbours write, and where their pieces go.

        places: by (sender, tag) the number of the array, the first byte and the number of bytes.
        """
        messages, export = incoming(self._plan, self._peers.slab), self._peers.windows.export
        arrays = {number: export(self._arrays[number]) for number in {m.array for m in messages}}
        places = {}
        for message in messages:
            size = self._arrays[message.array].itemsize
            begin, end = (size * k for k in (message.elements.start, message.elements.stop))
            places[message.peer, message.tag] = message.array, begin, end - begin
        joint = self._step is not None and self._step.possible
        flags = {"flags": export(self._flags), "joint_flags": export(self._peers.joint_flags)}
        return flags | {"arrays": arrays, "places": places, "joint": joint}

    def tables(self, exports: Sequence[dict]) -> tuple[np.ndarray, np.ndarray]:
        """The kernel's tables: addresses (2 sides, 4), and (pieces, 3: from, to, bytes)."""
        windows, slab = self._peers.windows, self._peers.slab
        goes, comes = outgoing(self._plan, slab), incoming(self._plan, slab)
        sides, own = np.zeros((2, 4), np.uint64), windows.address(self._flags)
        for side, peer in ((LOWER, slab.lower), (UPPER, slab.upper)):
            theirs = 0 if peer is None else windows.open(peer, exports[peer]["flags"])
            sides[side, 2:] = [own + flag_place(line, side) for line in (FREE, ARRIVED)]
            if any(_side(m, +1) == side for m in comes):
                sides[side, 0] = theirs + flag_place(FREE, 1 - side)
            if any(_side(m, -1) == side for m in goes):
                sides[side, 1] = theirs + flag_place(ARRIVED, 1 - side)
        pieces = np.zeros((len(goes), 3), np.uint64)
        for row, message in zip(pieces, goes, strict=True):
            piece = message.of(self._arrays)
            row[:] = windows.address(piece), self._place(message, exports), piece.nbytes
        return sides, pieces

    def _place(self, message: Message, exports: Sequence[dict]) -> int:
        """The address at which a message arrives in the memory of its receiver."""
        there, size = exports[message.peer], message.of(self._arrays).nbytes
        array, begin, count = there["places"][self._peers.slab.rank, message.tag]
        if count != size:
            raise RuntimeError(f"{size} bytes for a place of {count}: plans differ")
        return self._peers.windows.open(message.peer, there["arrays"][array]) + begin

    def _joint_table(self, step: JointStep, exports: Sequence[dict]) -> np.ndarray:
        """`struct Faces` of the joint kernel, with the addresses of all flags."""
        peers, flags = self._peers, {}
        own = peers.windows.address(peers.joint_flags)
        for side, peer in ((LOWER, peers.slab.lower), (UPPER, peers.slab.upper)):
            assert peer is not None  # see JointStep.possible
            theirs = peers.windows.open(peer, exports[peer]["joint_flags"])
            steps = own + flag_place(JOINT_STEPS, side)
            flags[side] = (
                theirs + flag_place(JOINT_ARRIVED, 1 - side),
                own + flag_place(JOINT_ARRIVED, side),
                *(steps, steps + FLAG_BYTES),
                3 + side,
            )
        place = partial(self._place, exports=exports)
        return step.table(place, flags, peers.kernel.failure_address, peers.kernel.patience)


def _side(message: Message, sign: int) -> int:
    """The face through which a message comes (+1) or goes (-1)."""
    return int(message.upwards if sign < 0 else not message.upwards)


class IpcExchanger(Exchanger):
    """Exchanges between GPUs of one node."""

    def __init__(
        self,
        slab: Slab,
        comm: Communicator,
        device: CudaDevice,
        windows: Windows,
        kind: type[IpcExchange] = IpcExchange,
    ):
        self.peers = Peers(slab, comm, device, windows)
        super().__init__(partial(kind, self.peers))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        peers = self.peers
        if kind is None:  # memory is freed after all ranks have stopped writing and closed it
            peers.device.synchronize()
            peers.comm.Barrier()
            peers.windows.close()
            peers.comm.Barrier()
        else:
            peers.kernel.stop_waiting()
        peers.device.watch(None)
        super().__exit__(kind, error, trace)
        if kind is not None and (failed := peers.kernel.failed):
            raise MpilbmError(self._silent(*failed)) from error

    def _silent(self, side: int, missing: str) -> str:
        slab = self.peers.slab
        peer = slab.upper if side == UPPER else slab.lower
        return (
            f"rank {slab.rank}: the GPU of rank {peer} {missing} planes for {ipc_kernel.PATIENCE} "
            "s; see the messages of that rank, and nvidia-smi of its GPU"
        )

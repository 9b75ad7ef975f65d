"""A simulation as a Python object: set up, advanced, read and changed by a program."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, overload

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.given_objects import require_path
from mpilbm.core.errors import MpilbmError, UsageError
from mpilbm.core.units import TIME
from mpilbm.model.findings import Finding
from mpilbm.outputs import Context
from mpilbm.parallel import Communicator
from mpilbm.parallel.ranks import guard, world
from mpilbm.run import cell_fields
from mpilbm.run.cell_fields import (
    require_case_and_comm,
    require_count,
    require_function,
)
from mpilbm.run.march import Failure, March
from mpilbm.run.moved_bodies import MovedBody, of_run
from mpilbm.run.progress import Say
from mpilbm.run.set_field import Given, set_field
from mpilbm.run.start import Request, start
from mpilbm.run.stopping import Calls, interruption, interrupts, undivided
from mpilbm.solver.step_times import Clock

CLOSED = "this simulation is closed; create another Simulation"


class Simulation:
    """A case on the ranks of a communicator: one slab of the box on each rank.

        with mpilbm.Simulation(mpilbm.load_case("case.toml")) as sim:
            sim.run(500)
            u = sim.field("u")

    - `comm`: a communicator of mpi4py; by default all ranks that the launcher started. With
      MPI.COMM_SELF each rank has a simulation of its own.
    - `directory`: a folder for the outputs of the case and `summary.json`, as written by
      `mpilbm run`. Without it the output tables of the case write no files.
    - `restart`: a checkpoint, or "auto" for the newest intact one in `directory`.
    - `overwrite`: replace the files of an earlier run in `directory`.
    - `verbose`: print the lines that `mpilbm run` prints; `messages` keeps them in any case.

    Its attributes: `case`, with the layout that was chosen; `comm`; `findings` of `mpilbm check`
    and of the run so far; `messages`.

    All ranks of `comm` create it, and all of them call each method, except where the method says
    otherwise; the properties may be read on any rank. Errors are MpilbmError with the text of the
    command line, raised on all ranks alike: CaseError for the case, UsageError for arguments,
    NonFiniteError if the flow becomes unstable, FileSystemError. An excepthook aborts the other
    ranks if an error ends the program on some.
    """

    def __init__(
        self,
        case: Case,
        comm: Communicator | None = None,
        *,
        directory: Path | str | None = None,
        restart: Path | str | None = None,
        overwrite: bool = False,
        verbose: bool = False,
    ):
        require_case_and_comm(case, comm)
        if directory is not None:
            require_path("Simulation: directory", directory, "a folder")
        clock = Clock()
        self.comm: Communicator = world() if comm is None else comm
        guard(self.comm)
        self.messages: list[str] = []
        self._running = False
        self._march: March | None = None
        self._failed: Failure | None = None  # besides that of the march
        self._closed: tuple[int, str] | None = None  # the last step and reason
        folder = None if directory is None else Path(directory)
        with ExitStack() as stack:
            say = Say(self.comm, self.messages, verbose)
            request = Request(case, self.comm, folder, restart, overwrite, clock, say)
            self._started = start(request, stack)
            self._stack = stack.pop_all()
        self.findings: list[Finding] = self._started.context.findings
        self.case: Case = self._started.context.case

    def __enter__(self) -> Self:
        if self._closed is not None:
            raise UsageError(CLOSED)
        return self

    @undivided
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._closed is not None:
            return
        self._closed = self.step, self.reason
        if failure := self._failure:
            error = error or failure.error
        try:
            self._stack.__exit__(type(error) if error else None, error, trace)
        finally:
            del self._started, self._stack
            self._march = None

    def close(self) -> None:
        """Complete the files and free the memory; further calls do nothing.

        The end of a `with` block does the same. UsageError in the function given to `run`.
        """
        if self._running:
            raise UsageError("close: is called by the function of a run; return from it first")
        self.__exit__(None, None, None)

    @property
    def context(self) -> Context:
        """The parts of this rank, for outputs.

        UsageError if the simulation is closed, or its state is that of no step.
        """
        if self._closed is not None:
            raise UsageError(CLOSED)
        if self._failure and self._failure.in_steps:
            raise self._cannot_continue(self._failure)
        return self._started.context

    @property
    def _failure(self) -> Failure | None:
        return self._failed or (self._march.failure if self._march else None)

    def _cannot_continue(self, failure: Failure) -> UsageError:
        again = "create another Simulation"
        if self._started.context.keeps_files:
            again += ' with restart = "auto", which continues from the last checkpoint'
        return UsageError(f"this simulation has failed {failure}, and cannot continue; {again}")

    @property
    def march(self) -> March:
        """The loop over time steps, with the open outputs. Collective at the first use.

        UsageError if the simulation is closed or has failed.
        """
        if self._closed is not None:
            raise UsageError(CLOSED)
        if self._failure:
            raise self._cannot_continue(self._failure)
        if self._march is None:
            try:
                self._march = March(self._started, self._stack)
            except BaseException as error:
                self._failed = Failure(error, "when its outputs were opened", False)
                raise
        return self._march

    @property
    def rank(self) -> int:
        """The number of this rank in `comm`, from 0."""
        return self.comm.rank

    @property
    def step(self) -> int:
        """How many time steps are done."""
        return self._closed[0] if self._closed else self._started.context.solver.steps

    @property
    def time(self) -> float:
        """The time: in seconds if the case has [units], else in steps."""
        units = self.case.units
        return float(self.step) if units is None else float(units.to_si(self.step, TIME))

    @property
    def reason(self) -> str:
        """Why the last `run` ended before its last step, such as a steady flow; else ""."""
        if self._closed:
            return self._closed[1]
        return self._march.reason if self._march else ""

    @property
    def planes(self) -> tuple[int, int]:
        """The planes begin <= z < end of the box that this rank has; in 2D along y."""
        return self.context.slab.begin, self.context.slab.end

    def run(
        self,
        steps: int | None = None,
        every: int = 1,
        call: "Callable[[Simulation], object] | None" = None,
    ) -> None:
        """Advance by so many time steps; without `steps`, to `run.steps` of the case.

        `call(sim)` is called on all ranks at each step that is a multiple of `every`, after the
        outputs of this step. It may call all other methods but `run` and `close`. The flow is
        checked every 1000 steps and at the end. The run ends earlier, with a `reason`, if the case
        has `run.steady` and the flow is steady. Several calls leave the same bits as a single one.

        Ctrl-C raises KeyboardInterrupt within about a second, on all ranks at the same step, when
        all outputs of this step are complete; the next call continues as if nothing had happened.
        So does the next call after an error of `call`, if all ranks have it. After an error in a
        step or an output, and after a second Ctrl-C, which does not wait, further calls raise
        UsageError.
        """
        if self._running:
            raise UsageError("run: is called by the function of another run; return from it first")
        require_count("steps", steps, least=0)
        require_count("every", every, least=1)
        require_function(call)
        last = self.context.case.run.steps if steps is None else self.step + steps
        self._running = True
        try:
            with interrupts.delayed():
                march = self.march
                calls = [Calls(self, every, call)] if call else []
                try:
                    march.to(max(last, self.step), [*calls, interruption(march)])
                except BaseException:
                    if self.comm.size == 1 and not march.failure:  # an error of `call`
                        with suppress(MpilbmError):
                            march.finish()
                    raise
        finally:
            self._running = False

    @overload
    def field(self, name: str, *, fluid: str | None = None, local: Literal[True]) -> np.ndarray: ...

    @overload
    def field(
        self, name: str, *, fluid: str | None = None, local: bool = False
    ) -> np.ndarray | None: ...

    @undivided
    def field(
        self, name: str, *, fluid: str | None = None, local: bool = False
    ) -> np.ndarray | None:
        """A field of the present step as a new array, (nz, ny, nx) or in 2D (ny, nx).

        u and in 3D vorticity have their components along a last axis: (nz, ny, nx, 3), in 2D
        (ny, nx, 2). Names are those of `snapshot`: rho, u, pressure, vorticity, q_criterion,
        scalars, the fields of the coupling, and `solid`: True in solid cells, where rho = 1 and
        u = 0, and in moving bodies. `fluid`: its label, field("rho", fluid="oil") is
        field("rho_oil"). Values are in lattice units and in the type `precision.compute`.

        The array is returned on rank 0, and None on the other ranks. With `local` each rank gets
        the planes of its own slab, see `planes`.
        """
        context = self.context
        known = cell_fields.field_name(context, name, fluid, "field")
        return (cell_fields.local if local else cell_fields.gathered)(context, known)

    @undivided
    def device_field(self, name: str, *, fluid: str | None = None) -> Any:
        """A field of this slab as an array in the memory of the device: of CuPy or NumPy.

        Computed there and not copied to the host. The shape is that of field(…, local=True), but a
        staggered lattice (D3Q13) has its stored cells only, (planes, ny, nx / 2). The array is new
        and belongs to the caller; it does not follow later steps. Memory for rho and u of the slab
        is required.
        """
        context = self.context
        known = cell_fields.field_name(context, name, fluid, "device_field")
        return cell_fields.on_device(context, known)

    @undivided
    def set_field(
        self, name: str, value: Given, *, fluid: str | None = None, local: bool = False
    ) -> None:
        """Set `rho` or `u` of all cells in lattice units, and keep the other one.

        `value`: an array of the box as returned by `field`, the same on all ranks; with `local` an
        array of this slab; or a function, which is called with arrays x, y (and z in 3D) of the
        cell centres 0.5, 1.5, … of this slab, all of the shape of a local field, and with the step
        if it has an argument t. It returns rho, or the components of u: a tuple of arrays or
        numbers, or an array with a last axis. Values in solid cells have no effect. The function
        must compute each cell from its coordinates alone, so that the result does not depend on the
        number of ranks.

        The populations are set as at the start: in equilibrium at rho and u, or with the viscous
        stress if the case has `initial.non_equilibrium`. Of several fluids, rho is that of `fluid`,
        and u is the velocity of all. Raises UsageError for values that are not finite, densities
        out of range, and velocities above the speed of sound.
        """
        context = self.context
        known = cell_fields.field_name(context, name, fluid, "set_field")
        set_field(context, known, value, local)
        if self._march is not None:
            self._march.forget()

    @undivided
    def sums(self) -> dict[str, float]:
        """Sums over the fluid cells, as in `monitor.csv`, the same on all ranks.

        mass, momentum_x …, kinetic_energy, enstrophy, and the largest speed max_speed; for coupled
        fluids also their masses and the length of interfaces. Raises NonFiniteError if a value is
        not finite.
        """
        return cell_fields.flow_sums(self.context)

    @undivided
    def forces(self) -> dict[str, np.ndarray]:
        """The force on each body during the next time step, {label: (D,)}, on all ranks.

        In rho_0 cells^4/step^2, in 2D in rho_0 cells^3/step^2. Requires an output
        `body_forces`, which names the bodies.
        """
        return cell_fields.body_forces(self.context)

    @property
    def bodies(self) -> dict[str, MovedBody]:
        """The bodies with a motion at the present step, by label; all ranks read it together.

        sim.bodies["ball"].position, .velocity, .force and others, see MovedBody.
        """
        return of_run(self.context)

    @undivided
    def save(
        self,
        path: Path | str,
        fields: Sequence[str] = ("rho", "u"),
        *,
        overwrite: bool = False,
    ) -> None:
        """Write fields of the present step as a snapshot for ParaView.

        The file is that of the output `snapshot`, and complete when the call returns. It replaces a
        file that mpilbm has written and no other program has changed; with `overwrite` any regular
        file. Raises UsageError for other files, and always for a symbolic link, a pipe or a device.
        """
        cell_fields.save(self.context, path, fields, overwrite)

    @undivided
    def checkpoint(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the complete state for Simulation(case, restart=path).

        The file is read back, and complete when the call returns; so are all outputs up to this
        step. It replaces other files as `save` does. Raises NonFiniteError if the flow is not
        finite.
        """
        context = self.context
        if self._march and not self._failure:
            self._march.finish()  # a restart finds the rows and files of all steps before
        cell_fields.checkpoint(context, path, overwrite)

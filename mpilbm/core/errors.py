"""Errors for the user and the exit code of each: wrong input, and failures of the machine."""

from pathlib import PurePath

from mpilbm.core.printable import one_line

# Exit code of a process that Ctrl-C ended, as in shells: 128 + SIGINT.
INTERRUPTED = 130


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C ends the process before there is anything to save."""

    def __init__(self, name: str, number: int):
        super().__init__(f"ended by {name} before the first step")
        self.exit_code = 128 + number


class MpilbmError(Exception):
    """A message for the user: where, value found, allowed values, fix. Shown without a traceback.

    `problem` is a line or a list of lines. Control characters within a line, such as a line break
    in a name, become escapes. `failed` is False if the run ended as intended.
    """

    exit_code = 1
    failed = True

    def __init__(self, problem: str | list[str]):
        lines = [problem] if isinstance(problem, str) else problem
        self.problems = [one_line(line) for line in lines]
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class CaseError(MpilbmError):
    """The case is wrong: one line per problem, `file: key path: value found; fix`."""

    exit_code = 2

    def __init__(
        self, problem: str | list[str], where: str = "", path: PurePath | str | None = None
    ):
        problems = [problem] if isinstance(problem, str) else list(problem)
        lead = ": ".join(str(part) for part in (path, where) if part)
        super().__init__([f"{lead}: {text}" if lead else text for text in problems])


class CommandError(MpilbmError):
    """The command line is wrong."""

    exit_code = 2


class FunctionError(RuntimeError):
    """A function of a Python program that fails during the steps, on this rank alone.

    It is no MpilbmError, since the other ranks do not raise it: a program that continued on one
    rank would leave them waiting.
    """


class OtherRankError(RuntimeError):
    """A fault of the program on another rank, which the message names; that rank raises the fault.

    It is no MpilbmError, since the user cannot correct it.
    """


class UsageError(MpilbmError):
    """A call of the Python interface is wrong: an unknown field, an array of another shape."""

    exit_code = 2


class PluginError(MpilbmError):
    """A plug-in of the user is wrong; the cause is the error that Python raised."""

    exit_code = 2


class NonFiniteError(MpilbmError):
    """The flow or a scalar became infinite or not a number, the flow faster than sound, or a scalar
    went far beyond its bounds; found at `step`."""

    exit_code = 3

    def __init__(self, problem: str | list[str], step: int = 0):
        super().__init__(problem)
        self.step = step  # pickled with the other attributes, not as an argument


class StoppedEarly(MpilbmError):
    """A signal or the wall-time limit ended the run after it wrote a complete checkpoint."""

    exit_code = 4
    failed = False


class FileSystemError(MpilbmError):
    """Reading or writing failed: full disk, no permission, a damaged file."""

    exit_code = 5

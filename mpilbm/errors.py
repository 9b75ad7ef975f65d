"""What a user can get wrong or a machine can fail at, with the exit code that each ends in."""

from mpilbm.printable import one_line

# Exit code of a process that Ctrl-C has ended, as shells have it: 128 + SIGINT.
INTERRUPTED = 130


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C ends the process where there is nothing to save."""

    def __init__(self, name: str, number: int):
        super().__init__(f"ended by {name} before the first step")
        self.exit_code = 128 + number


class MpilbmError(Exception):
    """A message for the user: where, found, allowed, fix. Never shown as a traceback.

    `problem` is a line or a list of lines; a line break or other control character within a line,
    as a name may hold, becomes an escape. `failed` is False where the run ends as intended.
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
    """The case is wrong: one line a problem, `file: key path: what was found; what to do`."""

    exit_code = 2

    def __init__(self, problem: str | list[str], where: str = "", path=None):
        problems = [problem] if isinstance(problem, str) else list(problem)
        lead = ": ".join(str(part) for part in (path, where) if part)
        super().__init__([f"{lead}: {text}" if lead else text for text in problems])


class CommandError(MpilbmError):
    """The command line is wrong."""

    exit_code = 2


class PluginError(MpilbmError):
    """A file of the user's that registers names is wrong; the cause is Python's own error."""

    exit_code = 2


class NonFiniteError(MpilbmError):
    """The flow became infinite, not a number or faster than sound."""

    exit_code = 3


class StoppedEarly(MpilbmError):
    """A signal or the wall-time limit ended the run, which left a whole checkpoint."""

    exit_code = 4
    failed = False


class FileSystemError(MpilbmError):
    """Reading or writing failed: full disk, no permission, a damaged file."""

    exit_code = 5

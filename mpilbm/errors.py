"""What a user can get wrong or a machine can fail at, with the exit code that each ends in."""

# Exit code of a process that Ctrl-C has ended, as shells have it: 128 + SIGINT.
INTERRUPTED = 130


class MpilbmError(Exception):
    """A message for the user: what, where, found, allowed, mend. Never shown as a traceback."""

    exit_code = 1


class CaseError(MpilbmError):
    """The case is wrong: one line a problem, `file: key path: what was found; what to do`."""

    exit_code = 2

    def __init__(self, problem: str | list[str], where: str = "", path=None):
        problems = [problem] if isinstance(problem, str) else list(problem)
        lead = ": ".join(str(part) for part in (path, where) if part)
        self.problems = [f"{lead}: {text}" if lead else text for text in problems]
        super().__init__("\n".join(self.problems))


class CommandError(MpilbmError):
    """The command line is wrong."""

    exit_code = 2


class NonFiniteError(MpilbmError):
    """The flow became infinite, not a number or faster than sound."""

    exit_code = 3


class StoppedEarly(MpilbmError):
    """A signal or the wall-time limit ended the run; a whole checkpoint waits to go on from."""

    exit_code = 4


class FileSystemError(MpilbmError):
    """Reading or writing failed: full disk, no permission, a damaged file."""

    exit_code = 5

"""A process that checks generated cases: `python -m support.fuzz SEED FIRST LAST FOLDER`.

Requirements: `mpilbm check` ends with exit code 0, or 2 with a reason; it raises no exception and
no Python warning; it uses at most SECONDS of CPU time and GIGABYTES of memory; the JSON schema
accepts each case that `check` accepts. Prints a JSON line for each violation.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import tomllib
import traceback
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jsonschema
from click.testing import CliRunner

from mpilbm import codegen
from mpilbm.case.case import schema
from mpilbm.cli import cli
from mpilbm.core.registry import as_json
from support.fuzz_cases import Maker
from support.fuzz_values import write_files

SECONDS, GIGABYTES, WALL = 2.0, 1, 120
DEVICE = "0.02"  # GB, so that a box too large for the time limit is refused by its size
GENERATED = 50  # kernels are generated for one of so many valid cases


class TooSlow(BaseException):
    """Not derived from Exception, so that no handler of the program catches it."""


def raise_too_slow(*_):
    raise TooSlow


def violation(maker) -> str:
    """The requirement that a case violates; empty if none."""
    Path("case.toml").write_bytes(maker.data)
    sets = [word for setting in maker.settings for word in ("--set", setting)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(WALL, exit=True)
    try:
        warnings.simplefilter("error")
        options = ["--gpu-memory", DEVICE, "--ranks", str(maker.ranks), *sets]
        result = CliRunner().invoke(cli, ["check", "case.toml", *options])
    except TooSlow:
        return f"takes more than {SECONDS} s\n{traceback.format_exc()}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    if result.exception and not isinstance(result.exception, SystemExit):
        return "".join(traceback.format_exception(result.exception))
    if result.exit_code not in (0, 2):
        return f"exit code {result.exit_code}: {result.output[-500:]}"
    if result.exit_code and not ("error: " in result.output or "problem: " in result.output):
        return f"gives no reason: {result.output[-500:]}"
    return "" if result.exit_code or maker.settings else schema_violation()


def schema_violation() -> str:
    """The first error of the JSON schema for a case that `check` accepts; empty if none."""
    tables = tomllib.loads(Path("case.toml").read_text("utf-8-sig"))
    wrong = next(validator().iter_errors(json.loads(as_json(tables))), None)
    return f"does not fit the schema: {wrong.json_path}: {wrong.message[:200]}" if wrong else ""


@cache
def validator():
    """The validator of the schema with all names registered so far."""
    return jsonschema.Draft202012Validator(schema())


def main(seed: str, first: int, last: int, folder: str) -> None:
    """Check the cases first … last - 1 of a seed in a folder."""
    os.chdir(folder)
    write_files(Path())
    signal.signal(signal.SIGPROF, raise_too_slow)
    validator()  # built now, not within the time of the first case
    generate, right = codegen.generate, 0

    def some(case):
        nonlocal right
        right += 1
        if right % GENERATED:
            return SimpleNamespace(kernels={})
        left, _ = signal.setitimer(signal.ITIMER_PROF, 0)  # no limit for code generation
        program = generate(case)
        signal.setitimer(signal.ITIMER_PROF, left)
        return program

    codegen.generate = some
    now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    limit = now + GIGABYTES * 2**30
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    for index in range(first, last):
        Path("index").write_text(str(index))
        maker = Maker(f"{seed}.{index}")
        if text := violation(maker):
            print(
                json.dumps({"index": index, "settings": maker.settings, "what": text}), flush=True
            )
    print(json.dumps({"checked": last - first, "right": right}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

"""Phases of a process in which Python does not search for reference cycles.

A search takes time in proportion to the number of objects. The imports of a run create some 75 000
objects, which stay until the process ends: searching among them took a tenth of a warm start.
"""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collections(lasting: bool = False) -> Iterator[None]:
    """No search for reference cycles within this context.

    `lasting`: all objects that exist at its end belong to the process, such as modules. Later
    searches leave them out, until `gc.unfreeze`.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if lasting:
            gc.freeze()
        if enabled:
            gc.enable()

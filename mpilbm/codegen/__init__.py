"""Code generation: from symbolic models and layouts to one kernel text, kept in the user's cache.

The text contains neither sizes nor numbers of a case, so a case that differs in viscosity, size or
velocity finds its kernels in the cache, without importing SymPy. Imports `physics`, `layouts`,
`solids` and lower layers; new models and layouts need no change here. A new diagnostic field is a
method of `diagnostics.Diagnostics`.
"""

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

from mpilbm.codegen.program import Program
from mpilbm.codegen.structure import structure
from mpilbm.core.machine import cache
from mpilbm.core.machine.garbage import without_collections
from mpilbm.core.registry import plugin_errors
from mpilbm.model.case import Case

# SymPy reads it when it is imported. With its default of 1000 expressions it derives many again.
os.environ.setdefault("SYMPY_CACHE_SIZE", "20000")


def generate(case: Case) -> Program:
    """The kernels of a case, from the cache or generated."""
    return cached(structure(case), lambda: _build(case))


def _build(case: Case) -> Program:
    from mpilbm.codegen.programs import build  # imports SymPy

    return build(case)


def cached(form: dict[str, Any], build: Callable[[], Program]) -> Program:
    """The program that this plain data determines, from the cache or from `build()`."""
    key = json.dumps([form, cache.package_digest()], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()
    found = cache.get("text", digest)
    if found is not None:
        return Program.from_json(found.decode())
    with plugin_errors(), without_collections():  # expressions and SymPy have hardly any cycles
        program = build()
    cache.put("text", digest, program.to_json().encode())
    return program

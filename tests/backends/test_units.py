"""Units of a kernel text: each kernel is in one of them; what is compiled, and when."""

import pytest
from support.outputs_cases import make_case
from support.runs import flow, run_case

from mpilbm import codegen
from mpilbm.backends.cpu import compiler
from mpilbm.backends.cpu.kernels import COPY_FLAGS, Library, Unit, unit
from mpilbm.backends.units import Units
from mpilbm.solver.solver import Solver

pytestmark = pytest.mark.usefixtures("own_units")
ALL = ["rho", "u", "vorticity", "q_criterion"]
CASES = {
    "steady": lambda: make_case(
        (5, 6), run={"steps": 1, "steady": {"every": 1, "tolerance": 1e-9}}
    ),
    "nodes": lambda: make_case((5, 4, 7), layout={"name": "indirect"}),
}


@pytest.fixture(params=CASES)
def program(request):
    return codegen.generate(CASES[request.param]())


def units_of(program) -> dict[str, Unit]:
    """The unit of each kernel, by its name."""
    found = Units(program, lambda kernels: unit(program, kernels))
    return {name: found.of(name) for name in program.kernels}


def test_each_kernel_is_in_one_unit(program):
    found = units_of(program)
    assert found.keys() == program.kernels.keys()
    distinct = set(found.values())
    assert 3 < len(distinct) <= len(found)
    for name, body in program.bodies.items():
        assert [unit for unit in distinct if body in unit.text] == [found[name]]
    assert all(program.head in unit.text for unit in distinct)


def test_only_copies_have_other_flags(program):
    """GCC takes long for them; the speed of the others depends on these flags."""
    for name, found in units_of(program).items():
        copies = program.kernels[name].phase == "copy"
        assert found.flags == (COPY_FLAGS if copies else ())


def test_optional_kernels_share_no_unit_with_others(program):
    found = units_of(program)
    always = {found[name] for name, kernel in program.kernels.items() if not kernel.optional}
    optional = {found[name] for name, kernel in program.kernels.items() if kernel.optional}
    assert optional
    assert not always & optional


def test_a_unit_is_compiled_once_and_only_if_needed(program, monkeypatch):
    built = []

    def build(text, flags):
        built.append(text)
        return compiler.find().build(text, flags)

    library = Library(program, build)
    library.load(program.wanted(()))
    assert not any(program.bodies["vorticity"] in text for text in built)
    before = len(built)
    assert before == len(set(built))
    library.function("velocity_0")
    assert len(built) == before
    library.function("vorticity")
    library.function("vorticity")
    assert len(built) == before + 1
    assert program.bodies["vorticity"] in built[-1]


def test_outputs_name_the_kernels_that_they_need(monkeypatch, tmp_path):
    """Else every rank would compile them during the run."""
    outputs = [
        {"name": "snapshot", "every": 3, "fields": ALL},
        {"name": "monitor", "every": 3},
        {"name": "checkpoint", "every": 6},
    ]
    events, build, create = [], compiler.Compiler._compile, Solver.__init__

    def compiled(*arguments):
        events.append("compiled")
        return build(*arguments)

    def created(*arguments):
        create(*arguments)
        events.append("created")

    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(compiler.Compiler, "_compile", compiled)
    monkeypatch.setattr(Solver, "__init__", created)
    run_case(flow(6, outputs), tmp_path / "out")
    assert events == ["compiled"] * (len(events) - 1) + ["created"]
    run_case(flow(9, outputs), tmp_path / "out", restart="auto")
    assert events[-2:] == ["compiled", "created"]  # the kernel that imports a state


def test_compilers_without_a_flag_are_called_again(monkeypatch, tmp_path):
    (tmp_path / "cc").write_text(
        '#!/bin/sh\ncase "$*" in *-fno-ivopts*) exit 1;; esac\nexec cc "$@"\n'
    )
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path / "kernels"))
    assert compiler.find().build("int x;", COPY_FLAGS).exists()

"""Kernel text: the same for all cases of a structure, on every machine, for both compilers.

Most of a minute of CPU time: nvcc compiles the text of each name.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support import ROOT
from support.flows import first_lattice
from support.pairs import ALL_COMBINATIONS, all_pairs, label
from support.settings import OPTIONS, SETTINGS, defined, tables
from support.slabs import PRECISIONS, box
from sympy import Symbol

from mpilbm import codegen
from mpilbm.backends import cuda
from mpilbm.backends.cpu.compiler import Compiler
from mpilbm.case.case import parse_case
from mpilbm.codegen import programs
from mpilbm.codegen.printer import c_text
from mpilbm.core.registry import make

SMALL = ("D2Q9", "aa", "trt")
POPULATIONS = [name for name in OPTIONS["layout"] if make("layouts", name).populations]
FORMATS = ["half", "single", "mixed", "double"]


def large(lattice: str, layout: str, precision: str) -> dict:
    """A text with a body force and a moving body."""
    whole = make("layouts", layout).populations
    return {
        "lattice": lattice,
        "layout": layout,
        "precision": precision,
        "setting": "forced",
        "collision": ("mrt" if lattice == "D3Q13" else "trt") if whole else "regularized",
    }


# Each layout and each precision on the lattices of many populations, whose kernels need most
# registers; each other name with the smallest text that has it.
LARGE = [
    large(lattice, POPULATIONS[(k + turn) % len(POPULATIONS)], precision)
    for turn, lattice in enumerate(("D3Q19", "D3Q27"))
    for k, precision in enumerate(FORMATS)
]
LARGE += [large(lattice, "moments", "mixed_moments") for lattice in ("D3Q19", "D3Q27")]
LARGE += [large("D3Q19", "moments", "single"), large("D3Q13", "esopull", "single")]
LARGE += [large("D3Q15", "ab", "single")]
ONCE = [large("D2Q9", "aa", "half") | {"collision": name} for name in OPTIONS["collision"]]
ONCE += [large("D2Q9", "aa", "half") | {"setting": name} for name in SETTINGS]
ONCE += [large(name, "aa", "half") for name in OPTIONS["lattice"]]
ONCE += [large("D2Q9", name, "single") for name in OPTIONS["layout"]]
ONCE += [large("D2Q9", "moments", name) for name in PRECISIONS]
ONCE += [c | {"lattice": first_lattice(c["collision"])} for c in ONCE if not defined(c)]
KINDS = ("setting", "collision", "lattice", "layout", "precision")


def not_yet(choices: list[dict], found: list[dict]) -> list[dict]:
    """The choices with a name that neither `found` nor an earlier choice has."""
    seen = {(kind, choice[kind]) for choice in found for kind in KINDS}
    chosen = []
    for choice in choices:
        new = {(kind, choice[kind]) for kind in KINDS} - seen
        if new and defined(choice):
            chosen.append(choice)
            seen |= new
    return chosen


CASES = all_pairs(OPTIONS, defined) if ALL_COMBINATIONS else LARGE + not_yet(ONCE, LARGE)


def case(*choice, **more):
    return parse_case(tables(*choice, **more), "test.toml")


def other_numbers(tables: dict) -> dict:
    """The same case in another size, with every number changed."""
    other = json.loads(json.dumps(tables))
    other["domain"]["size"] = [n + 3 for n in other["domain"]["size"]]
    other["fluid"]["viscosity"] = 0.0123
    other["initial"] = {"rho": 1.02, "u": [0.01] * len(other["domain"]["size"])}
    other["run"]["steps"] = 99
    if "force" in other:
        other["force"]["value"] = [7e-6 * (k + 1) for k in range(len(other["force"]["value"]))]
    bodies = other.get("body", [])
    for boundary in [*other.get("boundary", []), *(body["boundary"] for body in bodies)]:
        if "velocity" in boundary:
            boundary["velocity"] = [0.0321 + v for v in boundary["velocity"]]
        if "rho" in boundary:
            boundary["rho"] = 0.987
    for body in bodies:
        body["shape"]["radius"] = 1.7
    return other


@pytest.mark.parametrize(
    ("lattice", "setting"), [*(("D2Q9", setting) for setting in SETTINGS), ("D3Q19", "walls")]
)
def test_text_holds_no_number_of_the_case(lattice, setting):
    one = tables(lattice, "ab", "trt", setting, "mixed")
    one["collision"]["magic"] = 0.25
    other = other_numbers(one)
    other["collision"]["magic"] = 0.1
    found, expected = (parse_case(t, "test.toml") for t in (one, other))
    assert codegen.structure(found) == codegen.structure(expected)
    assert programs.build(found) == programs.build(expected)


def walled(axes="xy", **boundary):
    faces = [axis + side for axis in axes for side in "-+"]
    domain = {"size": [5, 4], "periodic": [axis not in axes for axis in "xy"]}
    return {"domain": domain, "boundary": [{"where": faces} | boundary]}


def weighed(centre):
    """A disc whose force is measured, in a box of 6 x 6 cells."""
    disc = {"name": "sphere", "centre": centre, "radius": 1.2}
    body = [{"label": "disc", "shape": disc, "boundary": {"name": "bounce_back"}}]
    output = [{"name": "body_forces", "every": 1}]
    return {"domain": {"size": [6, 6], "periodic": [True, True]}, "body": body, "output": output}


CHANGES = [
    {},
    {"layout": {"name": "ab"}},
    {"collision": {"name": "bgk"}},
    {"precision": {"compute": "float32", "storage": "float32", "offset": False}},
    {"precision": {"compute": "float64", "storage": "float32"}},
    {"precision": {"compute": "float64", "storage": "float64"}},
    {"force": {"name": "guo", "value": [1e-5, 0]}},
    {"force": {"name": "exact_difference", "value": [1e-5, 0]}},
    {"force": {"name": "guo", "value": ["1e-5*x", 0]}},
    {"force": {"name": "guo", "value": [0, "1e-5*x"]}},
    {"force": {"name": "guo", "value": np.zeros((13, 4, 2))}},
    {"force": {"name": "guo", "value": [np.zeros((13, 4)), 0]}},
    {"collision": {"name": "trt", "equilibrium": {"name": "incompressible"}}},
    {"initial": {"non_equilibrium": True}},
    {"initial": {"iterate": 3}},
    {"collision": {"name": "trt", "closure": {"name": "smagorinsky"}}},
    {"run": {"steps": 1, "steady": {"every": 1, "tolerance": 1}}},
    {
        "force": {"name": "guo", "value": [1e-5, 0]},
        "output": [{"name": "permeability", "every": 1}],
    },
    walled(name="bounce_back"),
    walled(name="bounce_back", velocity=[0.1, 0]),
    walled(name="equilibrium", rho=1.0),
    walled("x", name="equilibrium", rho=1.0),
    walled(name="equilibrium", velocity=[0.1, 0]),
    weighed(centre=[3, 3]),
    weighed(centre=[3, 0]),
]


def test_what_shapes_the_text_is_in_its_structure():
    """Else one case would find the kernels of another in the cache."""
    common = {"layout": {"name": "aa"}, "collision": {"name": "trt"}}
    common |= {"precision": PRECISIONS["single"]}
    cases = [parse_case(box("D2Q9", **(common | change)), "test.toml") for change in CHANGES]
    assert len({programs.build(one).text for one in cases}) == len(CHANGES)
    structures = [json.dumps(codegen.structure(one), sort_keys=True) for one in cases]
    assert len(set(structures)) == len(CHANGES)


GENERATE = """
import hashlib, json, sys
from mpilbm import codegen
from mpilbm.codegen import programs
from mpilbm.case.case import parse_case
cases = [(n, parse_case(t, "test.toml")) for n, t in json.load(sys.stdin)]
print(json.dumps({n: [programs.build(c).to_json(), codegen.structure(c)] for n, c in cases}))
"""


def python(text, seed=0, **options):
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", text]
    return subprocess.Popen(
        command, text=True, env=environment | options, cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def answer(process, given="") -> str:
    output, errors = process.communicate(given, timeout=300)
    assert process.returncode == 0, errors
    return output


def turned(tables):
    """The same tables with their keys the other way round."""
    if isinstance(tables, dict):
        return {key: turned(tables[key]) for key in reversed(tables)}
    return tables


def test_text_does_not_depend_on_hashes_or_order():
    """Two processes with different hash seeds, cases and keys in opposite orders."""
    settings = [("D2Q9", "aa", "trt", "walls"), ("D2Q9", "ab", "bgk", "through"),
                ("D3Q15", "ab", "trt", "forced")]  # fmt: skip
    cases = [["-".join(s), tables(*s, "single")] for s in settings]
    backwards = [[name, turned(table)] for name, table in reversed(cases)]
    processes = [python(GENERATE, seed) for seed in (1, 2)]
    texts = [
        json.loads(answer(process, json.dumps(given)))
        for process, given in zip(processes, (cases, backwards), strict=True)
    ]
    assert texts[0].keys() == texts[1].keys() == {name for name, _ in cases}
    for name, found in texts[0].items():
        assert texts[1][name] == found


HIT = """
import json, sys
from mpilbm import codegen
from mpilbm.case.case import parse_case
program = codegen.generate(parse_case(json.load(sys.stdin), "test.toml"))
print("sympy" in sys.modules, program.to_json())
"""


def test_a_hit_in_the_cache_imports_no_sympy(tmp_path):
    given = tables(*SMALL, "forced", "double")
    answers = [
        answer(python(HIT, MPILBM_CACHE_DIR=str(tmp_path)), json.dumps(given)) for _ in range(2)
    ]
    imported, texts = zip(*(found.split(maxsplit=1) for found in answers), strict=True)
    assert imported == ("True", "False")
    assert texts[0] == texts[1]
    given["fluid"]["viscosity"] = 0.2
    given["domain"]["size"] = [8, 9]
    third = answer(python(HIT, MPILBM_CACHE_DIR=str(tmp_path)), json.dumps(given))
    assert third == answers[1]


def test_small_powers_are_products():
    x, y = Symbol("x"), Symbol("y")
    assert c_text(x**2) == "(x * x)"
    assert c_text((x + y) ** 3) == "((x + y) * (x + y) * (x + y))"
    assert c_text(x**-2) == "DIVIDE(R(1), x * x)"
    assert c_text(x**6).count("x") == 6
    assert "pow" in c_text(x**7)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("y/x**2", 3 / 4),
        ("y*x**-3", 3 / 8),
        ("(x*y)**2/x", 18.0),
        ("-(x - y)**2", -1.0),
        ("x - 2/y", 2 - 2 / 3),
        ("1/(x/y**2)", 4.5),
        ("x*y - 7*x + y/x - 5", 6 - 14 + 1.5 - 5),
        ("-x*y - x**2", -10.0),
        ("(x + y)*(x - y) - x*y**2*(1 - y)/2", -5.0 + 18.0),
        ("y - (x - y)**2", 2.0),
    ],
)
def test_printed_expressions_have_their_value(expression, value):
    names = {"x": Symbol("x", real=True), "y": Symbol("y", real=True)}
    text = c_text(eval(expression, names))
    given = {"x": 2.0, "y": 3.0, "R": float}
    given["DIVIDE"] = lambda a, b: a / b
    given |= {"MAD": lambda a, b, c: c + a * b, "NMAD": lambda a, b, c: c - a * b}
    assert eval(text, given) == pytest.approx(value, rel=1e-15)


NUMBER = re.compile(r"R\(-?\d+(\.\d+)?( / \d+\.\d+)?\)")


@pytest.mark.parametrize("choice", CASES, ids=label)
def test_text_has_no_slow_powers_and_no_number_of_another_precision(choice):
    kernels = codegen.generate(case(**choice)).text.partition("#endif\n\n/* ")[2]
    without_comments = re.sub(r"/\*.*?\*/", "", "/* " + kernels, flags=re.S)
    assert "collide_stream_0" in without_comments
    assert "pow(" not in without_comments
    assert re.findall(r".*\d\.\d.*", NUMBER.sub("", without_comments)) == []


def test_both_backends_are_handed_the_one_text(monkeypatch):
    seen = {}
    cases = [case(*SMALL, "walls", "single", backend={"name": name}) for name in ("cpu", "cuda")]
    program, other = map(codegen.generate, cases)
    assert program == other

    class Module:
        def __init__(self, code, backend, options):
            seen.setdefault(backend, []).append(code)

        def compile(self):
            pass

        def get_function(self, name):
            return name

    gpu = object.__new__(cuda.CudaDevice)
    gpu._cupy, gpu._fused = SimpleNamespace(RawModule=Module), True
    gpu._cupy.cuda = SimpleNamespace(compiler=SimpleNamespace(CompileException=RuntimeError))
    gpu._device = SimpleNamespace(use=lambda: None)
    roles = {kernel.role for kernel in program.kernels.values()}
    assert gpu.compile(program, roles).keys() == program.kernels.keys()

    def build(self, text, more):
        seen.setdefault("cpu", []).append(text)
        return found(self, text, more)

    found = Compiler.build
    monkeypatch.setattr(Compiler, "build", build)
    library = cases[0].backend.open().compile(program, roles)
    assert library.keys() == program.kernels.keys()
    for units in seen["cpu"], seen["nvrtc"]:
        assert all(program.head in unit for unit in units)
        for body in program.bodies.values():
            assert sum(body in unit for unit in units) == 1


NVCC = shutil.which("nvcc")
USE = re.compile(
    r"Compiling entry function '(\w+)' for '(\w+)'"
    r".*?(\d+) bytes spill stores, (\d+) bytes spill loads",
    re.S,
)


def architectures(lattice, layout, precision, **_) -> list[str]:
    """sm_90, and the oldest architecture of nvcc for kernels with documented measurements."""
    documented = (
        precision != "mixed" if lattice == "D3Q19" else (layout, precision) == ("ab", "single")
    )
    if not documented:
        return ["sm_90"]
    known = subprocess.run([NVCC, "--list-gpu-code"], capture_output=True, text=True, check=True)
    return [min(known.stdout.split(), key=lambda name: int(name[3:])), "sm_90"]


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize("choice", CASES, ids=label)
def test_text_compiles_for_gpus_without_spills(choice, tmp_path):
    """Collide-stream kernels keep all populations of a cell in registers.

    The division of float64 is a call; around it the compiler may save a few registers. Only these
    kernels are compiled, but of small texts with a collision of few terms all.
    """
    program, wanted = codegen.generate(case(**choice)), architectures(**choice)
    small = choice["lattice"] == "D2Q9" and choice["collision"] in ("trt", "bgk")
    bodies = {
        name: body
        for name, body in program.bodies.items()
        if small or name.startswith("collide_stream")
    }
    source = tmp_path / "kernels.cu"
    source.write_text("\n".join([program.head, *bodies.values()]))
    codes = [f"-gencode=arch={name.replace('sm', 'compute')},code={name}" for name in wanted]
    options = [*codes, "-fmad=false", "-DFUSED", "-x", "cu", "-fatbin", "-Xptxas", "-v"]
    command = [NVCC, *options, str(source), "-o", str(tmp_path / "kernels.fatbin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    spills = {(name, code): int(a) + int(b) for name, code, a, b in USE.findall(done.stderr)}
    assert spills.keys() == {(name, code) for name in bodies for code in wanted}
    allowed = 0 if program.compute == "float32" else 32
    steps = {key: n for key, n in spills.items() if key[0].startswith("collide_stream")}
    assert {key: n for key, n in steps.items() if n > allowed} == {}

"""Values for generated cases: usual ones by key, and unusual ones of each kind."""

import datetime
from pathlib import Path

import h5py
import numpy as np

NUMBERS = [
    0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**30), 10**400, 0.0,
    -0.0, 0.5, 1.0, 2.0, 1e-3, 1e-8, 1e-20, 1e-45, 1e-300, 5e-324, 1e-320, 1e20, 3.5e38, 1e154,
    1e300, 1.7e308, -1e308, float("inf"), float("-inf"), float("nan"), 0.49999999, 1.9999999,
]  # fmt: skip
FORMULAS = [
    "x", "0.01*sin(2*pi*x/nx)", "1 + 0.01*cos(2*pi*y/ny)", "0.001*t", "0.01*sin(t)*y", "nx/ny",
    "1 + 1e-3*x*y", "where(x < nx/2, 0.01, -0.01)", "min(x, y, 0.05)", "exp(-x)", "0.05*tanh(y)",
    "1e-6*(x - nx/2)**2", "abs(x)*1e-3", "0.01", "-0.01*(y - ny/2)", "sqrt(x)*1e-3", "1/(x - 0.5)",
]  # fmt: skip
HOSTILE = [
    "x**2**3**16", "x**-16/0", "9**9**9**9", "1e308*1e308", "1/(nx - nx)", "log(-1)", "sqrt(0 - x)",
    "exp(exp(exp(x)))", "sin(", "sin(x", "x +", "2x", "x,y", "x;y", "x = 1", "x == 1", "x < 1",
    "x^2", "((((x))))", "(" * 60 + "x" + ")" * 60, "-" * 80 + "x", "x" + "+x" * 200,
    "__import__('os')", "x.real", "[x]", "lambda: x", "x if x else y", "f'{x}'", "True", "1j",
    "'a'", "nan", "inf", "pi()", "sin(x)(y)", "where(x, 1, 2)", "where(x<1)", "min()", "z", "nz",
    "t**0.5", "t**16*1e300", "1_0*x", "0x10", "1e-320*x", "x/1e-320", "x*1e300*1e300", "t/(t - 5)",
    "1/t", "x\n+ 1", "x\\", "#", "$x", "ｘ", "x²", "½", "x\u200b", "١", "sin (x)",
    "where(x<1<2,1,2)", "not x", "await x", "yield x", "x:=1", "*x", "**x", "x if", "'", '"""',
    "\x00", "\x1b[31mx", "\ud7ffx", "x" * 499, "x" * 600, "1e400", "1e299*10", "0.1.2", "1e", "..",
    "()", "0**-1", "(x-x)/(x-x)", "1" * 310,
]  # fmt: skip
TEXTS = [
    "", " ", "a", "ball", "α", "\x00", "\x1b[2J", "\n", "a\tb", "a" * 5000, "%s{0}", "[red]x[/red]",
    "../../../etc/passwd", "/dev/null", "/dev/zero", ".", "..", "/", "~", "$HOME", "con", "a b",
    "a.b", "1", "1.0", "true", "None", "nan", "[1, 2]", "{}", "🌊", "é", "\u202egnp.exe", "a:b:c",
    ":", "::", "file", "\ufeff", "'", '"', "\\", "#", "x-", "all", "auto", "D2Q9",
]  # fmt: skip
UNITS = [
    "0.1 m/s", "1e-6 m^2/s", "998 kg/m^3", "9.81 N/m^3", "25 mm", "2 cm^2", "1 Pa", "1e-3m/s",
    "5 m", "1 km", "1 m/s/s", "1e400 m/s", "1e300 m/s", "1e-320 m", "-1 m/s", "+.5 mm", "1. m",
    "1 m^-9", "1 m^99", "1 /m", "1 m//s", "1 m*s", "1 µm", "0 m/s", "1e5", "1e5m", "1 e", "nan m",
    "inf m", "1 m^", "1  m/s ", "١ m", "1 " + "m*" * 2000 + "m", "1" * 400 + " m", "1e-400 m/s",
    "1 N/m^3", "1 kg",
]  # fmt: skip
FILES = [
    "mask.npy", "mask.h5:solid", "u.csv", "rho.csv", "u.npy", "u.h5:u", "rho.h5:rho", "old.vtkhdf",
    "wrong.npy", "objects.npy", "empty.npy", "cut.npy", "text.npy", "nan.npy", "wide.npy",
    "gone.npy", "m.h5:strings", "m.h5:compound", "m.h5:group", "m.h5:scalar", "m.h5:empty",
    "m.h5:none", "m.h5:", "m.h5:link", "m.h5:huge", "m.h5:complex", "m.h5:bool", "cut.h5:a",
    "text.h5:a", "gone.h5:a", "down.csv", "words.csv", "empty.csv", "latin.csv", "folder.csv",
    "folder.npy", "gone.csv", "bin.csv", "m.h5", ".npy", ".csv", ".h5:", ":a", "mask.npy:a",
    "m.h5:a/../solid", "m.h5:/", "m.h5:.", "a\0.npy", "inf.csv", "one.csv", "ragged.csv",
    "n" * 300 + ".npy", "/etc/passwd", "text.vtkhdf", "bare.vtkhdf",
]  # fmt: skip
ODD = [
    *NUMBERS, *TEXTS, True, False, [], {}, [[]], [{}], [1, "a"], [True, 1], [1, [2]], {"name": 3},
    {"name": "bgk"}, {"name": []}, {"a": {"b": {}}}, [0] * 4, [1.5, 2.5], [-1, -1, -1],
    [float("nan")] * 2, datetime.date(2026, 11, 22), datetime.time(1, 2),
    datetime.datetime(2026, 1, 1, 1), ["x-", "x-"], ["x-", "x+"], [1e300, 1e300], [1e-320, 1e-320],
    [10**400, 0],
]  # fmt: skip
USUAL = {
    "viscosity": (0.02, 0.05, 1 / 6), "velocity": (0.05, 0.0, -0.02), "u": (0.0, 0.02, -0.03),
    "reynolds": (10, 100.0), "length": (8, 4.5), "rho": (1, 1.01, 0.99), "value": (1e-5, 0, -1e-6),
    "radius": (1.5, 2, 3.2), "tube": (0.8, 1.1), "centre": (4, 5.5, 3), "lower": (1, 2.5, -1),
    "upper": (4, 6, 20), "point": (4, 2.5), "normal": (1, 0, -1), "every": (1, 5, 20),
    "steps": (10, 0, 50), "rho_jump": (0.01, 1e-3), "cell": (0.001,), "step": (1e-4,),
    "density": (998, 1000.0), "a": (0.01,), "kappa": (0.02,), "G": (-4.5, 2.4),
    "tolerance": (1e-6,), "walltime": (60,), "size": (6, 8, 9, 12), "area": (9.0,),
    "iterate": (0, 0, 10), "begin": (0, 10), "keep": (2, 1),
}  # fmt: skip

NAMES = {
    "label": ("a", "b", "c"), "body": ("a", "b"), "psi": ("1-exp(-rho)", "rho"), "title": ("t",),
    "fields": ("rho", "u", "vorticity", "phi"), "average": ("x", "y"), "force": ("guo",),
    "streaming": ("ab", "aa", "esopull"),
}  # fmt: skip
PATHS = [
    "a", "run.steps.x", "boundary.9.name", "boundary.-1", "", ".", "..", "run..steps", "title",
    "domain.size.2", "domain.size.0.0", "body.a.label", "fluid.0.label", "fluid", "x" * 300,
    "run.steps ", "٣", "output.²", "initial.u.0",
]  # fmt: skip
LINES = [
    "a.b.c = 1", "[a.b]", "[[run]]", "fluid.x.y = 1", "run = 3", "d = 1979-05-27", "[domain]",
    "= 3", "3", "[]", "a = inf", "\\", "<<<<<<< HEAD",
]  # fmt: skip
QUOTES = ["'", "“", "", "`", '"""']
CHARACTERS = "\x00\x07\x1b\x7f\u2028é=[]{}\"'#.,"
BYTES = [b"\xe9", b"\x00", b"\xff\xfe", b"\xed\xa0\x80"]


def write_files(folder: Path) -> None:
    """Write those FILES that exist: some are valid for a box of 8 x 6 cells, others are damaged."""
    solid = np.zeros((6, 8), np.uint8)
    solid[2:4, 3:5] = 1
    rng = np.random.default_rng(1)
    arrays = {"mask": solid, "wrong": solid.T, "empty": np.zeros(0), "u": np.full((6, 2), 0.01),
              "nan": np.full((6, 8), np.nan), "wide": np.zeros((6, 8), "c16")}  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "objects.npy", np.array([{}], object))
    (folder / "cut.npy").write_bytes((folder / "mask.npy").read_bytes()[:90])
    for name in ("folder.csv", "folder.npy"):
        (folder / name).mkdir()
    texts = {
        "text.npy": "no array", "text.h5": "no HDF5", "text.vtkhdf": "none", "empty.csv": "",
        "u.csv": "t,ux,uy\n0,0.01,0\n10,0.02,0\n", "rho.csv": "0,1\n5,1.01\n", "one.csv": "0",
        "down.csv": "5,0,0\n1,0,0\n", "words.csv": "a,b,c\nd,e,f\n", "ragged.csv": "0,1,2\n1,2\n",
        "inf.csv": "0,inf,0\n1,nan,0\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes("0,1,2 é\n".encode("latin-1"))
    (folder / "bin.csv").write_bytes(rng.bytes(500))
    _write_hdf5(folder, solid, arrays["u"])


def _write_hdf5(folder: Path, solid, u) -> None:
    with h5py.File(folder / "mask.h5", "w") as file:
        file["solid"] = solid
    with h5py.File(folder / "u.h5", "w") as file:
        file["u"] = u
    with h5py.File(folder / "rho.h5", "w") as file:
        file["rho"] = np.ones(6)
    with h5py.File(folder / "m.h5", "w") as file:
        file["strings"] = np.array(["a", "b"], h5py.string_dtype())
        file["compound"] = np.zeros(3, [("a", "f8"), ("b", "i4")])
        file["scalar"], file["bool"] = 1.0, solid.astype(bool)
        file["complex"] = np.zeros((6, 2), complex)
        file["empty"] = h5py.Empty("f8")
        file["link"] = h5py.SoftLink("/nowhere")
        file.create_group("group")
        file.create_dataset("huge", (2**40, 2), "f8", chunks=(1024, 2))
    (folder / "cut.h5").write_bytes((folder / "mask.h5").read_bytes()[:1000])
    for name in ("old.vtkhdf", "bare.vtkhdf"):
        with h5py.File(folder / name, "w") as file:
            cells = file.create_group("VTKHDF/CellData")
            cells["rho"], cells["u"] = np.ones((1, 6, 8)), np.zeros((1, 6, 8, 3))
            if name == "old.vtkhdf":
                file.create_group("mpilbm").attrs["case"] = "[domain]\nsize = [8, 6]\n"

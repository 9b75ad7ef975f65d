"""Files at paths that a user names: only regular files of mpilbm are replaced.

More than 20 s: each command draws or writes its files.
"""

import contextlib
import os
import shutil
import socket
from pathlib import Path

import pytest
from PIL import Image
from support.commands import call, refused
from support.runs import flow, run_case

import mpilbm
from mpilbm.outputs.drawing import film
from mpilbm.storage import obstacle, partial_of


@pytest.fixture(scope="module")
def sim():
    with mpilbm.Simulation(flow(4, [])) as found:
        found.run(2)
        yield found


def user_file(path):
    path.write_text("import mpilbm  # {a file of the user}, made by mpilbm 0.1\n")


def link(path):
    user_file(path.with_name("target"))
    path.symlink_to("target")


def dangling(path):
    path.symlink_to("nowhere")


def pipe(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)


def foreign(path):
    """An HDF5 file of another program."""
    import h5py

    with h5py.File(path, "w") as file:
        file["lattice"] = [1.0]


def changed(path):
    """A checkpoint to which another program has added data."""
    import h5py

    with mpilbm.Simulation(flow(4, [])) as sim:
        sim.checkpoint(path)
    with h5py.File(path, "a") as file:
        file["mine"] = [1.0]


FILES = {
    user_file: "exists, and mpilbm has not written it",
    foreign: "exists, and mpilbm has not written it",
    changed: "exists, and mpilbm has not written it",
    link: "is a symbolic link to target",
    dangling: "is a symbolic link to nowhere",
    pipe: "is a named pipe",
    unix_socket: "is a socket",
}
REGULAR = (user_file, foreign, changed)


def state(path):
    """What must not change: the kind of a file, its number, and its content."""
    status = os.lstat(path)
    content = path.read_bytes() if path.is_file() else None
    return status.st_mode, status.st_ino, content


@pytest.mark.parametrize("call", ["save", "checkpoint"])
@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_a_simulation_replaces_only_its_own_files(call, make, sim, tmp_path):
    path = tmp_path / "file.h5"
    make(path)
    before = state(path)
    with pytest.raises(mpilbm.UsageError, match=FILES[make]) as found:
        getattr(sim, call)(path)
    assert state(path) == before
    assert ("give overwrite=True" in str(found.value)) == (make in REGULAR)
    if make in REGULAR:
        getattr(sim, call)(path, overwrite=True)
        assert obstacle(path) == ""
    else:
        with pytest.raises(mpilbm.UsageError, match=FILES[make]):
            getattr(sim, call)(path, overwrite=True)
        assert state(path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_not_replaced(sim, tmp_path):
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o020666, os.makedev(1, 3))
    except OSError:
        pytest.skip("no devices here")
    before = os.lstat(path)
    for overwrite in (False, True):
        with pytest.raises(mpilbm.UsageError, match="is a device, which is not replaced"):
            sim.save(path, overwrite=overwrite)
    assert os.lstat(path) == before


@pytest.mark.parametrize("call", ["save", "checkpoint"])
def test_the_name_of_an_unfinished_file_is_not_taken_from_the_user(call, sim, tmp_path):
    path = tmp_path / "file.h5"
    partial = partial_of(path)
    user_file(partial)
    with pytest.raises(mpilbm.UsageError, match=r"file\.h5\.partial, the name of the file while"):
        getattr(sim, call)(path)
    assert partial.read_text().startswith("import mpilbm")
    partial.unlink()
    getattr(sim, call)(path)
    content = path.read_bytes()
    for size in (0, 100, 3000, len(content)):  # a process was killed
        partial.write_bytes(content[:size] if size != 100 else bytes(size))
        getattr(sim, call)(path)


def test_a_file_of_mpilbm_is_replaced(sim, tmp_path):
    path = tmp_path / "file.h5"
    sim.save(path)
    sim.checkpoint(path)
    sim.save(path, ["rho"])
    with pytest.raises(mpilbm.UsageError, match="overwrite = 1; allowed: True or False"):
        sim.save(path, overwrite=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "box.out"
    run_case(flow(4, [{"name": "snapshot", "every": 2}, {"name": "monitor", "every": 1}]), out)
    return out


JSON = [
    "bench",
    "--size",
    "8x8",
    "--lattice",
    "D2Q9",
    "--setting",
    "periodic",
    "--steps",
    "1",
    "--layout",
    "aa",
    "--backend",
    "cpu",
    "--json",
    "figures.json",
]
COMMANDS = {
    "report.html": (["report", "box.out", "--output", "."], [user_file]),
    "speed.png": (["plot", "box.out", "--output", "."], [link]),
    "speed.svg": (["plot", "box.out", "--output", ".", "--format", "svg"], [pipe]),
    "speed.pdf": (["plot", "box.out", "--output", ".", "--format", "pdf"], [user_file]),
    f"u{film.ending()}": (["plot", "box.out", "--output", ".", "--film"], [user_file, pipe]),
    "figures.json": (JSON, [user_file, link, pipe]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_replaces_only_its_own_files(name, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "box.out")
    path, (command, makers) = Path(name), COMMANDS[name]
    for make in makers:
        make(path)
        before = state(path)
        assert FILES[make] in refused(*command)
        assert state(path) == before
        path.unlink()
    for _ in range(2 if path.suffix in (".png", ".json") else 1):
        result = call(*command)
        assert result.exit_code == 0, result.output
        assert obstacle(path) == ""


def test_a_new_case_replaces_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for make in (user_file, dangling, pipe):
        make(Path("flow.toml"))
        assert "exists" in refused("new", "flow")
        Path("flow.toml").unlink()


@pytest.mark.parametrize("option", ["--overwrite", "--restart"])
def test_a_run_replaces_no_pipe_in_its_folder(option, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "box.out")
    Path("box.out/monitor.csv").unlink()
    os.mkfifo("box.out/monitor.csv")
    options = [option] if option == "--overwrite" else [option, "auto"]
    assert call("new", "flow").exit_code == 0
    printed = refused("run", "flow.toml", "--output", "box.out", *options)
    assert "box.out/monitor.csv: is a named pipe, which is not replaced" in printed
    assert Path("box.out/monitor.csv").is_fifo()


def test_a_film_without_ffmpeg_is_recognised(tmp_path, monkeypatch):
    picture = tmp_path / "0.png"
    Image.new("RGB", (32, 16)).save(picture)
    path = tmp_path / "film.gif"
    film.write_film(path, [picture, picture])
    assert obstacle(path) == ""
    assert "has not written it" in obstacle(picture)

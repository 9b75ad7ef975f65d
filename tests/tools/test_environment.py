"""tools/environment.sh: which packages a machine needs."""

import subprocess

import pytest
from support import ROOT

C, CPP = ("cc", "gcc", "clang"), ("c++", "g++", "clang++")
NEEDED = 'unset CC CXX; source tools/environment.sh; PATH=$1:$PATH; packages "$2"'


@pytest.mark.parametrize(
    ("working", "extra", "expected"),
    [
        (("cc", "c++"), "plot", "[plot]"),
        (("clang",), "plot", "[plot]"),
        ((), "plot", "[plot,cpu]"),
        (("c++",), "plot", "[plot,cpu]"),
        (("gcc",), "test", "[test,cpu]"),
        (("gcc", "g++"), "test", "[test]"),
    ],
)
def test_a_compiler_that_does_not_compile_is_none(tmp_path, working, extra, expected):
    """As where the compiler is installed, but not the headers of the C library."""
    for name in C + CPP:
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {int(name not in working)}\n")
        (tmp_path / name).chmod(0o700)
    command = ["bash", "-c", NEEDED, "bash", str(tmp_path), extra]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert f"{ROOT}{expected}" in done.stdout.splitlines()


APT = """#!/bin/sh
echo "$@" >>"$0.calls"
case $1-$2 in install-*) printf '#!/bin/sh\\nexit 0\\n' >"${0%apt-get}tcc" ;; esac
"""


@pytest.mark.parametrize(("user", "code"), [(0, 0), (1000, 1)])
def test_tcc_is_installed_where_root_may(tmp_path, user, code):
    """With the headers of the C library, which its package does not require."""
    scripts = {"tcc": "#!/bin/sh\nexit 1\n", "id": f"#!/bin/sh\necho {user}\n", "apt-get": APT}
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o700)
    text = "source tools/environment.sh; PATH=$1:$PATH; tiny_compiler"
    command = ["bash", "-c", text, "bash", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == code, done.stderr
    calls = tmp_path / "apt-get.calls"
    assert calls.exists() == (code == 0)
    if code == 0:
        assert calls.read_text().splitlines()[-1].endswith(" tcc libc6-dev")


def test_the_help_of_the_tests_needs_no_environment(tmp_path):
    command = ["bash", ROOT / "tools" / "test", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0
    assert "tools/test --quick" in done.stdout

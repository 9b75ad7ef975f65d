"""An option for other flags: `CC="clang -Werror" python -m pytest --kernel-flags=-O0 tests/…`.

They follow the flags of kernels in C; those that precede them are words of $CC, and of $CXX for the
CUDA text that is compiled as C++ (see support/emulated_device.py).
"""

from mpilbm.backends import compiler

pytest_plugins = ["support.quick", "support.reporting"]


def pytest_addoption(parser):
    parser.addoption("--kernel-flags", default="", help="further flags of kernels in C, e.g. -O0")


def pytest_configure(config):
    compiler.FLAGS += tuple(config.getoption("--kernel-flags").split())

# shellcheck shell=bash
# Sourced by tools/demo and tools/test: find Python, make .venv, set what MPI needs.
# MPILBM_VENV=DIR       another place for the environment
# MPILBM_SYSTEM_MPI=1   use the mpirun and libmpi of this system instead of the mpich wheel

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${MPILBM_VENV:-$root/.venv}

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# Whether $1 is a Python that can make environments: Debian packages ensurepip separately.
python_works() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local python
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        if python_works "$python"; then
            command -v "$python"
            return
        fi
    done
    fail "Python 3.11 or newer with its venv module is required and was not found. Install it with" \
        "    apt-get install python3 python3-venv          # Debian 12, Ubuntu 24.04 and newer" \
        "    apt-get install python3.11 python3.11-venv    # Ubuntu 22.04" \
        "    dnf install python3.12                        # Fedora, RHEL 9 and its derivatives" \
        "and run this again."
}

# Whether one of the compilers $3, $4, … builds a library in the language $1 that includes the header $2:
# a compiler may be installed without the headers.
compiles() {
    local language=$1 header=$2 folder compiler found=1
    folder=$(mktemp -d)
    printf '#include <%s>\nint one(void) { return 1; }\n' "$header" >"$folder/one"
    for compiler in "${@:3}"; do
        $compiler -x "$language" -shared -fPIC "$folder/one" -o "$folder/one.so" -lm \
            >/dev/null 2>&1 && found=0 && break
    done
    rm -rf "$folder"
    return "$found"
}

# Install packages of Debian; fails without root or apt-get.
debian_packages() {
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null &&
        apt-get update -qq && apt_install "$@"
}

# With a folder $archives, from the files in it, where packages that are downloaded are kept, too.
apt_install() {
    local kept=()
    [[ -z ${archives:-} ]] ||
        kept=(-o Dir::Cache::Archives="$archives" -o APT::Keep-Downloaded-Packages=true)
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${kept[@]}" "$@" >/dev/null
}

# Whether the Tiny C Compiler is there, after an attempt to install it: tests/support/tiny_compiler.py.
tiny_compiler() {
    compiles c math.h tcc || { debian_packages tcc libc6-dev && compiles c math.h tcc; }
}

# Print what pip must install for the extra $1; a compiler and an MPI are included only if none was found.
packages() {
    local extras=$1
    compiles c math.h "${CC:-cc}" cc gcc clang || extras+=,cpu
    # Tests compile the CUDA text as C++.
    [[ $extras != test ]] || compiles c++ cmath "${CXX:-c++}" c++ g++ clang++ || extras+=,cpu
    printf '%s\n' --editable "${root}[$extras]"
    [[ ${MPILBM_SYSTEM_MPI:-0} == 1 ]] || printf '%s\n' mpich
}

# Make the environment with the extra $1 and put it first on PATH; installs nothing if nothing has changed.
use_environment() {
    local python wanted stamp="$venv/mpilbm-$1.installed" list
    if ! python_works "$venv/bin/python"; then
        python=$(find_python)
        say "making $venv with $("$python" --version)"
        "$python" -m venv --clear "$venv"
    fi
    list=$(packages "$1")
    wanted=$(printf '%s\n' "$list" && cat "$root/pyproject.toml")
    if [[ ! -e $stamp || $(<"$stamp") != "$wanted" ]]; then
        say "installing into $venv (the first time takes about a minute)"
        mapfile -t list <<<"$list"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${list[@]}"
        printf '%s\n' "$wanted" >"$stamp"
    fi
    if [[ ${MPILBM_SYSTEM_MPI:-0} == 1 && -e $venv/bin/mpichversion ]]; then
        "$venv/bin/python" -m pip uninstall --quiet --yes mpich
        rm -f "$venv"/mpilbm-*.installed
    fi
    export PATH=$venv/bin:$PATH
    command -v mpirun >/dev/null ||
        fail "mpirun was not found; leave MPILBM_SYSTEM_MPI unset to use the mpich wheel"
    say "ready: $("$venv/bin/python" --version), $(command -v mpirun)"
}

# Each rank uses one thread. Open MPI 4 and 5 require permission for runs as root and more ranks than cores.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONFAULTHANDLER=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

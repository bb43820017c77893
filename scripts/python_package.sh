#!/usr/bin/env bash
# Builds the Python package and installs it, as a user would, into a virtual
# environment of its own, build/python, with what its tests use.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$PWD/build/python
export CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)}
# The compilers of the main build: ccache finds what that has compiled.
export CC=${CC:-cc} CXX=${CXX:-c++}
export PATH=$PATH:$HOME/.cargo/bin

install() {
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@"
}

"$venv/bin/python" -c 'import pip' 2>/dev/null ||
  .venv/bin/python -m venv --clear "$venv"
install -c requirements/constraints.txt -r requirements/python.txt \
  -r requirements/build.txt
# The version stays the same, whatever has changed.
install --force-reinstall --no-deps ./python

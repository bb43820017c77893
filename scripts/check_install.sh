#!/usr/bin/env bash
# Installs, moves the folder, hides the build tree and the virtual environment,
# and asks the moved program the same as the built one: the answers must agree.
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

cat >"$work/ask" <<EOF
#!/bin/sh
cd /
if [ -e "$root/build/afterglow" ] || [ -e "$root/.venv/bin" ]; then
  echo "The build tree or the virtual environment is still in sight."
  exit 1
fi
exec env -i HOME="$work" PATH=/usr/bin:/bin "$program" "\$@" </dev/null
EOF
chmod +x "$work/ask"

# A private mount table hides the folders from this one run; without the right
# to have one they are renamed for its time.
if unshare --user --map-root-user --mount true 2>/dev/null; then
  unshare --user --map-root-user --mount sh -c '
    mount -t tmpfs none "$1/build" && mount -t tmpfs none "$1/.venv" &&
      shift && exec "$@"' sh "$root" "$work/ask" "${question[@]}" \
    >"$work/answer"
else
  for folder in "$root/build" "$root/.venv"; do
    mv "$folder" "$folder.hidden"
    hidden+=("$folder")
  done
  "$work/ask" "${question[@]}" >"$work/answer"
fi

[ -s "$work/expected" ] || {
  echo "The built program printed nothing."
  exit 1
}
diff "$work/expected" "$work/answer"
echo "The moved folder answers as the build tree does."

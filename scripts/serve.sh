#!/usr/bin/env bash
# scripts/serve.sh PORT [FLAGS...]: serves the default model from the build
# tree, with a prompt cache that outlives it.
set -euo pipefail
cd "$(dirname "$0")/.."

port=$1
shift
cache=${XDG_CACHE_HOME:-$HOME/.cache}/afterglow/prompts
[ -d "$cache" ] || mkdir -p -m 700 "$cache"
echo "Prompt cache: $cache"
exec build/afterglow serve --port "$port" --prompt-cache-dir "$cache" "$@"

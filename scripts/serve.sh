#!/usr/bin/env bash
# scripts/serve.sh PORT [FLAGS...]: serves the default model from the build
# tree, with a prompt cache that outlives it.
set -euo pipefail
cd "$(dirname "$0")/.."

port=$1
shift
cache=${AFTERGLOW_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/afterglow}
mkdir -p -m 700 "$cache"

cat <<EOF
Prompt cache: $cache
Once it listens, try in another terminal:

  curl -s http://127.0.0.1:$port/v1/chat/completions \\
    -H 'Content-Type: application/json' \\
    -d '{"messages": [{"role": "user", "content": "What is a prompt cache?"}]}'

EOF
exec build/afterglow serve --port "$port" --prompt-cache-dir "$cache" "$@"

#!/usr/bin/env bash
# web/check.sh: formatting, types and unit tests of the page. Its two tools come
# from `npm --prefix web ci`.
set -euo pipefail
cd "$(dirname "$0")"
exec npm run --silent check

#!/usr/bin/env bash
# web/check.sh: formatting, types and unit tests of the page. Installs its two
# tools, in the versions of package-lock.json, where they are missing.
set -euo pipefail
cd "$(dirname "$0")"
if ! npm ls --silent > /dev/null 2>&1; then npm ci --silent; fi
exec npm run --silent check

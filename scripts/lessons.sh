#!/usr/bin/env bash
# Types the README and the lessons for real: built binaries, bash, curl, real time.
# Each command must print what its page says. Then tries load.sh and instances.sh beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
STOREFRONT_FOR_REAL=1 exec go test -count=1 -v -run ForReal ./cmd/storefront

#!/usr/bin/env bash
# Runs the walkthrough for real: built binaries, real curl, real time. Each
# command of testdata/walkthrough.golden runs against a server on a free port,
# and must print what stands there.
set -euo pipefail
cd "$(dirname "$0")/.."

golden=testdata/walkthrough.golden
tmp=$(mktemp -d)
server=
cleanup() {
  if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$tmp"
}
trap cleanup EXIT

go build -o "$tmp" ./cmd/storefront ./cmd/backpressure

"$tmp/storefront" -addr 127.0.0.1:0 >"$tmp/stdout" 2>"$tmp/stderr" &
server=$!
for _ in $(seq 200); do
  address=$(sed -n 's|^storefront listens on http://||p' "$tmp/stdout")
  [ -n "$address" ] && break
  sleep 0.05
done
if [ -z "$address" ]; then
  echo "walkthrough: the server did not start within 10 s:" >&2
  cat "$tmp/stderr" >&2
  exit 1
fi

# What the golden file calls by "go run ./cmd/NAME" is the built binary here.
go() {
  [ "$1" = run ] || return 2
  "$tmp/$(basename "$2")" "${@:3}"
}

# Real curl, but with its output in one piece: it writes the body and the text of
# -w apart, so those of two that end in the same moment could mix.
curl() {
  local out
  out=$(command curl "$@"; printf .)
  printf '%s' "${out%.}"
}

while IFS= read -r line; do
  case $line in
  '$ '*)
    printf '%s\n' "$line"
    command=${line#'$ '}
    eval "${command//localhost:3000/$address}" </dev/null
    ;;
  '') echo ;;
  esac
done <"$golden" >"$tmp/printed"

diff -u "$golden" "$tmp/printed" || {
  echo "walkthrough: the output differs from $golden" >&2
  exit 1
}

kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
if [ "$code" != 0 ]; then
  echo "walkthrough: the server ended with exit code $code:" >&2
  cat "$tmp/stderr" >&2
  exit 1
fi
echo "walkthrough: ok"

#!/usr/bin/env bash
# What a rate limit is worth that instances do not share: starts five instances, each with a
# limit of 3 requests for a key, and sends them 25 with one key, in turn. Then the same with
# instances that share their limit through a Redis, and once more when that has been killed.
# It starts the Redis too, on a free port, and ends all that it started.
#
#   scripts/instances.sh
#
# It needs redis-server (Debian: apt-get install redis-server).
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# = 0 ] || {
  echo "instances: unexpected argument \"$1\"" >&2
  exit 2
}
command -v redis-server >/dev/null || {
  echo "instances: there is no redis-server in PATH (Debian: apt-get install redis-server)" >&2
  exit 1
}
unset $(compgen -e STOREFRONT_) # the settings are those below
tmp=$(mktemp -d)
finish() {
  local started
  started=$(jobs -p) # those that still run
  [ -z "$started" ] || kill $started 2>/dev/null || true
  wait
  rm -rf "$tmp"
}
trap finish EXIT
fail() {
  echo "instances: $1" >&2
  exit 1
}

go build -o "$tmp" ./cmd/storefront

instances=0
# start FLAGS... starts an instance on a free port, and adds its URL to urls.
start() {
  local out=$tmp/out.$((++instances)) url=
  "$tmp/storefront" -addr 127.0.0.1:0 -limit-burst 3 -limit-rate 0.001 "$@" >"$out" 2>"$out.log" &
  for _ in $(seq 200); do
    url=$(sed -n 's/^storefront listens on //p' "$out")
    [ -n "$url" ] && break
    sleep 0.05
  done
  [ -n "$url" ] || fail "an instance did not start within 10 s: $(cat "$out.log")"
  urls+=("$url")
}

# redis starts one on a free port, and sets port and redis, its process.
redis() {
  local log=$tmp/redis.log
  for _ in $(seq 20); do
    port=$((RANDOM % 20000 + 10000))
    redis-server --bind 127.0.0.1 --port "$port" --save '' --dir "$tmp" >"$log" 2>&1 &
    redis=$!
    while kill -0 "$redis" 2>/dev/null; do
      if grep -q 'Ready to accept connections' "$log"; then return; fi
      sleep 0.05
    done # it has ended: the port is taken
  done
  fail "redis-server does not start: $(cat "$log")"
}

get() { curl -qs --noproxy '*' -m 10 "$@"; }

# ask KEY sends 25 requests, to one instance after the other, and counts the answers.
ask() {
  local served=0 refused=0 code
  for i in {0..24}; do
    code=$(get -o /dev/null -w '%{http_code}' -H "x-api-key: $1" "${urls[i % 5]}/limited") || true
    case $code in
    200) served=$((served + 1)) ;;
    429) refused=$((refused + 1)) ;;
    *) fail "status $code of ${urls[i % 5]}/limited" ;;
    esac
  done
  echo "$served served, $refused refused"
}

# count METRIC adds it up over the instances.
count() {
  for url in "${urls[@]}"; do get "$url/metrics"; done | awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }'
}

urls=()
for _ in {1..5}; do start; done
echo "each for itself:  $(ask k1)"

redis
urls=()
for _ in {1..5}; do start -redis "redis://127.0.0.1:$port/0"; done
echo "with -redis:      $(ask k1)"
alone=$(count ratelimit_fallback_total)
[ "$alone" = 0 ] || echo "                  ($alone decisions were made without Redis, as it took over 20 ms: a busy machine)"

{
  kill -KILL "$redis"
  wait "$redis" || true
} 2>/dev/null # where bash would tell of it
echo "Redis killed:     $(ask k2), $(count ratelimit_degraded) of 5 instances degraded"

#!/usr/bin/env bash
# Puts a steady load on a mix of routes of a storefront on this machine, then prints
# for each route the shares by status and the latencies, and writes a plot.
#
#   scripts/load.sh [URL [RATE [SECONDS]]]
#
# URL of the server (default http://localhost:3000), RATE in requests a second, 1 to
# 500 (default 50), SECONDS 1 to 60 (default 10). The plot is a file for a browser,
# at $PLOT (default storefront-load.html in the temporary directory).
set -euo pipefail
export LC_ALL=C # one order of sorting, and points in decimals

usage() {
  echo "load: $1" >&2
  sed -n 's/^#   //p' "$0" >&2
  exit 2
}
url=${1:-http://localhost:3000}
url=${url%/}
rate=${2:-50}
seconds=${3:-10}
plot=${PLOT:-${TMPDIR:-/tmp}/storefront-load.html}
[ $# -le 3 ] || usage "too many arguments"
[[ $url =~ ^http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?$ ]] ||
  usage "URL: $url is not a server on this machine, like http://localhost:3000"
whole() { # name, value, highest
  [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] && [ "$2" -le "$3" ] || usage "$1: $2 is not a whole number from 1 to $3"
}
whole RATE "$rate" 500
whole SECONDS "$seconds" 60
[ "$(curl -qs --noproxy '*' -m 5 -o /dev/null -w '%{http_code}' "$url/healthz")" = 200 ] || {
  echo "load: no storefront answers at $url; start one with: go run ./cmd/storefront" >&2
  exit 1
}

true 2>/dev/null >"$plot" || usage "PLOT: cannot write $plot"

vegeta() { go run github.com/tsenart/vegeta/v12@v12.13.0 "$@"; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Vegeta takes them in turn. A third of the requests are checkouts.
echo '{"amount":1250,"token":"tok_visa"}' >"$tmp/charge.json"
{
  for route in /checkout /stock/mug /checkout /profile/ada /checkout /limited /slow; do
    printf 'GET %s%s\n\n' "$url" "$route"
  done
  printf 'POST %s/charge\nContent-Type: application/json\n@%s\n\n' "$url" "$tmp/charge.json"
  printf 'GET %s/stock/tee\n\n' "$url"
} >"$tmp/targets"

vegeta attack -targets "$tmp/targets" -rate "$rate" -duration "${seconds}s" \
  -timeout 10s -redirects -1 -max-workers 500 -output "$tmp/results"
vegeta encode -to csv -output "$tmp/results.csv" "$tmp/results"
vegeta plot -title "storefront: $rate requests a second" -output "$plot" "$tmp/results"

# Columns: 2 is the status, 3 the latency in ns; the URL is the last but one, and
# only the error between them may hold commas.
awk -F, -v url="$url" '{
  route = substr($(NF-1), length(url) + 1)
  sub(/^\/stock\/.*/, "/stock", route); sub(/^\/profile\/.*/, "/profile", route)
  print route, $2, $3; print "all", $2, $3
}' "$tmp/results.csv" | sort -k1,1 -k3,3n >"$tmp/rows"

echo "$rate requests a second for $seconds s"
echo
printf '%-10s %8s  %s\n' route requests 'shares by status (0: no answer)'
awk '
  { requests[$1]++; with[$1, $2]++ }
  END {
    for (route in requests) {
      line = ""
      for (status = 0; status < 600; status++)
        if ((route, status) in with)
          line = line sprintf("  %s: %.1f%%", status, 100 * with[route, status] / requests[route])
      printf "%-10s %8d%s\n", route, requests[route], line
    }
  }' "$tmp/rows" | sort
echo
printf '%-10s %8s %8s %8s %8s %8s  ms\n' route p50 p90 p95 p99 max
awk '
  function rank(p, r) { r = int(n * p / 100); if (r * 100 < n * p) r++; return latency[r] / 1e6 } # nearest rank
  function report() { if (n) printf "%-10s %8.1f %8.1f %8.1f %8.1f %8.1f\n", route, rank(50), rank(90), rank(95), rank(99), latency[n] / 1e6 }
  $1 != route { report(); route = $1; n = 0 }
  { latency[++n] = $3 }
  END { report() }' "$tmp/rows"
echo
echo "plot: $plot"

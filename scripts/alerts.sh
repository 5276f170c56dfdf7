#!/usr/bin/env bash
# Checks the alerts' rules, and plays them with Prometheus' own promtool. Where it is not
# installed the script takes it out of Debian's package: installing that would start a
# server.
set -euo pipefail
cd "$(dirname "$0")/.."
promtool=$(command -v promtool || echo "$PWD/.tools/prometheus/usr/bin/promtool")
if [[ ! -x $promtool ]]; then
	command -v apt-get >/dev/null || {
		echo "alerts: promtool is missing: install Prometheus" >&2
		exit 1
	}
	fetched=$(mktemp -d)
	trap 'rm -rf "$fetched"' EXIT
	if ! (cd "$fetched" && apt-get -q download prometheus >log 2>&1); then
		as_root=()
		[[ $(id -u) -eq 0 ]] || as_root=(sudo)
		"${as_root[@]}" apt-get -q update >"$fetched/log" 2>&1 &&
			(cd "$fetched" && apt-get -q download prometheus >>log 2>&1) || {
			cat "$fetched/log" >&2
			echo "alerts: the package prometheus cannot be fetched" >&2
			exit 1
		}
	fi
	mkdir -p .tools/prometheus
	dpkg-deb -x "$fetched"/prometheus_*.deb .tools/prometheus
fi
"$promtool" check rules deploy/prometheus/humanqa.rules.yml
"$promtool" test rules deploy/prometheus/humanqa.test.yml

#!/usr/bin/env bash
# Checks the alerts' rules, and plays them with Prometheus' own promtool.
set -euo pipefail
cd "$(dirname "$0")/.."
promtool=$(scripts/fetch-deb.sh prometheus usr/bin/promtool "$PWD/.tools/prometheus")
"$promtool" check rules deploy/prometheus/humanqa.rules.yml
"$promtool" test rules deploy/prometheus/humanqa.test.yml

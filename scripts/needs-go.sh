#!/usr/bin/env bash
# Prints one line if Go is missing, or too old to fetch the version in go.mod.
#
#	scripts/needs-go.sh go
set -euo pipefail
go=${1:-go}
needed=$(awk '$1 == "go" { print $2 }' "$(dirname "$0")/../go.mod")
how="install Go ${needed%.*} from https://go.dev/dl/ (any Go from 1.21 on fetches it by itself), or name it: make GO=/path/to/go"

if ! version=$("$go" env GOVERSION 2>/dev/null); then
	echo "this needs Go, and there is no $go: $how" >&2
	exit 1
fi
if [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] < 21)); then
	echo "this needs a newer Go than $version: $how" >&2
	exit 1
fi

#!/usr/bin/env bash
# Installs Node.js and npm if they are missing. Silent when there is nothing to do.
set -euo pipefail

if command -v node >/dev/null && command -v npm >/dev/null; then
	exit 0
fi

fail() {
	echo "install-node: $*" >&2
	exit 1
}

as_root() {
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "Node.js is missing and installing it needs root: run scripts/install-node.sh once as root, nothing else"
	fi
}

command -v apt-get >/dev/null || fail "Node.js is missing: install Node.js 20 or newer, with npm"
echo "installing Node.js" >&2
as_root apt-get update -q=2 >&2
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q=2 -y --no-install-recommends nodejs npm >&2

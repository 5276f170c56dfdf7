#!/usr/bin/env bash
# Installs the browsers for the tests of pages: Chromium, and its shell without a window,
# in which a walk over pages needs half the processor time. Silent when there is
# nothing to do. Without a browser those tests are skipped; under CI=true they fail.
set -euo pipefail

# any PROGRAM... reports whether one of them is installed. The same names, in the same
# order, as internal/testing/browsertest.
any() {
	local name
	for name in "$@"; do
		if command -v "$name" >/dev/null; then
			return 0
		fi
	done
	return 1
}
full() { any chromium chromium-browser google-chrome; }
shell() { any chromium-headless-shell chrome-headless-shell; }

# Only root gets the shell beside a browser that is there: the script asks for no password.
if full && { shell || [[ $(id -u) -ne 0 ]]; }; then
	exit 0
fi

# Without the shell the tests run in the whole browser.
cannot() {
	if full; then
		exit 0
	fi
	echo "install-chromium: $*: the tests of pages are skipped" >&2
	[[ ${CI:-} != true ]]
	exit
}

as_root=()
if [[ $(id -u) -ne 0 ]]; then
	command -v sudo >/dev/null || cannot "there is no browser, and installing one needs root"
	as_root=(sudo)
fi
command -v apt-get >/dev/null || cannot "there is no browser, and no apt-get"
apt=("${as_root[@]}" "$(dirname "$0")/apt.sh")
echo "installing chromium …" >&2
"${apt[@]}" update || cannot "the list of packages could not be read"
full || "${apt[@]}" install chromium fonts-dejavu-core || cannot "chromium could not be installed"
shell || "${apt[@]}" install chromium-headless-shell || cannot "chromium's shell could not be installed"

#!/usr/bin/env bash
# Installs the browser for the tests of pages, if there is none. Silent when there is
# nothing to do. Without a browser those tests are skipped; under CI=true they fail.
set -euo pipefail

# The same names, in the same order, as internal/testing/browsertest.
for name in chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null; then
		exit 0
	fi
done

cannot() {
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
echo "installing chromium …" >&2
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 --no-install-recommends)
"${apt[@]}" update >&2 && "${apt[@]}" install -y chromium fonts-dejavu-core </dev/null >&2 || cannot "chromium could not be installed"

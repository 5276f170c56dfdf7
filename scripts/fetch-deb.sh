#!/usr/bin/env bash
# Takes a program out of Debian's package where it is not installed: installing the package
# would start a server. The program's path is printed.
#
#	scripts/fetch-deb.sh <package> <program, as the package has it> <folder>
set -euo pipefail
package=$1 program=$2 folder=$3
found=$(command -v "$(basename "$program")" || echo "$folder/$program")
if [[ ! -x $found ]]; then
	command -v apt-get >/dev/null || {
		echo "$(basename "$program") is missing: install $package" >&2
		exit 1
	}
	fetched=$(mktemp -d)
	trap 'rm -rf "$fetched"' EXIT
	if ! (cd "$fetched" && apt-get -q download "$package" >log 2>&1); then
		as_root=()
		[[ $(id -u) -eq 0 ]] || as_root=(sudo)
		"${as_root[@]}" "$(dirname "$0")/apt.sh" update >"$fetched/log" 2>&1 &&
			(cd "$fetched" && apt-get -q download "$package" >>log 2>&1) || {
			cat "$fetched/log" >&2
			echo "the package $package cannot be fetched" >&2
			exit 1
		}
	fi
	mkdir -p "$folder"
	dpkg-deb -x "$fetched/$package"_*.deb "$folder"
fi
echo "$found"

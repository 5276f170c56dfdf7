#!/usr/bin/env bash
# Installs Go if there is none that can build this repository. Silent when there is nothing
# to do. Any Go from 1.21 on can: it fetches the version in go.mod by itself.
#
#	scripts/install-go.sh [GO]
#
# Go comes by apt where the package is new enough, else by Homebrew, else as the official
# archive (scripts/go.sha256) in .tools/go: that changes nothing of the system. So the script
# asks for no password. A GO that the caller names is only checked. GO_ARCHIVES is the
# address of the archives.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.tools/go/bin:$PATH
go=${1:-go}
archives=${GO_ARCHIVES:-https://go.dev/dl}
needed=$(awk '$1 == "go" { print $2 }' go.mod)

fail() {
	echo "install-go: $*: install Go ${needed%.*} from https://go.dev/dl/, or name it: make GO=/path/to/go" >&2
	exit 1
}

works() {
	local version
	hash -r # another go may be the first in PATH by now
	version=$("$1" env GOVERSION 2>/dev/null) && ! [[ $version =~ ^go1\.(1?[0-9]|20)([^0-9]|$) ]]
}

apt() {
	local as_root=()
	[[ $(id -u) -eq 0 ]] || as_root=(sudo -n)
	"${as_root[@]}" scripts/apt.sh "$@" 2>/dev/null
}

by_apt() {
	local candidate
	command -v apt-get >/dev/null && apt update || return
	candidate=$(apt-cache policy golang-go | awk '$1 == "Candidate:" { sub(/^[0-9]+:/, "", $2); print $2 }')
	[[ $candidate =~ ^1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 21)) || return
	echo "installing golang-go ${candidate%%[-~]*} by apt …" >&2
	apt install golang-go && works go
}

by_brew() {
	command -v brew >/dev/null || return
	echo "installing go by Homebrew …" >&2
	brew install --quiet go >/dev/null 2>&1 </dev/null && works go
}

by_archive() {
	local system archive trouble sha256sum=(sha256sum)
	system=$(uname -sm)
	case $system in
	"Linux x86_64") system=linux-amd64 ;;
	"Linux aarch64" | "Linux arm64") system=linux-arm64 ;;
	"Darwin x86_64") system=darwin-amd64 ;;
	"Darwin arm64") system=darwin-arm64 ;;
	*) fail "there is no Go from 1.21 on, and no archive of it for $system" ;;
	esac
	archive=$(awk -v end=".$system.tar.gz" 'substr($2, length($2) - length(end) + 1) == end { print $2 }' scripts/go.sha256)
	command -v curl >/dev/null || apt install ca-certificates curl || fail "there is no Go from 1.21 on, and no curl to fetch it"
	command -v sha256sum >/dev/null || sha256sum=(shasum -a 256)

	echo "fetching $archive into .tools …" >&2
	mkdir -p .tools
	fetched=$(mktemp -d .tools/go.XXXXXX)
	trap 'rm -rf "$fetched"' EXIT
	trouble=$(curl -fsSL -o "$fetched/$archive" "$archives/$archive" 2>&1) ||
		fail "there is no Go from 1.21 on, and $archives/$archive cannot be fetched ($trouble)"
	grep -F " $archive" scripts/go.sha256 | (cd "$fetched" && "${sha256sum[@]}" -c) >/dev/null 2>&1 ||
		fail "$archives/$archive is not the archive that scripts/go.sha256 names"
	tar -xzf "$fetched/$archive" --no-same-owner -C "$fetched"
	rm -rf .tools/go
	mv "$fetched/go" .tools/go
	works go || fail "$archive does not run here"
}

if works "$go"; then
	exit 0
fi
[[ $go == go ]] || fail "$go is no Go from 1.21 on"
by_apt || by_brew || by_archive

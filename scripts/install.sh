#!/usr/bin/env bash
# Installs missing programs: PostgreSQL's server programs (postgres, initdb), and by
# name the clients in the examples of README.md: curl and jq. Silent when there is
# nothing to do. It starts no server and makes no cluster: the service runs its own.
#
#	scripts/install.sh [curl] [jq]
set -euo pipefail

# The same places, in the same order, as internal/pgdev/binaries.go.
have_postgres() {
	local dir
	for dir in \
		"$(dirname "$(command -v postgres || echo /nowhere/postgres)")" \
		"$(pg_config --bindir 2>/dev/null || echo /nowhere)" \
		/usr/lib/postgresql/*/bin \
		/usr/pgsql-*/bin \
		/opt/homebrew/opt/postgresql*/bin \
		/usr/local/opt/postgresql*/bin \
		/home/linuxbrew/.linuxbrew/opt/postgresql*/bin; do
		if [[ -x $dir/postgres && -x $dir/initdb ]]; then
			return 0
		fi
	done
	return 1
}

fail() {
	echo "install: $*" >&2
	exit 1
}

as_root() {
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	else
		sudo "$@"
	fi
}

# The output of a package manager is shown only when it fails.
quietly() {
	local log
	log=$(mktemp)
	if "$@" >"$log" 2>&1 </dev/null; then
		rm -f "$log"
		return
	fi
	cat "$log" >&2
	rm -f "$log"
	fail "this did not work: $*"
}

apt() {
	quietly as_root "$(dirname "$0")/apt.sh" "$@"
}

apt_updated=
apt_install() {
	[[ $apt_updated ]] || apt update
	apt_updated=yes
	apt install "$@"
}

may_install() {
	if command -v brew >/dev/null; then
		return 0
	fi
	command -v apt-get >/dev/null && { [[ $(id -u) -eq 0 ]] || sudo "$@" true 2>/dev/null; }
}

install_postgres() {
	if command -v apt-get >/dev/null; then
		# Debian would create and start a cluster with the package. This file must exist
		# before the server package is configured.
		apt_install postgresql-common
		as_root sed -i 's/^#\? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
		apt_install postgresql
	elif command -v brew >/dev/null; then
		quietly brew install --quiet postgresql@17
	else
		fail "no apt-get and no brew here: install PostgreSQL 14 or newer by hand, or set HUMANQA_DATABASE_URL"
	fi
}

if ! have_postgres; then
	if command -v apt-get >/dev/null && [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; then
		fail "PostgreSQL's server programs are missing and installing them needs root: run scripts/install.sh once as root, nothing else, or set HUMANQA_DATABASE_URL"
	fi
	echo "installing PostgreSQL's server programs, half a minute or so …" >&2
	install_postgres
	have_postgres || fail "PostgreSQL was installed, but postgres and initdb are not where they should be"
fi

# The service runs without these. So the script asks for no password for them, and
# does not fail without them.
missing=()
for client in "$@"; do
	command -v "$client" >/dev/null || missing+=("$client")
done
if [[ ${#missing[@]} -eq 0 ]]; then
	exit 0
fi
if ! may_install -n; then
	echo "not here: ${missing[*]}. The service does without; to try it by hand, install them" >&2
elif command -v apt-get >/dev/null; then
	echo "installing ${missing[*]} …" >&2
	apt_install "${missing[@]}"
else
	echo "installing ${missing[*]} …" >&2
	quietly brew install --quiet "${missing[@]}"
fi

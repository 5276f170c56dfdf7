#!/usr/bin/env bash
# Installs PostgreSQL's server programs (postgres, initdb) unless they are
# there. Silent when nothing is to do. Starts no server and makes no cluster:
# the service runs its own.
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
	echo "install-postgres: $*" >&2
	exit 1
}

as_root() {
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "PostgreSQL's server programs are missing and installing them needs root: run this once as root, or set HUMANQA_DATABASE_URL"
	fi
}

install_with_apt() {
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 --no-install-recommends)
	as_root "${apt[@]}" update
	# Debian would create and start a cluster with the package. This file has to
	# be there before the server package is configured.
	as_root "${apt[@]}" install -y postgresql-common </dev/null
	as_root sed -i 's/^#\? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
	as_root "${apt[@]}" install -y postgresql </dev/null
}

if have_postgres; then
	exit 0
fi
echo "installing PostgreSQL's server programs …" >&2
if command -v apt-get >/dev/null; then
	install_with_apt >&2
elif command -v brew >/dev/null; then
	brew install --quiet postgresql@17 >&2
else
	fail "no apt-get and no brew here: install PostgreSQL 14 or newer by hand, or set HUMANQA_DATABASE_URL"
fi
have_postgres || fail "PostgreSQL was installed, but postgres and initdb are not where they should be"

#!/usr/bin/env bash
# Calls apt-get without questions. Another set-up may hold apt's locks, for minutes on a slow
# machine. apt-get waits for the lock of dpkg by itself, but not for that of its lists.
#
#	scripts/apt.sh update
#	scripts/apt.sh install PACKAGE...
set -euo pipefail
most=600 # seconds
export DEBIAN_FRONTEND=noninteractive

until said=$(apt-get -y -q -o DPkg::Lock::Timeout=$most -o Dpkg::Use-Pty=0 --no-install-recommends "$@" 2>&1 </dev/null); do
	if [[ $said != */lists/lock* ]] || ((SECONDS > most)); then
		echo "$said" >&2
		exit 1
	fi
	sleep 1
done

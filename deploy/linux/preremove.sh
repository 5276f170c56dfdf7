#!/bin/sh
# Stops the service before its removal. Its data stays in /var/lib/humanqa.
set -e
case "${1:-}" in
upgrade | 1) ;; # it goes on running until its operator restarts it
*)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now humanqa.service || true
	fi
	;;
esac

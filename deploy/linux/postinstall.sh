#!/bin/sh
# Makes the service's user, and tells systemd of the unit.
set -e
if ! getent group humanqa >/dev/null; then
	groupadd --system humanqa
fi
if ! getent passwd humanqa >/dev/null; then
	useradd --system --gid humanqa --home-dir /var/lib/humanqa --no-create-home --shell /usr/sbin/nologin humanqa
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# An upgrade goes on with the new binary.
	systemctl try-restart humanqa.service
fi

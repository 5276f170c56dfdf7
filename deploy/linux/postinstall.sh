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
	# The first start of a new version may change the data, so its operator chooses the moment.
	if systemctl --quiet is-active humanqa.service; then
		echo "humanqa: the version before goes on running. Back its data up, then start the new one:"
		echo "  humanqa backup FILE --env-file /etc/humanqa/env"
		echo "  systemctl restart humanqa"
	fi
fi

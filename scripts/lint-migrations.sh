#!/usr/bin/env bash
# Holds new migrations against the locks that a running older version would feel for longer
# than a second. Files up to 0069 are older than the first release: no older version runs on
# them. A file must also set lock_timeout, and it is tried again when it waits in vain.
set -euo pipefail
cd "$(dirname "$0")/.."

squawk=tools/squawk/node_modules/@squawk-cli/linux-x64/bin/squawk
if [[ ! -x $squawk ]]; then # the package is for this platform alone
	squawk=$(command -v squawk) || {
		echo "lint-migrations: install squawk (https://squawkhq.com) and run make lint again" >&2
		exit 1
	}
fi

# check FILE: only what an upgrade runs. A file is one transaction unless it says otherwise.
check() {
	local within=(--assume-in-transaction)
	if grep -q '^-- +goose NO TRANSACTION' "$1"; then
		within=()
	fi
	sed '/^-- +goose Down/,$d' "$1" | "$squawk" --config tools/squawk/.squawk.toml "${within[@]}" --stdin-filepath "$1"
}

for known in tools/squawk/refused/*.sql; do # a linter that finds nothing is no linter
	if check "$known" >/dev/null 2>&1; then
		echo "lint-migrations: $known locks a table, and squawk does not say so" >&2
		exit 1
	fi
done
check tools/squawk/taken.sql >/dev/null

bad=0
for file in migrations/*.sql; do
	number=$(basename "$file" | cut -d_ -f1)
	if ((10#$number >= 70)) && ! check "$file"; then
		bad=1
	fi
done
exit $bad

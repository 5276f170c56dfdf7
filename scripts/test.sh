#!/usr/bin/env bash
# Runs the test suite, the slowest packages first, so that none runs alone in the end.
#
#	scripts/test.sh [package …]
#
# GO, RACE and TEST_FLAGS come from the Makefile. Everything is built the same way, the
# programs that tests build, too: a second build of every dependency without the race
# detector would take longer than the detector does.
#
# cmd/humanqa, whose programs wait for each other, takes longest: the others leave it the
# processors when it wants them.
#
# The linter runs all checks of go vet, so they are left out here, and so are symbols
# for debuggers. The compiler gets four times the heap, as in build.sh, and the tests
# do not. The race detector's wait of a second at a test's end is off.
set -euo pipefail
go=${GO:-go}
slow='cmd/humanqa httpapi httpapi/dashboard eventstore/consumer httpapi/workbench cmd/hqa httpapi/console httpapi/room internal/pgdev'

packages=$("$go" list "${@:-./...}" |
	awk -v slow="$slow" -v module="$("$go" list -m)" '
		BEGIN { n = split(slow, names, " "); for (i = 1; i <= n; i++) rank[module "/" names[i]] = i }
		{ print ($1 in rank ? rank[$1] : n + NR), $1 }' | sort -n | cut -d' ' -f2-)

export GOFLAGS="${GOFLAGS:-} ${RACE:-}"
read -ra flags <<<"${TEST_FLAGS:--count=1 -timeout 20m -p 4}"
exec="env -u GOGC sh -c 'case \$PWD in */cmd/humanqa) exec \"\$@\" ;; *) exec nice -n 5 \"\$@\" ;; esac' sh"
run() {
	GOGC=${GOGC:-400} GORACE="atexit_sleep_ms=0 ${GORACE:-}" \
		"$go" test -vet=off -ldflags='-s -w' -exec "$exec" "${flags[@]}" "$@"
}

echo "go test ${RACE:-} ${flags[*]}: $(wc -w <<<"$packages") packages"
failed=0
# shellcheck disable=SC2086 # a list
run $packages || failed=1
# With all packages of the service come those of bench, a module of its own.
if [[ ${*:-./...} == ./... ]]; then
	(cd bench && run ./...) || failed=1
fi
exit "$failed"

#!/usr/bin/env bash
# Runs the test suite, the slowest packages first, so that none runs alone in the end.
# internal/testing/suite prints a line for each package as it is done.
#
#	scripts/test.sh [package …]
#
# GO, RACE and TEST_FLAGS come from the Makefile. Everything is built the same way, the
# programs that tests build, too. Without RACE=-race that is the way of build.sh: go finds
# the packages that make run has compiled.
#
# cmd/humanqa, whose programs wait for each other, takes longest: the others leave it the
# processors when it wants them.
#
# The linter runs all checks of go vet, so they are left out here, and so are symbols
# for debuggers. The compiler gets four times the heap, as in build.sh, and the tests
# do not. The race detector's wait of a second at a test's end is off.
set -euo pipefail
go=${GO:-go}
slow='cmd/humanqa httpapi httpapi/dashboard eventstore/consumer httpapi/workbench cmd/hqa httpapi/console httpapi/room internal/pgdev webhooks/send eventstore/node eventstore'

tested() { "$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@"; }

packages=$(tested "${@:-./...}" |
	awk -v slow="$slow" '
		BEGIN { n = split(slow, names, " "); for (i = 1; i <= n; i++) rank["humanqa/" names[i]] = i }
		{ print ($1 in rank ? rank[$1] : n + NR), $1 }' | sort -n | cut -d' ' -f2-)
# With all packages of the service come those of bench, a module of its own.
bench=
if [[ ${*:-./...} == ./... ]]; then
	bench=$(cd bench && tested ./...)
fi
total=$(wc -w <<<"$packages $bench")

read -ra flags <<<"$TEST_FLAGS"
exec="env -u GOGC sh -c 'case \$PWD in */cmd/humanqa) exec \"\$@\" ;; *) exec nice -n 5 \"\$@\" ;; esac' sh"
run() {
	GOFLAGS="${GOFLAGS:-} ${RACE:-}" GOGC=${GOGC:-400} GORACE="atexit_sleep_ms=0 ${GORACE:-}" \
		"$go" test -json -vet=off -ldflags='-s -w' -exec "$exec" "${flags[@]}" "$@"
}

# What go builds lies in a folder of this run. A killed run leaves it to the next one.
for left in "${TMPDIR:-/tmp}"/humanqa-suite-*; do
	if [[ -O $left ]] && ! kill -0 "${left##*-}" 2>/dev/null; then
		rm -rf "$left"
	fi
done
export GOTMPDIR=${TMPDIR:-/tmp}/humanqa-suite-$$
mkdir "$GOTMPDIR"

echo "testing $total packages (go test${RACE:+ $RACE} ${flags[*]}); the first time go compiles them for minutes …"
set -m # the run gets a process group of its own
# shellcheck disable=SC2086 # both are lists
{
	failed=0
	[[ ! $packages ]] || run $packages || failed=$?
	[[ ! $bench ]] || (cd bench && run $bench) || failed=$?
	exit "$failed"
} | "$go" run ./internal/testing/suite "$total" &
group=$(jobs -p)
set +m

# The run ends with the program that called this script, such as a make that is killed.
while kill -0 "$PPID" 2>/dev/null && kill -0 -- "-$group" 2>/dev/null; do sleep 1; done && kill -TERM -- "-$group" 2>/dev/null &
trap 'kill -TERM -- "-$group" 2>/dev/null || true; rm -rf "$GOTMPDIR"' EXIT
trap 'exit 130' INT TERM HUP
wait %1

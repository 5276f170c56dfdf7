#!/usr/bin/env bash
# Runs the test suite in two groups at once, so that no core rests while the tests of
# one group wait.
#
#	scripts/test.sh [package …]
#
# GO, RACE and TEST_FLAGS come from the Makefile. Packages that start goroutines, in
# their code or in their tests, run with $RACE. In the others the race detector has
# nothing to find. Pages also run without it ($PAGES_RACE): a browser walks hundreds
# of them, over code that the other packages test with it.
#
# The linter runs all checks of go vet, so they are left out here, and so are symbols
# for debuggers. The compiler gets four times the heap, as in build.sh, and the tests
# do not. The race detector's wait of a second at a test's end is off.
set -euo pipefail
go=${GO:-go}
pages='/httpapi/(dashboard|workbench|console|room)$'
# The slowest packages start first, so that none runs alone in the end.
slow='cmd/humanqa internal/service httpapi eventstore/consumer eventstore/node httpapi/dashboard httpapi/workbench httpapi/room httpapi/console'

# starts_goroutines reports whether a package with tests starts goroutines.
starts_goroutines() {
	compgen -G "$1/*_test.go" >/dev/null &&
		grep -qE '^([^"`/]*[^[:alnum:]_"`/])?(go (func[^[:alnum:]]|[[:alnum:]_.]+\()|[[:alnum:]_]+\.Go\()' "$1"/*.go
}

packages=$("$go" list -f '{{.ImportPath}} {{.Dir}}' "${@:-./...}" |
	awk -v slow="$slow" -v module="$("$go" list -m)" '
		BEGIN { n = split(slow, names, " "); for (i = 1; i <= n; i++) rank[module "/" names[i]] = i }
		{ print ($1 in rank ? rank[$1] : n + NR), $0 }' | sort -n | cut -d' ' -f2-)
raced=() plain=()
while read -r package dir; do
	if [[ $package =~ $pages ]] || ! starts_goroutines "$dir"; then
		plain+=("$package")
	else
		raced+=("$package")
	fi
done <<<"$packages"

read -ra flags <<<"${TEST_FLAGS:--count=1 -timeout 12m -p 2}"
run() {
	GOGC=${GOGC:-400} GORACE="atexit_sleep_ms=0 ${GORACE:-}" \
		"$go" test -vet=off -ldflags='-s -w' -exec 'env -u GOGC' "${flags[@]}" "$@"
}

echo "go test ${RACE:-} ${flags[*]}: ${#raced[@]} packages that start goroutines, and ${#plain[@]} others and pages ${PAGES_RACE:-without the race detector}"
failed=0
# With all packages of the service come those of bench, a module of its own.
if [[ ${*:-./...} == ./... ]]; then
	(cd bench && run ./...) || failed=1
fi
# The second group prints its lines when it has ended, so that they do not mix.
later=$(mktemp)
trap 'rm -f "$later"' EXIT
if [[ ${#plain[@]} -gt 0 ]]; then
	run ${PAGES_RACE:-} "${plain[@]}" >"$later" 2>&1 &
fi
if [[ ${#raced[@]} -gt 0 ]]; then
	run ${RACE:-} "${raced[@]}" || failed=1
fi
if [[ ${#plain[@]} -gt 0 ]]; then
	wait $! || failed=1
	cat "$later"
fi
exit "$failed"

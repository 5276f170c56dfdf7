#!/usr/bin/env bash
# Runs the test suite: in two groups at once, so that no core rests while the tests
# of one wait.
#
#	scripts/test.sh [package …]
#
# GO, RACE and TEST_FLAGS are the Makefile's. Packages that start goroutines, in
# their code or in their tests, run with $RACE; in the others the race detector has
# nothing to find. Pages run without it too ($PAGES_RACE): they are walked in a
# browser by hundreds, over code that the other packages test with it.
#
# go vet's checks are left to the linter, which runs all of them; symbols that only a
# debugger reads stay out. The compiler gets four times the heap, as in build.sh, the
# tests do not; and none of them waits for a second, as the race detector has it, when
# it has ended.
set -euo pipefail
go=${GO:-go}
pages='/httpapi/(dashboard|workbench|console|room)$'
# What takes longest starts first, so that it does not run alone in the end.
slow='cmd/humanqa httpapi eventstore/consumer eventstore/node httpapi/dashboard httpapi/workbench httpapi/room httpapi/console'

# starts_goroutines says whether a package that has tests does.
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

read -ra flags <<<"${TEST_FLAGS:--count=1 -timeout 30m -p 2}"
run() {
	GOGC=${GOGC:-400} GORACE="atexit_sleep_ms=0 ${GORACE:-}" \
		"$go" test -vet=off -ldflags='-s -w' -exec 'env -u GOGC' "${flags[@]}" "$@"
}

echo "go test ${RACE:-} ${flags[*]}: ${#raced[@]} packages that start goroutines, and ${#plain[@]} others and pages ${PAGES_RACE:-without the race detector}"
# The second group's lines come when it has ended: those of both would mix.
later=$(mktemp)
trap 'rm -f "$later"' EXIT
failed=0
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

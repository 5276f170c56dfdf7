#!/usr/bin/env bash
# Builds a program and shows its progress: on a bare machine go fetches and compiles
# for minutes without a word.
#
#	scripts/build.sh bin/humanqa ./cmd/humanqa
#
# LDFLAGS go to the linker. By default they leave out the symbols and lines for
# debuggers: stack traces, profiles and --version don't need them. MOST is how many bytes
# the program may have.
#
# The compiler spends a fifth of its time on garbage of processes that end within
# seconds. Four times the heap is still below 500 MB each.
set -euo pipefail
export GOGC=${GOGC:-400}
go=${GO:-go} out=$1 package=$2

# report counts go's lines, one a module or a package, and shows the progress now and
# then. Any other line is an error of go, and is passed on.
report() {
	local doing=$1 of=$2 count=0 line
	while IFS= read -r line; do
		case $line in
		"go: downloading "*) ;;
		"" | "#"* | *[[:space:]:]*)
			printf '%s\n' "$line" >&2
			continue
			;;
		esac
		count=$((count + 1))
		if ((count % 50 == 0)); then
			echo "  $doing $count$of" >&2
		fi
	done
}

# Lists the packages outside the build cache, and fetches their modules.
stale=$(mktemp)
trap 'rm -f "$stale"' EXIT
"$go" list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$package" 2>&1 >"$stale" | report "fetched modules:" ""

total=$(grep -c . "$stale" || true)
if ((total > 50)); then
	echo "compiling $total packages into $out; the first time that takes minutes, later seconds …" >&2
fi
"$go" build -v -ldflags "${LDFLAGS--s -w}" -o "$out" "$package" 2>&1 | report "compiled" " of $total"

size=$(wc -c <"$out")
if [[ -n ${MOST:-} && -z ${LDFLAGS+set} && $size -gt $MOST ]]; then
	echo "$out has $size bytes, and at most $MOST are allowed: what was added to its imports?" >&2
	exit 1
fi

# Files that root builds in another user's checkout keep that owner.
if [[ $(id -u) -eq 0 && $out == bin/* ]]; then
	chown "$(stat -c %u:%g . 2>/dev/null || stat -f %u:%g .)" bin "$out"
fi

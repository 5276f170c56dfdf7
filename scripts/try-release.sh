#!/usr/bin/env bash
# Installs a release in fresh roots (scripts/release-roots.sh) and runs it there: the .deb,
# the .rpm, the archive and the image. Each service starts as its own user, takes a test from
# outside, exports it, passes humanqa fsck and doctor, and ends with status 0 after SIGTERM. The script
# also holds the unit's exposure against a limit.
#
#	scripts/try-release.sh FOLDER       # the folder that make release wrote
#
# It needs root on a Debian, with curl, debootstrap, ip, jq and unshare. The roots come from
# the mirror in apt's configuration. All its mounts, processes and addresses are in
# namespaces of its own, which end with it.
set -euo pipefail
chroot=$(command -v chroot)
exposure=29 # the most that systemd-analyze may say of the unit, in tenths
submission='{"title": "The shop", "description": "Buy something", "url": "https://example.com/shop", "jobType": "Payment Flow",
	"checklistItems": [{"description": "The total is right", "severity": "major"}]}'

# shellcheck source=scripts/release-roots.sh
source "$(dirname "$0")/release-roots.sh"

# story ROOT USER COMMAND…: the service runs by that command under "environ"; "tool" is how its
# operator runs a command. no_new_privs and the umask are the unit's.
story() {
	local root=$1 user=$2 url=http://127.0.0.1:8080 service key job curl check
	(umask 077 && exec env -i "${environ[@]}" setpriv --no-new-privs "$chroot" --userspec="$user" "$root" "${@:3}") \
		>"$work/service.log" 2>&1 &
	service=$!
	trap 'tail -n 20 "$work/service.log" >&2' EXIT
	until curl -fs "$url/readyz" >"$work/ready"; do
		[[ -e /proc/$service/exe && $SECONDS -lt 600 ]] || fail "the service is not ready: $(cat "$work/ready")"
		sleep 1
	done
	echo "   ready: $(ps -o uid=,args= -p $service)"
	[[ $(stat -c %u /proc/$service) -ne 0 ]] || fail "the service runs as root"
	key=$("${tool[@]}" --json account create --name Acme --credits 100 | jq -er .apiKey)
	curl=(curl -fsS -H "Authorization: Bearer $key" -H 'Content-Type: application/json')
	job=$("${curl[@]}" "$url/v1/jobs" -d "$submission" | jq -er .jobId)
	[[ $("${curl[@]}" "$url/v1/jobs/$job" | jq -r .status) == pending ]] || fail "the test $job is not pending"
	for check in doctor fsck; do
		"${tool[@]}" "$check" >"$work/$check" || { cat "$work/$check" >&2 && fail "humanqa $check found something"; }
	done
	"${tool[@]}" export jobs --format parquet | tail -c 4 | grep -q PAR1 || fail "humanqa export writes no Parquet"
	echo "   $("${tool[@]}" version --json | jq -r .version), fsck: $(tail -n 1 "$work/fsck")"
	kill -TERM $service
	wait $service || fail "after SIGTERM the exit status was $?"
	trap - EXIT
	echo "   $job was taken; after SIGTERM the exit status was 0"
}

# packaged ROOT: as the unit starts it, with its read-only system and private /tmp.
packaged() {
	local root=$1 unit=$1/lib/systemd/system/humanqa.service user
	user=$(sed -n 's/^User=//p' "$unit")
	install -d -m 700 "$root/var/lib/humanqa"
	as_root "$root" chown "$user:$user" /var/lib/humanqa
	mount -t tmpfs -o mode=1777 tmp "$root/tmp"
	seal "$root" /var/lib/humanqa
	mapfile -t environ < <(sed -n 's/^Environment=//p' "$unit" && grep '^[A-Z]' "$root/etc/humanqa/env")
	environ+=(PATH=/usr/sbin:/usr/bin:/sbin:/bin)
	tool=(as_root "$root" humanqa --env-file /etc/humanqa/env)
	# shellcheck disable=SC2046 # the words of a command
	story "$root" "$user:$user" $(sed -n 's/^ExecStart=//p' "$unit")
	echo "   hqa $(as_root "$root" hqa version)"
}

# archive unpacks the .tar.gz in the home of an ordinary user and runs it there.
archive() {
	local root=$work/tar file dir
	file=$(only "humanqa_*_linux_$arch.tar.gz")
	dir=/home/ordinary/$(basename "$file" .tar.gz)
	as_root "$root" useradd --create-home ordinary
	as_root "$root" setpriv --reuid ordinary --regid ordinary --clear-groups tar -xz -C /home/ordinary <"$file"
	environ=(PATH=/usr/bin:/bin HUMANQA_DATA_DIR=/home/ordinary/data)
	tool=(env -i "${environ[@]}" "$chroot" --userspec=ordinary:ordinary "$root" "$dir/humanqa")
	story "$root" ordinary:ordinary "$dir/humanqa" serve
	echo "   hqa $(as_root "$root" "$dir/hqa" version)"
}

# image unpacks the layers and runs the entrypoint on a read-only root, with the volume alone writable.
# The Postgres is that of the archive's root.
image() {
	local root=$work/image tar=$work/oci server config user layer
	mkdir -p "$root" "$tar"
	tar -xf "$(only "humanqa_*_$arch.oci.tar")" -C "$tar"
	for layer in $(jq -r '.[0].Layers[]' "$tar/manifest.json"); do
		tar -xpzf "$tar/$layer" -C "$root" --numeric-owner
	done
	config=$tar/$(jq -r '.[0].Config' "$tar/manifest.json")
	as_root "$work/tar" install -d -o postgres /run/trial
	server=(setpriv --reuid postgres --regid postgres --clear-groups sh -c)
	quietly as_root "$work/tar" "${server[@]}" 'cd /run/trial && /usr/lib/postgresql/*/bin/initdb -A trust -U humanqa data &&
		/usr/lib/postgresql/*/bin/pg_ctl -D data -w -l log -o "-k /run/trial" start'
	user=$(jq -r .config.User "$config")
	mapfile -t environ < <(jq -r '.config.Env[]' "$config")
	environ+=("HUMANQA_DATABASE_URL=postgres://humanqa@127.0.0.1:5432/postgres?sslmode=disable")
	equip "$root"
	seal "$root" "$(jq -r '.config.Volumes | keys[0]' "$config")"
	tool=(env -i "${environ[@]}" "$chroot" --userspec="$user" "$root" /usr/bin/humanqa)
	mapfile -t entry < <(jq -r '.config | .Entrypoint + .Cmd | .[]' "$config")
	story "$root" "$user" "${entry[@]}"
	quietly as_root "$work/tar" "${server[@]}" '/usr/lib/postgresql/*/bin/pg_ctl -D /run/trial/data -w stop'
}

trials() {
	ip link set lo up
	echo "== the .deb, as its unit starts it" && packaged "$work/deb"
	echo "== the .rpm, as its unit starts it" && packaged "$work/rpm"
	echo "== the archive, by an ordinary user" && archive
	echo "== the image, on a read-only root" && image
	echo "== the unit's exposure, at most $exposure tenths"
	as_root "$work/deb" systemd-analyze security --offline=true --threshold="$exposure" --no-pager /lib/systemd/system/humanqa.service
}

release=${2:-} work=${3:-} arch=$(dpkg --print-architecture)
case ${1:-} in
--in) # the mounts and processes are the trial's own from here
	mount -t proc proc /proc
	prepare
	exec unshare --net "$0" --alone "$release" "$work"
	;;
--alone) trials ;; # and so is the network: nothing but a loopback
*)
	[[ $# -eq 1 && -f $1/checksums.txt ]] || fail "usage: scripts/try-release.sh FOLDER, which make release wrote"
	[[ $(id -u) -eq 0 ]] || fail "run it as root: it makes roots and mounts"
	for program in apt-get curl debootstrap ip jq unshare; do
		command -v "$program" >/dev/null || fail "$program is missing: install it"
	done
	(cd "$1" && sha256sum --check --quiet checksums.txt) || fail "the files are not those of $1/checksums.txt"
	work=$(mktemp -d)
	trap 'rm -rf --one-file-system "$work"' EXIT
	unshare --mount --pid --fork --kill-child "$0" --in "$(realpath "$1")" "$work"
	;;
esac

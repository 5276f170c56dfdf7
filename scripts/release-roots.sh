#!/usr/bin/env bash
# The roots of scripts/try-release.sh, which sources this file: a minimal Debian for each
# package, with the package installed.
# shellcheck disable=SC2154 # "release" (its folder), "work" and "arch" are the script's

fail() {
	echo "try-release: $*" >&2
	exit 1
}

# only gives the one file of the release with that name.
only() {
	[[ $(find "$release" -name "$1" | wc -l) -eq 1 ]] || fail "$release has no $1, or several: run make release"
	find "$release" -name "$1"
}

# as_root ROOT COMMAND… runs there, without this machine's environment.
as_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$@"; }

# quietly shows the output of a step only if it fails.
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2 && fail "this did not work: $*"; }; }

# equip ROOT mounts the least that programs expect.
equip() {
	mkdir -p "$1"/{proc,dev}
	mount -t proc proc "$1/proc"
	mount -t tmpfs dev "$1/dev"
	mkdir -m 1777 "$1/dev/shm"
	for device in null zero full random urandom; do
		touch "$1/dev/$device"
		mount --bind "/dev/$device" "$1/dev/$device"
	done
}

# seal ROOT DIRECTORY makes all of a root read-only but the directory.
seal() {
	mount --rbind "$1" "$1"
	mount --bind "$1$2" "$1$2"
	mount -o remount,bind,ro "$1"
}

prepare() {
	local source program
	source=$(apt-get indextargets --format "\$(REPO_URI) \$(CODENAME)" 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -n 1)
	[[ $source ]] || fail "apt knows no mirror of Debian: run apt-get update"
	echo "== a minimal Debian ${source##* }, without a compiler and without Postgres"
	quietly debootstrap --variant=minbase "${source##* }" "$work/deb" "${source% *}"
	for program in cc gcc go postgres systemctl; do
		! as_root "$work/deb" sh -c "command -v $program" || fail "the minimal root has $program"
	done
	cp -a "$work/deb" "$work/rpm"
	echo "== apt installs both .deb, with the packages that they recommend"
	equip "$work/deb"
	cp "$(only "humanqa_*_$arch.deb")" "$work/deb/humanqa.deb"
	cp "$(only "hqa_*_$arch.deb")" "$work/deb/hqa.deb"
	quietly as_root "$work/deb" apt-get -q -y install ./humanqa.deb ./hqa.deb
	quietly as_root "$work/deb" apt-get -q -y install --no-install-recommends systemd # for systemd-analyze
	echo "== apt installs rpm and Postgres, and rpm installs both .rpm"
	equip "$work/rpm"
	quietly as_root "$work/rpm" apt-get -q -y install --no-install-recommends rpm postgresql
	cp -ax "$work/rpm" "$work/tar"
	equip "$work/tar"
	cp "$(only "humanqa_*_$arch.rpm")" "$(only "hqa_*_$arch.rpm")" "$work/rpm/"
	# rpm's own database is empty here, so the files that a package requires are looked for.
	as_root "$work/rpm" sh -c 'rpm -qpR /humanqa*.rpm | grep useradd' >/dev/null || fail "the .rpm makes a user and does not require useradd"
	# shellcheck disable=SC2016 # the root's own shell expands them
	quietly as_root "$work/rpm" sh -ec 'for file in $(rpm -qpR /*.rpm | grep ^/); do test -x "$file"; done; rpm --install --nodeps /*.rpm'
}

# Sourced by ./run and ./test: installs what is missing, builds. Needs Debian or a relative of it.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }
die() {
	say "$0: $*"
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		die "needs root to install packages ($*): run it as root, or install sudo"
	fi
}

build_packages=(meson ninja-build pkg-config gcc libc6-dev python3
	libsystemd-dev libuv1-dev libcjson-dev libmosquitto-dev libinih-dev scdoc)

missing_packages() {
	local package
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
	done
}

# Installs the packages that are not there yet. Quick and without root when all are.
install_packages() {
	if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
		say "$0: this is not a Debian-like system (no apt-get), so nothing can be installed for you."
		say "Install what these Debian packages hold, then: meson setup build && ninja -C build"
		say "    $*"
		exit 1
	fi
	local missing
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086
	say "installing: "$missing
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing \
		>/dev/null 2>&1 && return 0
	as_root apt-get update -q >/dev/null || die "apt-get update failed"
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing \
		>/dev/null || die "could not install: $missing"
}

# build DIR [meson option…]: configures once, builds what changed.
build() {
	local dir=$1
	shift
	if [ ! -e "$dir/build.ninja" ]; then
		rm -rf "$dir"
		meson setup "$dir" "$@" >"$dir.log" 2>&1 || {
			cat "$dir.log" >&2
			die "meson setup $dir failed"
		}
		mv "$dir.log" "$dir/setup.log"
	fi
	ninja -C "$dir" >"$dir/build.log" 2>&1 || {
		grep -vE '^\[[0-9]+/[0-9]+\] (Compiling|Linking|Generating)' "$dir/build.log" | head -60 >&2
		die "the build in $dir failed; all of it: $dir/build.log"
	}
}

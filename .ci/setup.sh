# SPDX-License-Identifier: Apache-2.0
# Sourced by ./run, ./test and ./install: installs what is missing, builds. Needs Debian or a relative of it.
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
		die "needs root: run it as root, or install sudo"
	fi
}

# shellcheck disable=SC2034
build_packages=(meson ninja-build pkg-config gcc libc6-dev python3
	libpython3-dev libsystemd-dev libuv1-dev libcjson-dev libmosquitto-dev libssl-dev libinih-dev libncurses-dev scdoc)

# Where an installed edgeprofd is: as Debian has it, and where the system's python3 looks for packages,
# but for those below /usr/local. Sets $layout, options of meson.
set_layout() {
	local python_dir
	python_dir=$(PATH=/usr/bin:$PATH python3 -c 'import site
found = site.getsitepackages()
print(next((path for path in found if path.startswith("/usr/lib/")), found[0]))')
	layout=(--prefix=/usr --sysconfdir=/etc --libdir="lib/$(gcc -print-multiarch)"
		-Dpython.purelibdir="$python_dir")
}

missing_packages() {
	local package
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
	done
}

# apt_install PACKAGE…: without starting a service that one of them brings along. Whether services of
# packages may start is for the policy file to say; the one of the machine, if any, stays in force.
policy=${EDGEPROF_POLICY:-/usr/sbin/policy-rc.d}
apt_install() {
	# shellcheck disable=SC2016
	as_root sh -c '
		policy=$1; shift
		if [ ! -e "$policy" ]; then
			trap "rm -f \"$policy\"" EXIT
			trap "exit 1" INT TERM HUP
			printf "#!/bin/sh\nexit 101\n" >"$policy" && chmod 0755 "$policy"
		fi
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
	' sh "$policy" "$@" 2>&1 | tee "$apt_log" | progress
}

# What an installed package enabled is as it was: off. Works without a running systemd, too.
disable_service() {
	# shellcheck disable=SC2016
	as_root sh -c '
		if command -v systemctl >/dev/null; then systemctl disable --now "$1"; fi
		if command -v deb-systemd-helper >/dev/null; then deb-systemd-helper disable "$1.service"; fi
		update-rc.d "$1" disable; true
	' sh "$1" >/dev/null 2>&1
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
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" -gt 0 ] || return 0
	say "installing: ${missing[*]}"
	as_root true # says here, not into the log, that it may not, and asks for a password
	apt_log=$(mktemp)
	if ! apt_install "${missing[@]}"; then
		say "reading the lists of packages"
		as_root apt-get update -q 2>&1 | progress || die "apt-get update failed"
		if ! apt_install "${missing[@]}"; then
			tail -n 20 "$apt_log" >&2
			die "could not install: ${missing[*]}"
		fi
	fi
	rm -f "$apt_log"
	local package
	for package in mosquitto prometheus openssh-server; do
		case " ${missing[*]} " in *" $package "*) disable_service "${package/openssh-server/ssh}" ;; esac
	done
}

# Shows the lines that come: on a terminal the newest in place, elsewhere a line each quarter of what
# ninja counts ("[12/345] …").
progress() {
	local line width done_ all shown=-1 tty=no
	[ ! -t 2 ] || tty=yes
	width=$(stty size <&2 2>/dev/null | cut -d ' ' -f 2) || true
	[ "${width:-0}" -ge 20 ] || width=80
	while IFS= read -r line; do
		if [ "$tty" = yes ]; then
			printf '\r\033[K%s' "${line:0:width-1}" >&2
		elif [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
			done_=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
			[ $((done_ * 4 / all)) -gt "$shown" ] || continue
			shown=$((done_ * 4 / all))
			say "building: $done_ of $all"
		fi
	done
	[ "$tty" = no ] || printf '\r\033[K' >&2
}

# options_of DIR MESON-OPTION…: what was asked for, and what the folder has, somebody else's change included.
options_of() {
	printf '%s\n' "${*:2}"
	cat "$1/meson-private/cmd_line.txt"
}

# build DIR MESON-OPTION…: configures, or brings a configured folder to these options; builds what
# changed: everything, or the targets in $build_targets.
build() {
	local dir=$1 again=()
	shift
	if [ ! -e "$dir/build.ninja" ]; then
		rm -rf "$dir"
		say "configuring $dir"
	elif ! options_of "$dir" "$@" | cmp -s - "$dir/setup.options"; then
		again=(--reconfigure)
		say "configuring $dir again"
	fi
	if [ ! -e "$dir/build.ninja" ] || [ "${#again[@]}" -gt 0 ]; then
		meson setup "${again[@]}" "$dir" "$@" >"$dir.log" 2>&1 || {
			cat "$dir.log" >&2
			die "meson setup $dir failed"
		}
		mv "$dir.log" "$dir/setup.log"
		options_of "$dir" "$@" >"$dir/setup.options"
	fi
	# shellcheck disable=SC2086 # a list
	ninja -C "$dir" ${build_targets:-} 2>&1 | tee "$dir/build.log" | progress || {
		grep -vE '^\[[0-9]+/[0-9]+\] (Compiling|Linking|Generating)' "$dir/build.log" | head -60 >&2
		die "the build in $dir failed; all of it: $dir/build.log"
	}
}

# What ./run shows, ./install installs and ./test tests as a whole, in one folder with the same options.
build_release() {
	set_layout
	build build-release "${layout[@]}" --buildtype=release -Dtests=disabled
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: builds with Debian's cross compilers, and runs the tests with the kernel executing what was built by qemu.
#
# usage: tests/arch/run.sh [--short] [arm64|armhf]...
#
# The long form builds everything as a package does and runs all unit tests and the integration tests; --short,
# which is part of ./test, only what depends most on the processor. Libraries and headers are those of the
# architecture's Debian packages, unpacked and kept in ${XDG_CACHE_HOME:-/var/tmp}/edgeprof-arch-*. Needs no root.
# What emulation cannot do is in skips.txt; the long form fails when one of them has become possible. Exits with
# 77, and the reason, where something is missing. Real kernels of these boards: board.py and pi.py.
set -euo pipefail
here=$(realpath "$(dirname "$0")") invocation=("$@")
source=$(dirname "$(dirname "$here")")
build=$source/build-arch
cache=${XDG_CACHE_HOME:-/var/tmp}
# shellcheck source=.ci/setup.sh
. "$source/.ci/setup.sh"

# Bytes and bits, atomics, threads and processes, times, roundings; each takes a few seconds.
short_tests=(accounts deferred_close index offload parse pool root json_write percentile statsd text varlink
	archive wallclock timeline frame_table stage_stats edgeprof edgeprof_advice edgeprof_binding edgeprof_clock
	edgeprof_context edgeprof_keys edgeprof_late edgeprof_life edgeprof_quiet edgeprof_session
	edgeprof_threads edgeprof_values record_order)

# Whole programs: what neither measures times nor makes trouble for the daemon on purpose.
long_tests=(examples answers path life stages frames 'bad input' reports 'statsd datagrams and emit' tegrastats
	'mqtt and a real broker')

skip() {
	echo "$*"
	exit 77
}

# describe ARCH: what GNU, meson and qemu call it.
describe() {
	case $1 in
	arm64) triple=aarch64-linux-gnu cpu=aarch64 qemu=aarch64 loader=ld-linux-aarch64.so.1 ;;
	armhf) triple=arm-linux-gnueabihf cpu=arm qemu=arm loader=ld-linux-armhf.so.3 ;;
	*)
		sed -n '4s/^# //p' "$0" >&2
		exit 64
		;;
	esac
}

# make_tree TREE ARCH PACKAGE…: apt with lists and a status of its own: the machine's are not touched.
make_tree() {
	local tree=$1 arch=$2 begun link
	shift 2
	begun=$(mktemp -d "$tree.XXXXXX")
	# shellcheck disable=SC2064 # now
	trap "rm -rf '$begun'" EXIT
	mkdir -p "$begun"/apt/{lists,archives}/partial "$begun/usr/lib"
	ln -s usr/lib "$begun/lib"
	: >"$begun/apt/status"
	local apt=(apt-get -q -y -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch" -o "Dir::State=$begun/apt"
		-o "Dir::State::status=$begun/apt/status" -o "Dir::Cache=$begun/apt" -o Debug::NoLocking=1)
	"${apt[@]}" update >"$begun/log" 2>&1 || true # a list that is missing may not be needed
	if ! "${apt[@]}" install --no-install-recommends --download-only "$@" >>"$begun/log" 2>&1; then
		tail -n 5 "$begun/log" >&2
		skip "the packages of $arch cannot be had from this machine's mirror"
	fi
	for package in "$begun"/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" |
			tar -x -C "$begun" --no-same-owner --keep-directory-symlink --exclude ./usr/share/doc --exclude ./usr/share/man
	done
	find "$begun" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
		ln -sfr "$begun$(readlink "$link")" "$link"
	done
	rm -rf "$begun/apt" "$begun/log"
	chmod 755 "$begun"
	mv -T "$begun" "$tree" 2>/dev/null || [ -d "$tree" ] || die "cannot make $tree" # or another run was quicker
	rm -rf "$begun"
	trap - EXIT
}

# The tree of $arch, whose name goes by what is in it. Sets $tree.
find_tree() {
	local packages=(check) package
	for package in "${build_packages[@]}"; do
		case $package in libpython*) ;; lib*-dev) packages+=("$package") ;; esac
	done
	local suite key
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-$ID}")
	key=$(echo "${packages[*]}" | sha256sum | cut -c 1-12)
	mkdir -p "$cache"
	tree=$(realpath "$cache")/edgeprof-arch-$arch-$suite-$key
	if [ ! -d "$tree" ]; then
		say "making $tree"
		make_tree "$tree" "$arch" "${packages[@]}"
	fi
	[ -O "$tree" ] || die "$tree belongs to another user"
}

# Programs name the tree's loader and libraries, and so run wherever a test starts them, in any environment.
write_cross_file() {
	cat <<-END
		[binaries]
		c = '$triple-gcc'
		ar = '$triple-ar'
		strip = '$triple-strip'
		pkgconfig = 'pkg-config'
		[properties]
		sys_root = '$tree'
		pkg_config_libdir = ['$tree/usr/lib/$triple/pkgconfig', '$tree/usr/share/pkgconfig']
		needs_exe_wrapper = false
		[built-in options]
		c_args = ['--sysroot=$tree']
		c_link_args = ['--sysroot=$tree', '-Wl,--dynamic-linker=$tree/lib/$loader', '-Wl,--disable-new-dtags',
		  '-Wl,-rpath,$tree/usr/lib/$triple']
		[host_machine]
		system = 'linux'
		cpu_family = '$cpu'
		cpu = '$cpu'
		endian = 'little'
	END
}

# build_arch DIR MESON-OPTION… -- TARGET…: builds the targets in DIR, or all.
build_arch() {
	local dir=$1 options=(--cross-file "$1.ini" --werror -Dtests=enabled -Dpython_extension=disabled -Ddebug=false)
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	write_cross_file >"$dir.ini.new"
	cmp -s "$dir.ini.new" "$dir.ini" || rm -rf "$dir" # meson reads it once
	mv "$dir.ini.new" "$dir.ini"
	[ -e "$dir/build.ninja" ] || quietly "$dir.log" meson setup "$dir" "$source" "${options[@]}"
	quietly "$dir.log" ninja -C "$dir" "$@"
}

# quietly LOG COMMAND…: says what the command printed only if it failed.
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 || {
		grep -vE '^\[[0-9]+/[0-9]+\] (Compiling|Linking|Generating)' "$log" | tail -n 60
		die "$arch: '${*:1:3}' failed; all of it: $log"
	}
}

# skips ARCH: PROGRAM FUNCTION REASON of each test that emulation cannot do.
skips() {
	grep -v '^#' "$here/skips.txt" | while read -r archs program function reason; do
		case $archs in all | "$1") echo "$program $function $reason" ;; esac
	done
}

# run_arch: builds and tests $arch.
run_arch() {
	local dir=$build/$arch targets=() options=() begun=$SECONDS built
	if [ "$short" = yes ]; then
		dir+=-short options=(-Doptimization=1)
		targets=(tests/unit/test_{util,proto,core_arch,libedgeprof}
			tests/unit/test_edgeprof_{clock,context,keys,late,quiet})
	fi
	find_tree
	build_arch "$dir" "${options[@]}" -- "${targets[@]}"
	built=$SECONDS
	EDGEPROF_WITHOUT=$(skips "$arch" | cut -d ' ' -f 2 | xargs)
	export EDGEPROF_WITHOUT
	if [ "$short" = yes ]; then
		test_arch "$dir" short "${short_tests[@]}"
	else
		test_arch "$dir" unit --suite unit --no-suite client
		test_arch "$dir" integration "${long_tests[@]}"
		find_needless_skips "$dir"
	fi
	echo "$arch: built in $((built - begun)) s, tested in $((SECONDS - built)) s"
}

# test_arch DIR NAME OPTION…: prints what failed, and the sums.
test_arch() {
	local dir=$1 name=$2
	shift 2
	meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 4 --logbase "$name" \
		--num-processes "$(($(nproc) + 1))" "$@" >"$dir-$name.log" 2>&1 || failed=1
	python3 "$source/tests/tools/summary.py" "$dir/meson-logs/$name.json" | grep -vE '^( *[0-9.]+ s  |the )' || true
}

# Each test that is skipped, alone: it must fail, unless it is only slow.
find_needless_skips() {
	local dir=$1 program function reason
	export EDGEPROF_SOURCE=$source EDGEPROF_BUILD=$dir CK_TIMEOUT_MULTIPLIER=10
	while read -r program function reason; do
		case $reason in slow:*) continue ;; esac
		case $program in
		*.py) set -- python3 "$source/$program" "$function" ;;
		*) set -- "$dir/$program" --test "$function" ;;
		esac
		if timeout 60 "$@" >"$dir-skipped.log" 2>&1; then
			echo "$arch: $program $function passes: it need not be in skips.txt ($reason)"
			failed=1
		elif [ $? = 64 ] || grep -q '^0 ok, 0 failed' "$dir-skipped.log"; then
			echo "$arch: $program has no $function"
			failed=1
		else
			echo "$arch: skipped: $function: $reason"
		fi
	done < <(skips "$arch")
}

short=no archs=()
for word in "$@"; do
	case $word in
	--short) short=yes ;;
	*) describe "$word" && archs+=("$word") ;;
	esac
done
[ ${#archs[@]} -gt 0 ] || archs=(arm64 armhf)

mkdir -p "$build"
failed=0 qemus=
for arch in "${archs[@]}"; do
	describe "$arch"
	qemus=${qemus:+$qemus,}$qemu
	command -v "$triple-gcc" >/dev/null || skip "$triple-gcc is not installed (package gcc-$triple)"
done
if [ -z "${EDGEPROF_EMULATION:-}" ]; then
	EDGEPROF_EMULATION=1 exec python3 "$here/emulation.py" "$qemus" "$0" "${invocation[@]}"
fi

for arch in "${archs[@]}"; do
	describe "$arch"
	run_arch
done
exit "$failed"

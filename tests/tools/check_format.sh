#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is every C file as clang-format leaves it? Exit 77 (skip) without the tool's version 14.
# usage: check_format.sh SOURCE_ROOT
set -eu
cd "$1"
tool=$(command -v clang-format-14 || command -v clang-format) || {
	echo "clang-format is not installed"
	exit 77
}
case $("$tool" --version) in
*" 14."*) ;;
*)
	echo "clang-format 14 is not installed (other versions format differently)"
	exit 77
	;;
esac
find proto daemon client tests -name '*.[ch]' -print0 | xargs -0 "$tool" --dry-run -Werror

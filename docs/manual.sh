#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# manual.sh SCDOC: makes a manual page of standard input. Its first line asks for tbl, which man-db 2.13 runs only
# where it is asked for, and scdoc leaves that line out.
printf '%s\n' "'\\\" t"
exec "$1"

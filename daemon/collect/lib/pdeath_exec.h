/*
 * Between the daemon and a child of child.c: a program cannot be told by uv_spawn to end with its
 * parent, so the daemon's own executable is started, which asks the kernel for it and becomes the
 * program. The process, its pid and its pipes stay the same.
 */
#pragma once

/* argv of the start: KEEPER_NAME, the daemon's pid, the program's absolute path, its arguments. */
#define KEEPER_NAME "edgeprofd-keeper"

enum { KEEPER_ARGUMENTS = 8 }; /* of the program, with its path */

/* For main, before anything else: returns when argv[0] is not KEEPER_NAME; becomes the program
 * otherwise, or writes why it cannot to standard output and exits with 127. */
void keeper_run(char **argv);

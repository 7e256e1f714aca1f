/* SPDX-License-Identifier: Apache-2.0 */
/* late.c: loads libedgeprof into a program that runs already, as Python and plugins do, and
 * records. The C library refuses thread-local memory then that is aligned more than its own; which
 * is 64 bytes on x86-64, and less elsewhere. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*stage)(const char *);
	if (!library) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: late LIBRARY");
		return 1;
	}
	*(void **)&stage = dlsym(library, "edgeprof_stage");
	return stage && stage("late") >= 0 ? 0 : 1;
}

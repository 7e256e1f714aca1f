/* Runs in the child, between uv_spawn and the program. PR_SET_PDEATHSIG outlives execve. */
#include "daemon/collect/lib/pdeath_exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void keeper_run(char **argv)
{
	if (!argv[0] || strcmp(argv[0], KEEPER_NAME) != 0 || !argv[1] || !argv[2]) {
		return;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before that was asked for. */
	if (getppid() != strtol(argv[1], NULL, 10)) {
		_exit(127);
	}
	execv(argv[2], argv + 2);
	printf("cannot run %s: %s\n", argv[2], strerror(errno));
	fflush(stdout);
	_exit(127);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* std_fds.h: keeps descriptors that are opened later from becoming stdin, stdout or stderr. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

/* First in main(): a standard stream that is closed stays unusable here, and closed for children.
 * Else a socket or a file would get its number, and with it what is printed. */
static inline void std_fds_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			/* the lowest free number is this one */
			(void)open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		}
	}
}

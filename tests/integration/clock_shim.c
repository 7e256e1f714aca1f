/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a wall clock that a test sets. $CLOCK_SHIM is a FIFO that the test keeps open;
 * what it writes there, three int64_t, is the expirations that the daemon reads, by how many ns the
 * clock is ahead from then on, and whether it is synchronised. Until then the clock shows 1970. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_state[2];
static int fifo = -1;

static int64_t real_ns(clockid_t clock)
{
	struct timespec ts;
	syscall(SYS_clock_gettime, clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
	clock_state[0] = INT64_C(600000000000) - real_ns(CLOCK_REALTIME);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (clock != CLOCK_REALTIME) {
		return (int)syscall(SYS_clock_gettime, clock, ret);
	}
	const int64_t ns = real_ns(clock) + clock_state[0];
	*ret = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	return 0;
}

int adjtimex(struct timex *state)
{
	state->status = clock_state[1] ? 0 : STA_UNSYNC;
	return 0;
}

/* The daemon reads its timer when the clock is set. */
int timerfd_create(int clock, int flags)
{
	const char *path = getenv("CLOCK_SHIM");
	if (clock != CLOCK_REALTIME || !path) {
		return (int)syscall(SYS_timerfd_create, clock, flags);
	}
	fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return fifo;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	if (fd != fifo) {
		return (int)syscall(SYS_timerfd_settime, fd, flags, when, before);
	}
	int64_t set[2];
	if (read(fd, set, sizeof(set)) == (ssize_t)sizeof(set)) {
		memcpy(clock_state, set, sizeof(set));
	}
	return 0;
}

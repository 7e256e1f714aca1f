/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c: blocks the signals of a terminal while something is shown, and reads them. */
#include "client/edgeprofctl/term/screen.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/edgeprofctl/term/when.h"

struct screen {
	int signals;
	sigset_t old_mask;
};

int screen_open(struct screen **ret)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
	struct screen *screen = calloc(1, sizeof(*screen));
	if (!screen) {
		return -ENOMEM;
	}
	sigset_t mask;
	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaddset(&mask, numbers[i]);
	}
	screen->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (screen->signals < 0) {
		int error = errno;
		free(screen);
		return -error;
	}
	sigprocmask(SIG_BLOCK, &mask, &screen->old_mask);
	*ret = screen;
	return 0;
}

void screen_close(struct screen *screen)
{
	if (!screen) {
		return;
	}
	/* What is still pending would end us before we can report our status. */
	while (screen_next(screen) != SCREEN_UPDATE) {
	}
	close(screen->signals);
	sigprocmask(SIG_SETMASK, &screen->old_mask, NULL);
	free(screen);
}

int screen_fd(const struct screen *screen)
{
	return screen->signals;
}

enum screen_event screen_next(struct screen *screen)
{
	struct signalfd_siginfo info;
	if (read(screen->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return SCREEN_UPDATE;
	}
	return info.ssi_signo == SIGWINCH  ? SCREEN_REDRAW
	       : info.ssi_signo == SIGTSTP ? SCREEN_STOP
					   : SCREEN_QUIT;
}

enum screen_event screen_wait(struct screen *screen, uint64_t milliseconds)
{
	double deadline = when_mono_ms() + (double)milliseconds;
	for (;;) {
		struct pollfd fd = {.fd = screen->signals, .events = POLLIN};
		double left = ceil(deadline - when_mono_ms());
		int r = poll(&fd, 1, (int)fmin(fmax(left, 0), INT_MAX));
		enum screen_event event = r > 0 ? screen_next(screen) : SCREEN_UPDATE;
		if (event == SCREEN_STOP) {
			raise(SIGSTOP);
			event = SCREEN_REDRAW;
		}
		if (r == 0 || event != SCREEN_UPDATE) {
			return event;
		}
	}
}

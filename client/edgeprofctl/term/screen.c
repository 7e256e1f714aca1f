/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c: draws the live screen. Signals are read from a descriptor, so that the terminal is
 * restored by ordinary code whatever ends the program. */
#include "client/edgeprofctl/term/screen.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/edgeprofctl/term/output.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"

struct screen {
	bool tty, keys; /* keys: stdin is the terminal too */
	int signals;
	sigset_t old_mask;
	struct termios old_terminal;
};

static void enter(struct screen *screen)
{
	static const char begin[] = "\033[?1049h\033[?25l\033[2J";
	if (screen->keys) {
		struct termios raw = screen->old_terminal;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	if (screen->tty) {
		output_write(STDOUT_FILENO, begin, sizeof(begin) - 1);
	}
}

static void leave(struct screen *screen)
{
	static const char end[] = "\033[0m\033[?25h\033[?1049l";
	if (screen->tty) {
		output_write(STDOUT_FILENO, end, sizeof(end) - 1);
	}
	if (screen->keys) {
		tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->old_terminal);
	}
}

int screen_open(bool tty, struct screen **ret)
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
	screen->tty = tty;
	screen->keys = tty && tcgetattr(STDIN_FILENO, &screen->old_terminal) == 0;
	enter(screen);
	*ret = screen;
	return 0;
}

void screen_close(struct screen *screen)
{
	if (!screen) {
		return;
	}
	struct signalfd_siginfo info;
	leave(screen);
	/* What is still pending would end us before we can report our status. */
	while (read(screen->signals, &info, sizeof(info)) > 0) {
	}
	close(screen->signals);
	sigprocmask(SIG_SETMASK, &screen->old_mask, NULL);
	free(screen);
}

static enum screen_event take_signal(struct screen *screen)
{
	struct signalfd_siginfo info;
	if (read(screen->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return SCREEN_UPDATE;
	}
	if (info.ssi_signo == SIGWINCH) {
		return SCREEN_REDRAW;
	}
	if (info.ssi_signo == SIGTSTP) {
		leave(screen);
		raise(SIGSTOP);
		enter(screen);
		return SCREEN_REDRAW;
	}
	return SCREEN_QUIT;
}

static bool quit_key(struct screen *screen)
{
	char keys[32];
	ssize_t got = read(STDIN_FILENO, keys, sizeof(keys));
	if (got <= 0) {
		screen->keys = got < 0 && errno == EINTR; /* the terminal is gone */
		return got == 0;
	}
	return memchr(keys, 'q', (size_t)got) || memchr(keys, 'Q', (size_t)got);
}

enum screen_event screen_wait(struct screen *screen, uint64_t milliseconds)
{
	double deadline = when_mono_ms() + (double)milliseconds;
	for (;;) {
		struct pollfd fds[] = {
			{.fd = screen->signals, .events = POLLIN},
			{.fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN},
		};
		double left = ceil(deadline - when_mono_ms());
		int r = poll(fds, 2, (int)fmin(fmax(left, 0), INT_MAX));
		if (r == 0) {
			return SCREEN_UPDATE;
		}
		if (r > 0 && fds[0].revents != 0) {
			enum screen_event event = take_signal(screen);
			if (event != SCREEN_UPDATE) {
				return event;
			}
		}
		if (r > 0 && fds[1].revents != 0 && quit_key(screen)) {
			return SCREEN_QUIT;
		}
	}
}

/* The beginning of a line that takes at most `width` columns, its escape sequences all of it. */
static void put_line(FILE *out, const char *line, size_t length, unsigned width)
{
	const char *end = line + length;
	unsigned columns = 0;
	while (line < end) {
		const char *next = line;
		if (*line == '\033') {
			next += strcspn(line, "m");
			next += *next == 'm';
		} else {
			text_decode(&next);
			char character[8] = "";
			memcpy(character, line, (size_t)(next - line));
			columns += (unsigned)text_width(character);
		}
		if (width == 0 || *line == '\033' || columns <= width) {
			fwrite(line, 1, (size_t)(next - line), out);
		}
		line = next;
	}
}

static unsigned count_lines(const char *text)
{
	unsigned lines = 0;
	for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
		lines++;
	}
	return lines;
}

void screen_print(FILE *out, const char *text, unsigned width, unsigned height, const char *end)
{
	unsigned lines = count_lines(text);
	unsigned shown = height > 0 && lines > height ? height - 1 : lines;
	for (unsigned line = 0; line < shown; line++) {
		size_t length = strcspn(text, "\n");
		put_line(out, text, length, width);
		fprintf(out, "%s%s", end, line + 1 < lines ? "\n" : "");
		text += length + (text[length] == '\n');
	}
	if (shown < lines) {
		char more[80];
		snprintf(more, sizeof(more), "... %u more; edgeprofctl sensors", lines - shown);
		put_line(out, more, strlen(more), width);
		fputs(end, out);
	}
}

int screen_draw(const char *text, unsigned width, unsigned height)
{
	/* Each line clears its own rest: no flicker, as clearing the whole screen first would. */
	char *bytes = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);
	if (!out) {
		return -ENOMEM;
	}
	fputs("\033[H", out);
	screen_print(out, text, width, height, "\033[K\r");
	fputs("\033[J", out);
	bool failed = fclose(out) != 0;
	int r = failed ? -ENOMEM : output_write(STDOUT_FILENO, bytes, size);
	free(bytes);
	return r;
}

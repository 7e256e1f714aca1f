/* SPDX-License-Identifier: Apache-2.0 */
/* output.c: collects output in memory first: then its length is known (pager or not), and a screen
 * can be drawn with one write. The pager is a child with the text on its stdin. */
#include "client/edgeprofctl/term/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/edgeprofctl/term/wrap.h"

enum { PAGER_WORDS = 16 };

int output_open(struct output *output)
{
	output->bytes = NULL;
	output->size = 0;
	output->stream = open_memstream(&output->bytes, &output->size);
	return !output->stream ? -ENOMEM : 0;
}

void output_finish(struct output *output)
{
	if (output->stream) {
		fclose(output->stream);
		output->stream = NULL;
	}
	free(output->bytes);
	output->bytes = NULL;
}

static void set_signal(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};
	sigaction(number, &action, NULL);
}

void output_ignore_sigpipe(void)
{
	set_signal(SIGPIPE, SIG_IGN);
}

int output_write(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written >= 0) {
			bytes += written;
			length -= (size_t)written;
		} else if (errno == EAGAIN) {
			struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
			poll(&poll_fd, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

bool output_wait(int fd, double ms)
{
	struct pollfd fds[] = {{.fd = STDOUT_FILENO}, {.fd = fd, .events = POLLIN}};
	return poll(fds, 2, (int)fmin(fmax(ceil(ms), 0), INT_MAX)) > 0 && fds[0].revents != 0;
}

static bool longer_than(const char *bytes, size_t length, unsigned lines)
{
	unsigned seen = 0;
	for (size_t i = 0; i < length && seen < lines; i++) {
		seen += bytes[i] == '\n';
	}
	return seen >= lines;
}

/* Words of the command, which is changed. False when no pager is wanted. */
static bool split(char *command, char *words[PAGER_WORDS])
{
	size_t count = 0;
	char *rest = NULL;
	for (char *word = strtok_r(command, " ", &rest); word && count < PAGER_WORDS - 1;
		word = strtok_r(NULL, " ", &rest)) {
		words[count++] = word;
	}
	words[count] = NULL;
	return count > 0 && strcmp(words[0], "cat") != 0;
}

static int start_pager(char *const words[], int input, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t usual;
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGINT);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	setenv("LESS", "FRX", 0); /* also of PAGER=less: colours, and short texts without waiting */
	setenv("LV", "-c", 0);
	setenv("LESSCHARSET", "utf-8", 0);
	setenv("LESSSECURE", "1", 0);
	int error = posix_spawnp(ret, words[0], &actions, &attributes, words, environ);
	if (error == ENOEXEC && strchr(words[0], '/')) { /* a script without "#!", as execvp(3) */
		char shell[] = "/bin/sh", *script[PAGER_WORDS + 1] = {shell};
		for (size_t i = 0; words[i]; i++) {
			script[i + 1] = words[i];
		}
		error = posix_spawn(ret, shell, &actions, &attributes, script, environ);
	}
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static int run_pager(char *const words[], const char *bytes, size_t length)
{
	int input[2];
	pid_t pid;
	if (pipe2(input, O_CLOEXEC) < 0) {
		return -ENOENT;
	}
	/* Ctrl-C belongs to the pager while it runs. */
	set_signal(SIGINT, SIG_IGN);
	int error = start_pager(words, input[0], &pid);
	close(input[0]);
	if (error == 0) {
		output_write(input[1], bytes, length);
	}
	close(input[1]);
	while (error == 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
	set_signal(SIGINT, SIG_DFL);
	return error != 0 ? -ENOENT : 0;
}

/* Shows the text and waits for the pager's end. 0, or -ENOENT when no pager is wanted (short text,
 * no terminal, PAGER empty or cat) or none can be started: then nothing was shown. */
static int pager_show(const char *bytes, size_t length, const struct style *style)
{
	if (!style->tty || style->height == 0 || !longer_than(bytes, length, style->height)) {
		return -ENOENT;
	}
	const char *wanted = getenv("PAGER");
	char *command = strdup(!wanted ? "less -FRSX" : wanted);
	char *words[PAGER_WORDS];
	int r = -ENOENT;
	if (command && split(command, words)) {
		r = run_pager(words, bytes, length);
	}
	free(command);
	return r;
}

/* Wraps what was collected. -ENOMEM */
static int wrap(struct output *output)
{
	char *bytes;
	size_t size;
	FILE *stream = open_memstream(&bytes, &size);
	if (!stream) {
		return -ENOMEM;
	}
	wrap_write(output->bytes, output->style->width, stream);
	bool failed = ferror(stream) != 0;
	if (fclose(stream) != 0 || failed) {
		free(bytes);
		return -ENOMEM;
	}
	free(output->bytes);
	output->bytes = bytes;
	output->size = size;
	return 0;
}

static int show(struct output *output, const struct style *pager_style)
{
	bool failed = ferror(output->stream) != 0;
	failed = fclose(output->stream) != 0 || failed;
	output->stream = NULL;
	int r = failed ? -ENOMEM : -ENOENT;
	if (!failed && output->style && output->style->width > 0 && wrap(output) < 0) {
		r = -ENOMEM;
	}
	if (r == -ENOENT && pager_style) {
		r = pager_show(output->bytes, output->size, pager_style);
	}
	if (r == -ENOENT) {
		r = output_write(STDOUT_FILENO, output->bytes, output->size);
	}
	free(output->bytes);
	int opened = output_open(output);
	return r < 0 ? r : opened;
}

int output_flush(struct output *output)
{
	return show(output, NULL);
}

int output_page(struct output *output, const struct style *style)
{
	return show(output, style);
}

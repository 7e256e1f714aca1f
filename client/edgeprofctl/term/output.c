/* SPDX-License-Identifier: Apache-2.0 */
/* output.c: collects output in memory first: then its length is known (pager or not), and a screen
 * can be drawn with one write. The pager is a child with the text on its stdin; a close-on-exec
 * pipe shows that exec worked: it reads end of file then, an errno otherwise. */
#include "client/edgeprofctl/term/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void become_pager(char *const words[], int input, int status)
{
	set_signal(SIGPIPE, SIG_DFL);
	set_signal(SIGINT, SIG_DFL);
	setenv("LESSCHARSET", "utf-8", 0);
	setenv("LESSSECURE", "1", 0);
	if (dup2(input, STDIN_FILENO) >= 0) {
		execvp(words[0], words);
	}
	int error = errno;
	if (write(status, &error, sizeof(error)) < 0) {
		_exit(126);
	}
	_exit(127);
}

static int run_pager(char *const words[], const char *bytes, size_t length)
{
	int input[2], status[2];
	if (pipe2(input, O_CLOEXEC) < 0) {
		return -ENOENT;
	}
	if (pipe2(status, O_CLOEXEC) < 0) {
		close(input[0]);
		close(input[1]);
		return -ENOENT;
	}
	/* Ctrl-C belongs to the pager while it runs. */
	set_signal(SIGINT, SIG_IGN);
	pid_t pid = fork();
	if (pid == 0) {
		become_pager(words, input[0], status[1]);
	}
	close(input[0]);
	close(status[1]);
	int error = pid < 0 ? EAGAIN : 0;
	ssize_t got = pid < 0 ? 0 : read(status[0], &error, sizeof(error));
	close(status[0]);
	if (pid >= 0 && got <= 0) {
		output_write(input[1], bytes, length);
	}
	close(input[1]);
	while (pid >= 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
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

static int show(struct output *output, const struct style *pager_style)
{
	bool failed = ferror(output->stream) != 0;
	failed = fclose(output->stream) != 0 || failed;
	output->stream = NULL;
	int r = failed ? -ENOMEM : -ENOENT;
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

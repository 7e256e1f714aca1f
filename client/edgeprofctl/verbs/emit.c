/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c: sends measurements from a shell. One value, a command's duration, or whole statsd lines
 * from the standard input go to the daemon as datagrams.
 */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/edgeprofctl/datagram.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/statsd/number.h"
#include "proto/statsd/statsd.h"
#include "proto/text.h"

enum {
	NOT_FOUND = 127, /* exit statuses of shells and env(1) */
	NOT_RUN = 126,
	BY_SIGNAL = 128,
};

static int emit_send(struct ctl *ctl, int fd, const char *lines, size_t length, int wait_ms)
{
	int r = datagram_send(fd, lines, length, wait_ms);
	if (r == -EAGAIN) {
		return ctl_fail(
			ctl, CTL_UNREACHABLE, "edgeprofd is busy: %zu bytes were not sent", length);
	}
	return r == 0 ? CTL_FINE
		      : ctl_fail(ctl, CTL_UNREACHABLE, "edgeprofd rejects datagrams: %s",
				strerror(-r));
}

/* value: text of a number. fd -1: only checks. */
static int send_value(
	struct ctl *ctl, int fd, const char *name, const char *value, const char *type)
{
	char buffer[512];
	struct text line = TEXT_IN(buffer);
	datagram_add_line(ctl, &line, name, value, type, ctl->options.frame);
	int status = datagram_check(ctl, name, &line);
	return status == CTL_FINE && fd >= 0
		       ? emit_send(ctl, fd, line.data, line.length, DATAGRAM_WAIT_MS)
		       : status;
}

/* VALUE[ms|s|us|g|c]: the number as a line has it, and the line's type. */
static int read_value(struct ctl *ctl, const char *text, char value[64], const char **type)
{
	static const struct {
		const char *suffix, *type;
		double factor;
	} kinds[] = {{"", "g", 1}, {"g", "g", 1}, {"c", "c", 1}, {"ms", "ms", 1}, {"s", "ms", 1e3},
		{"us", "ms", 1e-3}};
	const char *at = text;
	double number;
	if (statsd_number(&at, text + strlen(text), &number) && at - text < 64) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strcmp(at, kinds[i].suffix) != 0) {
				continue;
			}
			*type = kinds[i].type;
			if (kinds[i].factor == 1) { /* the sign of a gauge means something */
				snprintf(value, 64, "%.*s", (int)(at - text), text);
			} else {
				snprintf(value, 64, "%.15g", number * kinds[i].factor);
			}
			return CTL_FINE;
		}
	}
	return ctl_fail(
		ctl, CTL_USAGE, "invalid value '%s'; use a number, with ms, s, us, g or c", text);
}

static int emit_value(struct ctl *ctl)
{
	char value[64];
	const char *type = "";
	int fd = -1;
	if (ctl->word_count != 2) {
		return ctl_fail(ctl, CTL_USAGE, "emit requires a name and a value");
	}
	int status = read_value(ctl, ctl->words[1], value, &type);
	status = status == CTL_FINE ? send_value(ctl, -1, ctl->words[0], value, type) : status;
	status = status == CTL_FINE ? datagram_open(ctl, stderr, &fd) : status;
	if (status == CTL_FINE) {
		status = send_value(ctl, fd, ctl->words[0], value, type);
		close(fd);
	}
	return status;
}

/* Runs it in the foreground. Returns its exit status as a shell does; -errno when fork fails.
 */
static int run_command(char **command)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
	int status;
	/* Ctrl-C is the command's: what it took until then is still of interest. */
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	pid_t pid = fork();
	if (pid == 0) {
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
		execvp(command[0], command);
		int error = errno;
		fprintf(stderr, "edgeprofctl: %s: %s\n", command[0], strerror(error));
		_exit(error == ENOENT ? NOT_FOUND : NOT_RUN);
	}
	int r = pid < 0 ? -errno : 0;
	while (r == 0 && waitpid(pid, &status, 0) < 0) {
		r = errno == EINTR ? 0 : -errno;
	}
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	if (r < 0) {
		return r;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : BY_SIGNAL + WTERMSIG(status);
}

/* Whatever becomes of the datagram, the exit status is the command's. */
static int emit_time(struct ctl *ctl)
{
	const char *name = ctl->options.time;
	char value[64];
	int fd;
	int status = send_value(ctl, -1, name, "0", "ms");
	if (status != CTL_FINE) {
		return status;
	}
	double begin = when_mono_ms();
	int result = run_command(ctl->words);
	snprintf(value, sizeof(value), "%.6f", when_mono_ms() - begin);
	if (result < 0) {
		return ctl_fail(ctl, CTL_OUTPUT, "cannot run the command: %s", strerror(-result));
	}
	if (result != NOT_FOUND && result != NOT_RUN &&
		datagram_open(ctl, stderr, &fd) == CTL_FINE) {
		send_value(ctl, fd, name, value, "ms");
		close(fd);
	}
	return result;
}

struct input {
	int fd; /* of the daemon */
	uint64_t line;
	bool bad, cut; /* cut: the rest of a line that was too long is still to come */
	size_t used, filled;
	char bytes[DATAGRAM_SIZE], datagram[DATAGRAM_SIZE];
};

static int flush(struct ctl *ctl, struct input *input)
{
	int status = CTL_FINE;
	if (input->filled > 0) {
		status = emit_send(ctl, input->fd, input->datagram, input->filled,
			(int)ctl->options.timeout_ms);
	}
	input->filled = 0;
	return status;
}

static int add_line(struct ctl *ctl, struct input *input, const char *text, size_t length)
{
	struct statsd_reader reader;
	int status = CTL_FINE;
	input->line++;
	statsd_reader_init(&reader, text, length);
	enum statsd_result result = statsd_next(&reader);
	if (result == STATSD_END) {
		return CTL_FINE; /* an empty line */
	}
	if (result != STATSD_LINE) {
		input->bad = true;
		ctl_fail(ctl, CTL_BAD_NEWS, "line %" PRIu64 ": %s", input->line, reader.reason);
		return CTL_FINE;
	}
	bool time = reader.line.type == STATSD_TIME;
	do {
		double ms = reader.line.value;
		const char *bad = time ? datagram_bad_duration(ms) : NULL;
		if (bad) {
			input->bad = true;
			ctl_fail(ctl, CTL_BAD_NEWS, "line %" PRIu64 ": a duration of %g ms is %s",
				input->line, ms, bad);
			return CTL_FINE;
		}
	} while (statsd_next_value(&reader.line));
	if (input->filled + length + 1 > sizeof(input->datagram)) {
		status = flush(ctl, input);
	}
	memcpy(input->datagram + input->filled, text, length);
	input->datagram[input->filled + length] = '\n';
	input->filled += length + 1;
	return status;
}

/* The complete lines that were read; what is left moves to the front. */
static int add_lines(struct ctl *ctl, struct input *input)
{
	char *at = input->bytes, *end = input->bytes + input->used, *newline;
	int status = CTL_FINE;
	while (status == CTL_FINE && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		if (!input->cut) {
			status = add_line(ctl, input, at, (size_t)(newline - at));
		}
		input->cut = false;
		at = newline + 1;
	}
	input->used = (size_t)(end - at);
	memmove(input->bytes, at, input->used);
	if (input->used == sizeof(input->bytes) - 1) {
		if (!input->cut) {
			input->line++;
			input->bad = true;
			ctl_fail(ctl, CTL_BAD_NEWS, "line %" PRIu64 " is too long", input->line);
		}
		input->cut = true;
		input->used = 0;
	}
	return status;
}

static int emit_input(struct ctl *ctl, struct input *input)
{
	int status = CTL_FINE;
	while (status == CTL_FINE) {
		ssize_t got = read(STDIN_FILENO, input->bytes + input->used,
			sizeof(input->bytes) - 1 - input->used);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return ctl_fail(
				ctl, CTL_NO_INPUT, "cannot read the input: %s", strerror(errno));
		}
		if (got == 0) {
			break;
		}
		input->used += (size_t)got;
		status = add_lines(ctl, input);
		status = status == CTL_FINE ? flush(ctl, input) : status;
	}
	if (status == CTL_FINE && input->used > 0 && !input->cut) { /* no line end at the end */
		status = add_line(ctl, input, input->bytes, input->used);
		status = status == CTL_FINE ? flush(ctl, input) : status;
	}
	return status == CTL_FINE && input->bad ? CTL_BAD_NEWS : status;
}

static int emit_lines(struct ctl *ctl)
{
	if (ctl->word_count != 1 || ctl->options.app || ctl->options.frame || ctl->options.unit ||
		ctl->options.category) {
		return ctl_fail(ctl, CTL_USAGE,
			"'emit -' reads complete lines and accepts no other arguments");
	}
	struct input *input = ctl_memory(1, sizeof(*input));
	int status = datagram_open(ctl, stderr, &input->fd);
	if (status == CTL_FINE) {
		status = emit_input(ctl, input);
		close(input->fd);
	}
	free(input);
	return status;
}

static int run(struct ctl *ctl)
{
	if (ctl->options.time) {
		return emit_time(ctl);
	}
	return strcmp(ctl->words[0], "-") == 0 ? emit_lines(ctl) : emit_value(ctl);
}

static int parse_frame(const struct option_spec *spec, const char *text, void *value)
{
	size_t length = strspn(text, "0123456789");
	bool valid = length > 0 && length <= 19 && text[length] == '\0';
	return valid ? option_text(spec, text, value) : -EINVAL;
}

static const struct option_spec options[] = {
	{"app", 0, "APP", "the app that the value belongs to; default: statsd", option_nonempty,
		offsetof(struct options, app)},
	{"frame", 0, "N", "the frame that the value belongs to", parse_frame,
		offsetof(struct options, frame)},
	{"unit", 0, "UNIT", "the compute unit of a stage, such as gpu, or the unit of a gauge",
		option_nonempty, offsetof(struct options, unit)},
	{"category", 0, "CATEGORY", "the category of a stage, such as model", option_nonempty,
		offsetof(struct options, category)},
	{"time", 0, "NAME", "run COMMAND and send how long it took as stage NAME", option_nonempty,
		offsetof(struct options, time)},
	{.name = NULL},
};

const struct verb verb_emit = {"emit", "NAME VALUE[ms|s|us|g|c] | --time NAME -- COMMAND... | -",
	"Send a value, or time a command.", "emit infer 12.5ms --app cam", options, run};

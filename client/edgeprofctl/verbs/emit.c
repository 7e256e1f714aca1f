/*
 * emit: a shell's way to time things. One value, a command's duration, or whole statsd lines from
 * the standard input go to the daemon as datagrams. What is sent is read back with the daemon's
 * parser first, so that a mistake is told here and not only counted there.
 */
#include "client/edgeprofctl/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/edgeprofctl/verbs/emit_socket.h"
#include "proto/statsd/number.h"
#include "proto/statsd/statsd.h"

enum {
	DATAGRAM = 8192, /* what statsd clients send at most over Unix sockets */
	WAIT_MS = 200,
	NOT_FOUND = 127, /* exit statuses of shells and env(1) */
	NOT_RUN = 126,
	BY_SIGNAL = 128,
};

static bool same(struct statsd_text text, const char *wanted)
{
	size_t length = wanted == NULL ? 0 : strlen(wanted);
	return text.length == length && (length == 0 || memcmp(text.at, wanted, length) == 0);
}

/* The line as the daemon will read it must say what was asked for. */
static int check_line(struct ctl *ctl, const char *name, const char *text)
{
	struct statsd_reader reader;
	struct statsd_line line;
	const struct options *options = &ctl->options;
	statsd_reader_init(&reader, text, strlen(text));
	enum statsd_result result = statsd_next(&reader, &line);
	if (result != STATSD_LINE) {
		return ctl_fail(ctl, CTL_USAGE, "'%s' can't be sent: %s", name,
			result == STATSD_END ? "no name" : reader.reason);
	}
	if (!same(line.name, name) || reader.at != reader.end) {
		return ctl_fail(
			ctl, CTL_USAGE, "'%s' is no name: without ':', '|', line ends", name);
	}
	if (!same(line.app, options->app) || !same(line.unit, options->unit)) {
		return ctl_fail(ctl, CTL_USAGE, "an app or unit is without ',', '|', line ends");
	}
	return CTL_FINE;
}

/* "name:value|type" and the tags that were given. value: text of a number. */
static int send_value(
	struct ctl *ctl, int fd, const char *name, const char *value, const char *type)
{
	const struct options *options = &ctl->options;
	char line[1024], frame[32] = "", tags[512] = "";
	if (options->given & OPTION_FRAME) {
		snprintf(frame, sizeof(frame), ",frame:%" PRIu64, options->frame);
	}
	int length = snprintf(tags, sizeof(tags), "%s%s%s%s%s", options->app ? ",app:" : "",
		options->app ? options->app : "", options->unit ? ",unit:" : "",
		options->unit ? options->unit : "", frame);
	if ((size_t)length < sizeof(tags)) {
		length = snprintf(line, sizeof(line), "%s:%s|%s%s%s", name, value, type,
			tags[0] != '\0' ? "|#" : "", tags[0] != '\0' ? tags + 1 : "");
	}
	if ((size_t)length >= sizeof(tags)) {
		return ctl_fail(ctl, CTL_USAGE, "name, app and unit are too long");
	}
	int status = check_line(ctl, name, line);
	return status == CTL_FINE && fd >= 0 ? emit_send(ctl, fd, line, strlen(line), WAIT_MS)
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
	return ctl_fail(ctl, CTL_USAGE, "'%s' is no number with ms, s, us, g, c or nothing", text);
}

static int emit_value(struct ctl *ctl)
{
	char value[64];
	const char *type = "";
	int fd = -1;
	if (ctl->word_count != 2) {
		return ctl_fail(ctl, CTL_USAGE, "emit wants a name and a value");
	}
	int status = read_value(ctl, ctl->words[1], value, &type);
	status = status == CTL_FINE ? send_value(ctl, -1, ctl->words[0], value, type) : status;
	status = status == CTL_FINE ? emit_connect(ctl, &fd) : status;
	if (status == CTL_FINE) {
		status = send_value(ctl, fd, ctl->words[0], value, type);
		close(fd);
	}
	return status;
}

static double now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Runs it in the foreground; its exit status as a shell tells it, -errno when there is no process.
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
	const char *name = ctl->options.timed;
	char value[64];
	int fd;
	int status = send_value(ctl, -1, name, "0", "ms");
	if (status != CTL_FINE) {
		return status;
	}
	double begin = now_ms();
	int result = run_command(ctl->words);
	snprintf(value, sizeof(value), "%.6f", now_ms() - begin);
	if (result < 0) {
		return ctl_fail(ctl, CTL_OUTPUT, "can't run it: %s", strerror(-result));
	}
	if (result != NOT_FOUND && result != NOT_RUN && emit_connect(ctl, &fd) == CTL_FINE) {
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
	char bytes[DATAGRAM], datagram[DATAGRAM];
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
	struct statsd_line line;
	int status = CTL_FINE;
	input->line++;
	statsd_reader_init(&reader, text, length);
	enum statsd_result result = statsd_next(&reader, &line);
	if (result == STATSD_END) {
		return CTL_FINE; /* an empty line */
	}
	if (result != STATSD_LINE) {
		input->bad = true;
		ctl_fail(ctl, CTL_BAD_NEWS, "line %" PRIu64 ": %s", input->line, reader.reason);
		return CTL_FINE;
	}
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
	while (status == CTL_FINE && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
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
				ctl, CTL_NO_INPUT, "can't read the input: %s", strerror(errno));
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
	if (ctl->word_count != 1 || ctl->options.given != 0) {
		return ctl_fail(
			ctl, CTL_USAGE, "'emit -' reads whole lines, and takes nothing else");
	}
	struct input *input = calloc(1, sizeof(*input));
	if (input == NULL) {
		return ctl_fail(ctl, CTL_OUTPUT, "no memory");
	}
	int status = emit_connect(ctl, &input->fd);
	if (status == CTL_FINE) {
		status = emit_input(ctl, input);
		close(input->fd);
	}
	free(input);
	return status;
}

int verb_emit(struct ctl *ctl)
{
	if (ctl->options.given & OPTION_TIME) {
		return emit_time(ctl);
	}
	return strcmp(ctl->words[0], "-") == 0 ? emit_lines(ctl) : emit_value(ctl);
}

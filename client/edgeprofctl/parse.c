/* parse: what a tool of the vendor printed, read as the daemon reads it, without a daemon. It is
 * how a person shows us a format that we don't know: the words that were not understood are listed.
 */
#include "client/edgeprofctl/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/verbs/tegrastats_json.h"

struct input {
	int fd;
	bool cut; /* the rest of a line that was too long is still to come */
	size_t used;
	char bytes[TEGRASTATS_LINE];
};

static int show_line(struct ctl *ctl, const char *line, size_t length)
{
	struct tegrastats stats;
	if (tegrastats_parse(line, length, &stats) < 0 && stats.unknown == 0) {
		return CTL_FINE; /* an empty line */
	}
	cJSON *object = tegrastats_json(&stats);
	if (object == NULL) {
		return ctl_fail(ctl, CTL_OUTPUT, "no memory");
	}
	json_write(ctl->output.stream, object, ctl->options.json == JSON_PRETTY);
	cJSON_Delete(object);
	return CTL_FINE;
}

/* The complete lines that were read; what is left moves to the front. */
static int show_lines(struct ctl *ctl, struct input *input)
{
	char *at = input->bytes, *end = input->bytes + input->used, *newline;
	int status = CTL_FINE;
	while (status == CTL_FINE && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		if (!input->cut) {
			status = show_line(ctl, at, (size_t)(newline - at));
		}
		input->cut = false;
		at = newline + 1;
	}
	input->used = (size_t)(end - at);
	memmove(input->bytes, at, input->used);
	if (status == CTL_FINE && input->used == sizeof(input->bytes)) {
		if (!input->cut) {
			status = show_line(ctl, input->bytes, input->used);
		}
		input->cut = true;
		input->used = 0;
	}
	return status;
}

/* Lines are shown as they come: `tegrastats | edgeprofctl parse tegrastats` never ends. */
static int show_input(struct ctl *ctl, struct input *input, const char *name)
{
	int status = CTL_FINE;
	while (status == CTL_FINE) {
		ssize_t got = read(
			input->fd, input->bytes + input->used, sizeof(input->bytes) - input->used);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return ctl_fail(
				ctl, CTL_NO_INPUT, "can't read %s: %s", name, strerror(errno));
		}
		if (got == 0) {
			return input->used == 0 || input->cut
				       ? CTL_FINE
				       : show_line(ctl, input->bytes, input->used);
		}
		input->used += (size_t)got;
		status = show_lines(ctl, input);
		if (status == CTL_FINE && !ctl_flush(ctl, &status)) {
			return status;
		}
	}
	return status;
}

int verb_parse(struct ctl *ctl)
{
	const char *name = ctl->word_count > 1 ? ctl->words[1] : "-";
	if (strcmp(ctl->words[0], "tegrastats") != 0) {
		return ctl_fail(
			ctl, CTL_USAGE, "there is no format '%s', only tegrastats", ctl->words[0]);
	}
	struct input *input = calloc(1, sizeof(*input));
	if (input == NULL) {
		return ctl_fail(ctl, CTL_OUTPUT, "no memory");
	}
	bool is_stdin = strcmp(name, "-") == 0;
	input->fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	int status = input->fd < 0 ? ctl_fail(ctl, CTL_NO_INPUT, "can't open %s: %s", name,
					     strerror(errno))
				   : show_input(ctl, input, is_stdin ? "the input" : name);
	if (!is_stdin && input->fd >= 0) {
		close(input->fd);
	}
	free(input);
	return status;
}

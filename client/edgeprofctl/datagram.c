/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datagram.c: sends statsd lines. The socket lies next to the one for queries. It is never waited
 * for longer than asked: what is measured must not stand still because the profiler does. What is
 * sent is read back with the daemon's parser first, so that a mistake is reported here and not only
 * counted there.
 */
#include "client/edgeprofctl/datagram.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/edgeprofctl/link/address.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/statsd/statsd.h"

/* ".../io.edgeprof" becomes ".../statsd". False: no room for it. */
static bool statsd_path(char path[ADDRESS_SIZE])
{
	static const char name[] = "statsd";
	char *slash = strrchr(path, '/');
	char *at = slash ? slash + 1 : path;
	if ((size_t)(at - path) + sizeof(name) > ADDRESS_SIZE) {
		return false;
	}
	memcpy(at, name, sizeof(name));
	return true;
}

int datagram_open(struct ctl *ctl, FILE *errors, int *ret)
{
	struct address_list list;
	bool runs = false;
	int result = -ENOENT;
	int status = ctl_addresses(ctl, &list);
	if (status != CTL_FINE) {
		return status;
	}
	for (size_t i = 0; i < list.count; i++) {
		char query[ADDRESS_SIZE];
		memcpy(query, list.entries[i].path, sizeof(query));
		int fd = -ENAMETOOLONG;
		if (statsd_path(list.entries[i].path)) {
			fd = address_open(
				list.entries[i].path, SOCK_DGRAM | SOCK_NONBLOCK, DATAGRAM_WAIT_MS);
		}
		if (fd >= 0) {
			*ret = fd;
			return CTL_FINE;
		}
		list.entries[i].error = -fd;
		runs = runs || (fd == -ENOENT && access(query, F_OK) == 0);
		result = result == -EACCES ? result : fd;
	}
	if (errors) {
		address_explain(&list, result, errors);
	}
	if (errors && runs) {
		fputs("Or it runs without datagrams ([statsd] enabled = no); see 'edgeprofctl "
		      "self'.\n",
			errors);
	}
	return result == -EACCES ? CTL_NOT_PERMITTED : CTL_UNREACHABLE;
}

int datagram_send(int fd, const char *lines, size_t length, int wait_ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	for (int tries = 0; tries < 100; tries++) {
		if (send(fd, lines, length, MSG_NOSIGNAL) >= 0) {
			return 0;
		}
		if (errno == EINTR) {
			continue;
		}
		if (errno != EAGAIN) {
			return -errno;
		}
		if (poll(&poller, 1, wait_ms) == 0) {
			break;
		}
	}
	return -EAGAIN;
}

void datagram_add_line(const struct ctl *ctl, struct text *line, const char *name,
	const char *value, const char *type, const char *frame)
{
	const char *tags[][2] = {{"app", ctl->options.app}, {"unit", ctl->options.unit},
		{"category", ctl->options.category}, {"frame", frame}};
	const char *separator = "|#";
	text_add(line, "%s:%s|%s", name, value, type);
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (tags[i][1]) {
			text_add(line, "%s%s:%s", separator, tags[i][0], tags[i][1]);
			separator = ",";
		}
	}
}

static bool same(struct statsd_text text, const char *wanted)
{
	size_t length = !wanted ? 0 : strlen(wanted);
	return text.length == length && (length == 0 || memcmp(text.at, wanted, length) == 0);
}

const char *datagram_bad_duration(double ms)
{
	return ms < 0 ? "negative" : ms > when_mono_ms() ? "longer than the system is up" : NULL;
}

int datagram_check(struct ctl *ctl, const char *name, const struct text *text)
{
	struct statsd_reader reader;
	if (text->truncated) {
		return ctl_fail(ctl, CTL_USAGE, "name, app and unit are too long");
	}
	statsd_reader_init(&reader, text->data, text->length);
	const struct statsd_line *line = &reader.line;
	enum statsd_result result = statsd_next(&reader);
	if (result != STATSD_LINE) {
		return ctl_fail(ctl, CTL_USAGE, "cannot send '%s': %s", name,
			result == STATSD_END ? "no name" : reader.reason);
	}
	if (!same(line->name, name)) {
		return ctl_fail(ctl, CTL_USAGE,
			"invalid name '%s': ':', '|' and line ends are not allowed", name);
	}
	const char *bad = line->type == STATSD_TIME ? datagram_bad_duration(line->value) : NULL;
	if (bad) {
		return ctl_fail(ctl, CTL_USAGE, "a duration of %g ms is %s", line->value, bad);
	}
	const struct options *options = &ctl->options;
	const struct {
		const char *name, *given;
		struct statsd_text read;
	} tags[] = {{"app", options->app, line->app}, {"unit", options->unit, line->unit},
		{"category", options->category, line->category}};
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (!same(tags[i].read, tags[i].given)) {
			return ctl_fail(ctl, CTL_USAGE,
				"invalid value '%s' for --%s; ',', '|' and line ends are not "
				"allowed",
				tags[i].given, tags[i].name);
		}
	}
	return CTL_FINE;
}

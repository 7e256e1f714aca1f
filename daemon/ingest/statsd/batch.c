/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c: receives datagrams with one recvmmsg, finds out who sent each, and passes their lines to
 * the apps one by one, as far as the budget goes. */
#include "daemon/ingest/statsd/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/sysops.h"

enum {
	BYTES_SHIFT = 6, /* 64 bytes are as much work as a line */
	REFUSED_WORK = 8,
	MAKE_WORK = 256, /* a new app, a new name */
	NOBODY = 65534,	 /* the user of datagrams over UDP */
};

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static void close_fds(struct deferred_close *deferred_close, const struct cmsghdr *c)
{
	for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		deferred_close_fd(deferred_close, NULL, fd);
	}
}

/* The sender, and for UDP the number of datagrams that the kernel dropped before it. */
static struct statsd_sender read_control(
	struct statsd_batch *batch, uint32_t *lost_before, struct msghdr *msg)
{
	struct counters *counters = batch->core->counters;
	struct statsd_sender sender = {.uid = NOBODY};
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET) {
			continue;
		}
		if (c->cmsg_type == SCM_CREDENTIALS &&
			c->cmsg_len >= CMSG_LEN(sizeof(struct ucred))) {
			struct ucred cred;
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			sender = (struct statsd_sender){cred.uid, cred.pid, is_trusted(cred.uid)};
		} else if (c->cmsg_type == SO_RXQ_OVFL &&
			   c->cmsg_len >= CMSG_LEN(sizeof(uint32_t))) {
			uint32_t lost;
			memcpy(&lost, CMSG_DATA(c), sizeof(lost));
			counters->statsd_lost += lost - *lost_before;
			*lost_before = lost;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			close_fds(batch->deferred_close, c);
		}
	}
	return sender;
}

/* The last line of a truncated datagram may look complete and be wrong: it is skipped. */
static size_t complete_lines(const char *bytes, size_t length)
{
	while (length > 0 && bytes[length - 1] != '\n') {
		length--;
	}
	return length;
}

size_t statsd_batch_read(struct statsd_batch *batch, int fd, uint32_t *lost)
{
	struct mmsghdr msgs[STATSD_BATCH] = {0};
	struct iovec iov[STATSD_BATCH];
	/* all descriptors must fit: the kernel would close the others on this thread */
	_Alignas(struct cmsghdr) char control[STATSD_BATCH]
					     [CMSG_SPACE(sizeof(struct ucred)) +
						     CMSG_SPACE(DEFERRED_CLOSE_FDS * sizeof(int))];
	struct counters *counters = batch->core->counters;
	batch->at = batch->count = 0;
	if (deferred_close_is_full(batch->deferred_close)) {
		return 0;
	}
	for (size_t i = 0; i < STATSD_BATCH; i++) {
		iov[i] =
			(struct iovec){batch->bytes + i * STATSD_DATAGRAM_MAX, STATSD_DATAGRAM_MAX};
		msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i],
			.msg_iovlen = 1,
			.msg_control = control[i],
			.msg_controllen = sizeof(control[i])};
	}
	int got = recvmmsg(fd, msgs, STATSD_BATCH, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	batch->count = got > 0 ? (size_t)got : 0;
	if (got <= 0) {
		return 0;
	}
	batch->now_ns = sysops()->now_ns();
	counters->statsd_datagrams += batch->count;
	for (size_t i = 0; i < batch->count; i++) {
		const char *bytes = iov[i].iov_base;
		size_t length = msgs[i].msg_len;
		if (msgs[i].msg_hdr.msg_flags & MSG_TRUNC) {
			counters->statsd_truncated++;
			length = complete_lines(bytes, length);
		}
		batch->item[i] = (struct statsd_item){
			bytes, length, read_control(batch, lost, &msgs[i].msg_hdr)};
	}
	statsd_reader_init(&batch->reader, batch->item[0].bytes, batch->item[0].length);
	return batch->count;
}

static void count_bad(struct counters *counters, const char *reason)
{
	counters->statsd_bad_lines++;
	snprintf(counters->statsd_bad_reason, sizeof(counters->statsd_bad_reason), "%s", reason);
}

/* Processes one line; false: the datagram has no more. *work: what it cost, even without a line. */
static bool process_line(struct statsd_batch *batch, size_t *work)
{
	struct counters *counters = batch->core->counters;
	struct statsd_reader *reader = &batch->reader;
	const char *begin = reader->at;
	const uint64_t made = batch->apps->made;
	size_t values;
	enum statsd_result result = statsd_next(reader);
	*work = 1 + ((size_t)(reader->at - begin) >> BYTES_SHIFT);
	counters->statsd_lines += result != STATSD_END;
	switch (result) {
	case STATSD_END:
		return false;
	case STATSD_UNSUPPORTED:
		counters->statsd_unsupported++;
		break;
	case STATSD_BAD:
		count_bad(counters, reader->reason);
		break;
	case STATSD_LINE:
		values = statsd_apps_append(
			batch->apps, &batch->item[batch->at].sender, &reader->line, batch->now_ns);
		*work += values > 0 ? values : REFUSED_WORK;
		*work += (size_t)(batch->apps->made - made) * MAKE_WORK;
		break;
	}
	return true;
}

bool statsd_batch_process(struct statsd_batch *batch, size_t *budget)
{
	while (batch->at < batch->count) {
		size_t work;
		if (!process_line(batch, &work) && ++batch->at < batch->count) {
			const struct statsd_item *item = &batch->item[batch->at];
			statsd_reader_resume(&batch->reader, item->bytes, item->length);
			statsd_apps_lay(batch->apps);
		}
		*budget -= work < *budget ? work : *budget;
		if (*budget == 0) {
			break;
		}
	}
	statsd_apps_flush(batch->apps);
	return batch->at == batch->count;
}

int statsd_batch_init(struct statsd_batch *batch, struct core *core, struct statsd_apps *apps)
{
	*batch = (struct statsd_batch){.core = core, .apps = apps};
	/* only the pages that datagrams fill become memory */
	batch->bytes = mem_calloc(STATSD_BATCH, STATSD_DATAGRAM_MAX);
	return batch->bytes ? deferred_close_create(&batch->deferred_close) : -ENOMEM;
}

void statsd_batch_finish(struct statsd_batch *batch)
{
	free(batch->bytes);
	deferred_close_destroy(batch->deferred_close);
}

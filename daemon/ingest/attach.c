/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c: turns a valid hello into an attachment, within the limits of its user: maps the memfd,
 * finds where the previous reader stopped, and watches the process. The library may send the same
 * memfd again after it lost its connection, and a process may have left an older one behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/core/runs/save.h"
#include "daemon/core/status/counters.h"
#include "daemon/ingest/ingest_private.h"
#include "daemon/util/sysops.h"

static bool hung_up(const struct attachment *attachment)
{
	char byte;
	return !attachment->connection ||
	       recv(attachment->connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The attachment of the same memfd: the library lost its connection, nothing else changed. */
static struct attachment *find_same(
	const struct ingest *ingest, const struct peer *peer, const struct stat *st)
{
	struct attachment *a;
	LIST_FOREACH(a, &ingest->attachments, link)
	{
		if (a->peer.pid == peer->pid && a->peer.uid == peer->uid && a->dev == st->st_dev &&
			a->ino == st->st_ino) {
			break;
		}
	}
	return a;
}

/* Ends a mapping that this process left behind because it called exec or shut the library down. Two
 * copies of the library in one process keep both of theirs: their connections are open. */
static void end_left_behind(struct ingest *ingest, const struct peer *peer, uint64_t start_ticks)
{
	struct attachment *next;
	for (struct attachment *a = LIST_FIRST(&ingest->attachments); a; a = next) {
		next = LIST_NEXT(a, link);
		if (peer->pid > 0 && a->peer.pid == peer->pid && !a->ending &&
			a->process->start_ticks == start_ticks && hung_up(a)) {
			attachment_begin_end(a, PROCESS_ENDED);
		}
	}
}

/* A trusted user, the owner, may fill the 16 MiB with the 64 mappings of 256 KiB of 64 apps; what
 * the limit keeps free for others, of this and of connections and apps, is on top of it. Any other
 * user may hold half of what is free, and so leaves the same to the next one. */
static bool mapping_fits(const struct ingest *ingest, const struct account *account, uint32_t size)
{
	return accounts_fits(ingest->options.max_mapping_bytes, account->mapping_bytes,
		ingest->mapped_bytes, size, ingest_trusts(ingest, account->uid));
}

/* A further process of an app that runs does not count against the limit. */
static bool app_fits(const struct ingest *ingest, uid_t uid, const char *name)
{
	struct apps *apps = ingest->core->apps;
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(name, strlen(name), clean);
	const struct app *app = apps_find(apps, clean);
	if (app && app->processes > 0) {
		return true;
	}
	return accounts_fits(APPS_OWN_MAX, apps_running(apps, &uid), apps_running(apps, NULL), 1,
		ingest_trusts(ingest, uid));
}

static const char *refusal_reason(int error)
{
	switch (error) {
	case -EPERM:
		return "the name is reserved for another user ([app NAME] user)";
	case -EACCES:
		return "another user's app has this name";
	case -ENOSPC:
		return "too many apps or processes of this app";
	case -EBADMSG:
		return "the mapping has no valid header";
	case -EPROTONOSUPPORT:
		return "the mapping has another version";
	default:
		return errno_reason(error);
	}
}

/* Maps the memfd and finds where the previous reader stopped. */
static int map_ring(struct attachment *attachment, int memfd)
{
	void *map = mmap(NULL, attachment->size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (map == MAP_FAILED) {
		return -errno;
	}
	int r = ring_create(map, attachment->size, &attachment->ring);
	if (r < 0) {
		munmap(map, attachment->size);
		return r;
	}
	attachment->map = map;
	return 0;
}

static void watch_death(struct attachment *attachment, int connection_fd)
{
	struct ingest *ingest = attachment->ingest;
	int pidfd = peer_open(connection_fd, attachment->peer.pid);
	if (pidfd < 0) {
		return;
	}
	if (uv_poll_init(ingest->loop, &attachment->death, pidfd) < 0) {
		close(pidfd);
		return;
	}
	ingest->handles++;
	attachment->death.data = attachment;
	attachment->pidfd = pidfd;
	uv_poll_start(&attachment->death, UV_READABLE, attachment_on_death);
}

static void account_for(struct attachment *attachment, struct connection *connection)
{
	struct ingest *ingest = attachment->ingest;
	attachment->connection = connection;
	connection->attachment = attachment;
	LIST_INSERT_HEAD(&ingest->attachments, attachment, link);
	attachment->account->mapping_bytes += attachment->size;
	ingest->mapped_bytes += attachment->size;
	limit_use(&ingest->core->counters->limits[LIMIT_MAPPINGS], ingest->mapped_bytes);
	ingest->core->counters->attaches++;
	rejected_attaches_forget(&ingest->core->counters->rejected_attaches,
		attachment->process->app->name, attachment->peer.uid);
	if (attachment->peer.pid > 0) {
		struct watch watch = {.kind = WATCH_APP,
			.pid = attachment->peer.pid,
			.start_ticks = attachment->process->start_ticks};
		snprintf(watch.name, sizeof(watch.name), "%s", attachment->process->app->name);
		processes_watch(ingest->core->processes, &watch); /* counts what it refuses */
	}
}

static int attach(struct connection *connection, const struct proto_hello *hello, int memfd,
	const struct stat *st, uint64_t now_ns, const char **reason)
{
	struct ingest *ingest = connection->ingest;
	const struct peer *peer = &connection->peer;
	uint64_t start_ticks = peer->pid > 0 ? peer_start_ticks(peer->pid) : 0;
	char name[PROTO_NAME_SIZE];
	proto_name_clean(hello->app, strlen(hello->app), name);
	end_left_behind(ingest, peer, start_ticks);
	attachments_finish_exited(ingest, name, peer->uid);
	if (!mapping_fits(ingest, connection->account, hello->mapping_size)) {
		*reason = "the limit of mapped memory for this user is reached";
		return -ENOSPC;
	}
	if (!app_fits(ingest, peer->uid, hello->app)) {
		*reason = "too many apps of this user";
		return -ENOSPC;
	}
	struct attachment *attachment = mem_zalloc(sizeof(*attachment));
	if (!attachment) {
		*reason = refusal_reason(-ENOMEM);
		return -ENOMEM;
	}
	*attachment = (struct attachment){.pidfd = -1,
		.ingest = ingest,
		.peer = *peer,
		.account = connection->account,
		.size = hello->mapping_size,
		.dev = st->st_dev,
		.ino = st->st_ino};
	int r = map_ring(attachment, memfd);
	if (r == 0) {
		r = apps_attach(ingest->core->apps, hello->app, peer->uid, peer->pid, start_ticks,
			hello->mapping_size, now_ns, &attachment->process);
	}
	if (r < 0) { /* mmap: the memfd may not be written */
		*reason = r == -EPERM && !attachment->map ? errno_reason(r) : refusal_reason(r);
		goto error;
	}
	/* events are from its hello on, which may have waited for us */
	attachment->process->attached_ns = hello->mono_ns < now_ns ? hello->mono_ns : now_ns;
	watch_death(attachment, connection->fd);
	nspid_init(&attachment->nspid, peer->pid);
	attachment->process->ns_pid = attachment->nspid.inside;
	ring_counts(attachment->ring, &attachment->counts);
	attachment->process->accounting.invalid = attachment->counts.skipped;
	apps_note_received(attachment->process, attachment->counts.received);
	account_for(attachment, connection);
	attachment_advise(attachment, now_ns);
	ingest_drain_timer(ingest);
	ingest_drain_app(ingest, attachment->process->app);
	return 0;
error:
	ring_destroy(attachment->ring);
	if (attachment->map) {
		munmap(attachment->map, attachment->size);
	}
	free(attachment);
	return r;
}

/* The library is back with the same mapping, on another connection. */
static void reconnect(struct attachment *attachment, struct connection *connection)
{
	struct connection *old = attachment->connection;
	if (attachment->ending && attachment->pidfd >= 0) {
		attachment->ending = false;
		uv_poll_start(&attachment->death, UV_READABLE, attachment_on_death);
	}
	attachment->connection = connection;
	attachment->ended_ns = 0;
	connection->attachment = attachment;
	if (old) {
		old->attachment = NULL;
		ingest_disconnect(old);
	}
}

int attachment_create(struct connection *connection, const struct proto_hello *hello, int memfd,
	const char **reason)
{
	uint64_t now_ns = sysops()->now_ns();
	struct stat st;
	int r = hello_check(hello, now_ns, reason);
	if (r == -ESTALE && peer_has_our_clock(connection->peer.pid)) {
		r = 0; /* nothing runs in time here, nor do hellos come in time */
	}
	if (r == 0) {
		r = hello_check_memfd(memfd, hello->mapping_size, &st, reason);
	}
	if (r == 0) {
		struct attachment *same = find_same(connection->ingest, &connection->peer, &st);
		if (same) {
			reconnect(same, connection);
		} else {
			r = attach(connection, hello, memfd, &st, now_ns, reason);
		}
	}
	close(memfd); /* a memfd's close never blocks */
	return r;
}

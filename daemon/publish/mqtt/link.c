/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c: runs one connection (session.c) after another on the broker's thread (thread.c), with
 * random pauses in between, until it is stopped. State shared by both threads is guarded by one
 * mutex that is held for a few assignments only. The struct is reference counted: the last of the
 * two threads frees it, so that one that hangs in name resolution can be abandoned.
 */
#include "daemon/publish/mqtt/link_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/util/sysops.h"

#define NS_PER_S UINT64_C(1000000000)

enum {
	STABLE_S = 20,	/* a connection that held this long starts the pauses again */
	SHORT_MAX = 10, /* connections in a row that did not, until each pause is longer */
};

static void link_unref(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	unsigned left = --link->references;
	pthread_mutex_unlock(&link->lock);
	if (left > 0) {
		return;
	}
	outbox_finish(&link->outbox);
	pthread_mutex_destroy(&link->lock);
	if (link->wake_fd >= 0) {
		close(link->wake_fd);
	}
	free(link);
}

uint64_t mqtt_link_stop_ns(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	uint64_t stop_ns = link->stop_ns;
	pthread_mutex_unlock(&link->lock);
	return stop_ns;
}

struct mqtt_link_status *mqtt_link_lock(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	return &link->status;
}

/* The async handle lives as long as link->async is set. */
void mqtt_link_unlock(struct mqtt_link *link)
{
	if (link->async) {
		uv_async_send(link->async);
	}
	pthread_mutex_unlock(&link->lock);
}

static void set_away(struct mqtt_link *link, const char *reason, bool pushed)
{
	struct mqtt_link_status *status = mqtt_link_lock(link);
	status->flaps = link->short_lived;
	status->broker = status->failed = round_broker(&link->round);
	status->failures++;
	snprintf(status->failed_reason, sizeof(status->failed_reason), "%s", reason);
	if (status->state == LINK_CONNECTED) {
		status->losses++;
		status->lost = status->broker;
	}
	status->taken = link->collision.taken;
	status->pushed = pushed;
	status->state = LINK_AWAY;
	if (!status->refused) { /* else that is why it ended */
		snprintf(status->reason, sizeof(status->reason), "%s", reason);
	}
	status->refused = false;
	mqtt_link_unlock(link);
}

static uint64_t random_number(void)
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
		random = sysops()->now_ns() *
			 UINT64_C(0x9e3779b97f4a7c15); /* before the pool is up */
	}
	return random;
}

uint64_t mqtt_link_backoff_ns(uint64_t min_ns, uint64_t max_ns, unsigned attempt)
{
	uint64_t limit_ns = max_ns;
	if (attempt < 32 && min_ns << attempt < limit_ns) {
		limit_ns = min_ns << attempt;
	}
	return random_number() % (limit_ns + 1);
}

static void link_pause(struct mqtt_link *link, uint64_t pause_ns)
{
	uint64_t end_ns = sysops()->now_ns() + pause_ns;
	for (uint64_t now_ns;
		mqtt_link_stop_ns(link) == 0 && (now_ns = sysops()->now_ns()) < end_ns;) {
		struct pollfd fd = {.fd = link->wake_fd, .events = POLLIN};
		uint64_t count;
		if (poll(&fd, 1, (int)((end_ns - now_ns) / 1000000) + 1) > 0 &&
			read(fd.fd, &count, sizeof(count)) < 0) {
			return;
		}
	}
}

unsigned round_broker(const struct round *round)
{
	if (round->tried == 0) {
		return round->first;
	}
	return round->tried <= round->first ? round->tried - 1 : round->tried;
}

bool round_ended(struct round *round, unsigned brokers, bool was_connected)
{
	if (was_connected) {
		*round = (struct round){.first = round_broker(round)};
		return true;
	}
	round->tried = (round->tried + 1) % brokers;
	return round->tried == 0;
}

static void explain_collision(const struct mqtt_link *link, struct session_end *end)
{
	if (end->how == SESSION_TAKEN) {
		snprintf(end->reason, sizeof(end->reason),
			"another client uses the id \"%.64s\": device_id must be unique",
			link->client_id);
	} else {
		snprintf(end->reason, sizeof(end->reason),
			"it seems that another client uses the id \"%.64s\": %u connections closed "
			"at once",
			link->client_id, link->collision.quick);
	}
}

/* A broker that was there a moment ago may return within another: the first pause is short each
 * time, unless connections have ended at once for a long time. */
static uint64_t next_pause_ns(struct mqtt_link *link, const struct session_end *end, bool pushed)
{
	bool lost = end->up_ns > 0;
	bool over = round_ended(&link->round, link->options.brokers, lost);
	if (lost) {
		link->attempt = link->short_lived > SHORT_MAX ? link->short_lived - SHORT_MAX : 0;
	}
	if (pushed) {
		return collision_pause_ns(end->how, link->options.backoff_max_ns, random_number());
	}
	if (lost && link->attempt == 0 && collision_tries_at_once(&link->collision)) {
		return 0;
	}
	if (!over) {
		return 0;
	}
	uint64_t pause_ns = mqtt_link_backoff_ns(
		link->options.backoff_min_ns, link->options.backoff_max_ns, link->attempt);
	link->attempt += link->attempt < 32;
	return pause_ns;
}

static void link_main(void *arg)
{
	struct mqtt_link *link = arg;
	mqtt_link_lock(link)->reason[0] = '\0'; /* that it waited for the thread */
	mqtt_link_unlock(link);
	while (mqtt_link_stop_ns(link) == 0) {
		struct session_end end;
		mqtt_session(link, &end);
		bool pushed = collision_ended(
			&link->collision, end.how, end.up_ns, link->options.backoff_max_ns);
		if (pushed) {
			explain_collision(link, &end);
		}
		if (end.up_ns > 0) {
			bool held = end.up_ns >= STABLE_S * NS_PER_S;
			link->short_lived = held ? 0 : link->short_lived + 1;
		}
		char topic[80];
		if (outbox_return(&link->outbox, end.how == SESSION_LOST, topic, sizeof(topic))) {
			snprintf(end.reason, sizeof(end.reason),
				"the broker closes at %s: given up (its access list?)", topic);
			link->short_lived = 0; /* that explains the ones before */
		}
		set_away(link, end.reason, pushed);
		link_pause(link, next_pause_ns(link, &end, pushed));
	}
	mqtt_link_lock(link)->finished = true;
	mqtt_link_unlock(link);
	link_unref(link);
}

int mqtt_link_start(
	const struct mqtt_link_options *options, uv_async_t *async, struct mqtt_link **ret)
{
	struct mqtt_link *link = mem_zalloc(sizeof(*link));
	if (!link) {
		return -ENOMEM;
	}
	link->options = *options->mqtt;
	snprintf(link->client_id, sizeof(link->client_id), "%s", options->client_id);
	snprintf(link->status_topic, sizeof(link->status_topic), "%s", options->status_topic);
	snprintf(link->birth_topic, sizeof(link->birth_topic), "%s",
		options->birth_topic ? options->birth_topic : "");
	if (link->options.backoff_min_ns == 0) {
		link->options.backoff_min_ns = NS_PER_S;
	}
	if (link->options.backoff_max_ns == 0) {
		link->options.backoff_max_ns = 60 * NS_PER_S;
	}
	link->thread = options->thread;
	link->async = async;
	pthread_mutex_init(&link->lock, NULL);
	outbox_init(&link->outbox, link->options.max_messages, link->options.max_bytes);
	outbox_restore_missed(&link->outbox, options->missed);
	outbox_restore(&link->outbox, options->kept);
	link->references = 1;
	int r = 0;
	link->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (link->wake_fd < 0) {
		r = -errno;
		goto error;
	}
	link->references = 2;
	if (!mqtt_thread_run(link->thread, link_main, link)) {
		struct mqtt_link_status *status = mqtt_link_lock(link);
		snprintf(status->reason, sizeof(status->reason),
			"waiting for the previous attempt to connect to end");
		mqtt_link_unlock(link);
	}
	*ret = link;
	return 0;
error:
	link_unref(link);
	return r;
}

struct outbox *mqtt_link_outbox(struct mqtt_link *link)
{
	return &link->outbox;
}

struct proto_broker mqtt_link_broker(const struct mqtt_link *link, unsigned index)
{
	return mqtt_broker(&link->options, index);
}

struct mqtt_link_status mqtt_link_status(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	struct mqtt_link_status status = link->status;
	pthread_mutex_unlock(&link->lock);
	return status;
}

void mqtt_link_wake(struct mqtt_link *link)
{
	/* Fails only when the counter is full: then the thread is awake already. */
	eventfd_write(link->wake_fd, 1);
}

void mqtt_link_stop(struct mqtt_link *link)
{
	bool waited = mqtt_thread_take_back(link->thread, link);
	struct mqtt_link_status *status = mqtt_link_lock(link);
	if (link->stop_ns == 0) {
		link->stop_ns = sysops()->now_ns();
	}
	status->finished = status->finished || waited;
	mqtt_link_unlock(link);
	mqtt_link_wake(link);
	if (waited) {
		link_unref(link);
	}
}

void mqtt_link_destroy(struct mqtt_link *link)
{
	link_unref(link);
}

void mqtt_link_abandon(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->async = NULL;
	pthread_mutex_unlock(&link->lock);
	outbox_detach(&link->outbox); /* the memory is unmapped before the thread ends */
	mqtt_thread_abandon(link->thread);
	link_unref(link);
}

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
	STABLE_S = 10,	/* a connection that held this long starts the pauses again */
	SHORT_MAX = 10, /* connections in a row that did not, until the pauses grow */
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

/* Locked. The async handle lives as long as link->async is set. */
static void wake_main(struct mqtt_link *link)
{
	if (link->async) {
		uv_async_send(link->async);
	}
}

void mqtt_link_notify(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
}

void mqtt_link_set_connected(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->status.state = LINK_CONNECTED;
	link->status.connects++;
	if (!link->status.pushed) { /* else the two clients only alternate */
		link->status.reason[0] = '\0';
	}
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
}

void mqtt_link_set_refused(struct mqtt_link *link, const char *why)
{
	pthread_mutex_lock(&link->lock);
	if (!link->status.refused) {
		link->status.refused = true;
		snprintf(link->status.reason, sizeof(link->status.reason),
			"the broker refuses messages: %.80s (its access list?)", why);
	}
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
}

void mqtt_link_set_birth(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	if (!link->birth) { /* a flood of them wakes the main loop once per iteration at most */
		link->birth = true;
		wake_main(link);
	}
	pthread_mutex_unlock(&link->lock);
}

bool mqtt_link_take_birth(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	bool birth = link->birth;
	link->birth = false;
	pthread_mutex_unlock(&link->lock);
	return birth;
}

/* Locked. What a broker refuses stays true for the connection. */
static void forget_push(struct mqtt_link *link)
{
	if (link->status.pushed) {
		link->status.pushed = false;
		link->status.reason[0] = '\0';
	}
}

void mqtt_link_set_steady(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	forget_push(link);
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
}

void mqtt_link_set_calm(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	forget_push(link);
	link->status.taken = false;
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
}

static void link_set_begun(struct mqtt_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->status.reason[0] = '\0'; /* that it waited for the thread */
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
}

static void link_set_away(struct mqtt_link *link, const char *reason, bool pushed)
{
	pthread_mutex_lock(&link->lock);
	link->status.losses += link->status.state == LINK_CONNECTED;
	link->status.taken = link->collision.taken;
	link->status.pushed = pushed;
	link->status.state = LINK_AWAY;
	if (!link->status.refused) { /* else that is why it ended */
		snprintf(link->status.reason, sizeof(link->status.reason), "%s", reason);
	}
	link->status.refused = false;
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
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
	bool held = end->up_ns >= STABLE_S * NS_PER_S;
	bool lost = end->how == SESSION_LOST || end->how == SESSION_RESET;
	if (held || lost) {
		link->short_lived = held ? 0 : link->short_lived + 1;
		link->attempt = link->short_lived > SHORT_MAX ? link->short_lived - SHORT_MAX : 0;
	}
	if (pushed) {
		return collision_pause_ns(end->how, link->options.backoff_max_ns, random_number());
	}
	if (lost && collision_tries_at_once(&link->collision)) {
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
	link_set_begun(link);
	while (mqtt_link_stop_ns(link) == 0) {
		struct session_end end;
		mqtt_session(link, &end);
		bool pushed = collision_ended(
			&link->collision, end.how, end.up_ns, link->options.backoff_max_ns);
		if (pushed) {
			explain_collision(link, &end);
		}
		outbox_return(&link->outbox);
		link_set_away(link, end.reason, pushed);
		link_pause(link, next_pause_ns(link, &end, pushed));
	}
	pthread_mutex_lock(&link->lock);
	link->status.finished = true;
	wake_main(link);
	pthread_mutex_unlock(&link->lock);
	link_unref(link);
}

int mqtt_link_start(
	const struct mqtt_link_options *options, uv_async_t *async, struct mqtt_link **ret)
{
	struct mqtt_link *link = mem_zalloc(sizeof(*link));
	if (!link) {
		return -ENOMEM;
	}
	const struct proto_broker broker = mqtt_broker(options->mqtt);
	link->options = *options->mqtt;
	link->port = proto_broker_port(&broker);
	link->encrypted = proto_broker_encrypted(&broker);
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
		pthread_mutex_lock(&link->lock);
		snprintf(link->status.reason, sizeof(link->status.reason),
			"waiting for the previous attempt to connect to end");
		pthread_mutex_unlock(&link->lock);
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
	pthread_mutex_lock(&link->lock);
	if (link->stop_ns == 0) {
		link->stop_ns = sysops()->now_ns();
	}
	if (waited) {
		link->status.finished = true;
		wake_main(link);
	}
	pthread_mutex_unlock(&link->lock);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares what mqtt.c (life, status, intervals), alerts.c, diagnosis.c
 * and discovery.c share. */
#pragma once

#include "daemon/publish/mqtt/link.h"
#include "daemon/publish/mqtt/mqtt.h"
#include "daemon/publish/outbox/retained.h"
#include "daemon/publish/payload/discovery.h"
#include "daemon/publish/payload/stage_pass.h"
#include "daemon/publish/payload/topics.h"

struct alert_transition;

/* State of the announcement to Home Assistant (discovery.c). */
struct mqtt_discovery {
	bool on;
	bool outdated; /* there are sensors that are not announced yet */
	char prefix[64];
	unsigned expire_s;
	uint64_t published_ns, pause_ns, birth_ns;
	size_t omitted;
	uv_timer_t birth; /* runs from a birth until it is answered */
	struct name_set known;
};

struct mqtt {
	struct core *core;
	struct topics topics;
	struct mqtt_link *link;
	struct outbox *outbox;
	struct mqtt_link_status seen;
	struct retained retained;
	bool kept;	     /* there is memory that survives */
	uint64_t inherit_ns; /* until then topics of the last process are not cleared; 0: no more */
	uint64_t clock;	     /* mqtt_clock when retained messages were made */
	struct stage_pass pass;
	struct mqtt_discovery discovery;
	uv_async_t async;
	uv_timer_t interval, deadline;
	uv_idle_t idle; /* runs while a pass over the stages is under way */
	unsigned handles;
	bool closing;
	void (*done)(void *ctx);
	void *ctx;
};

/* Puts what payload.c made and frees it; NULL (no memory) counts as dropped. */
int mqtt_put_payload(struct mqtt *mqtt, struct outbox_entry entry, char *payload);

/* Once little waits: what was given up since the last time. */
void mqtt_publish_missed(struct mqtt *mqtt);

/* Empty and retained: the broker forgets the topic. 1: safe even if the process dies now. */
int mqtt_clear_retained(struct mqtt *mqtt, const char *topic);

/* Alert observer. */
void mqtt_on_transition(void *ctx, const struct alert_transition *transition);

/* Publishes a retained state; the broker must forget it one day. */
void mqtt_put_retained(struct mqtt *mqtt, const char *topic, char *payload, size_t payload_length);

/* diagnosis.c: observes diagnoses, or not any more; publishes all of them within
 * mqtt_publish_retained, or (they do not hold any more) has the broker forget all. */
void mqtt_diagnosis_observe(struct mqtt *mqtt, bool observe);
void mqtt_diagnosis_all(struct mqtt *mqtt, bool hold);
bool mqtt_diagnosis_is(const struct mqtt *mqtt, const char *topic);

/* At each connection: what a broker without memory must know, and what it must forget. */
void mqtt_publish_retained(struct mqtt *mqtt);
/* Changes when wall times that were published do: they are published again. */
uint64_t mqtt_clock(const struct wallclock *wall);

/* Everything of discovery but its timer. */
void mqtt_discovery_init(struct mqtt *mqtt, const struct mqtt_options *options);
void mqtt_discovery_birth_topic(const struct mqtt *mqtt, char ret[TOPIC_SIZE]); /* "" = none */
/* Within mqtt_publish_retained. */
void mqtt_discovery_connected(struct mqtt *mqtt);
void mqtt_discovery_interval(struct mqtt *mqtt, uint64_t now_ns);
void mqtt_discovery_birth(struct mqtt *mqtt);

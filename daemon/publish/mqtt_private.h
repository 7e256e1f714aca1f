/* Shared by mqtt.c (life, status, intervals) and mqtt_alerts.c. */
#pragma once

#include "daemon/publish/mqtt.h"
#include "daemon/publish/mqtt_link.h"
#include "daemon/publish/retained.h"
#include "daemon/publish/stage_pass.h"
#include "daemon/publish/topics.h"

struct mqtt {
	struct core *core;
	struct topics topics;
	struct mqtt_link *link;
	struct outbox *outbox;
	struct mqtt_link_status seen;
	struct retained retained;
	bool kept;	     /* there is memory that survives */
	uint64_t inherit_ns; /* until then topics of the last process are not cleared; 0: no more */
	struct stage_pass pass;
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

/* Alert observer. */
void mqtt_on_transition(void *ctx, const struct alert_transition *transition);

/* At each connection: what a broker without memory must know, and what it must forget. */
void mqtt_publish_retained(struct mqtt *mqtt);

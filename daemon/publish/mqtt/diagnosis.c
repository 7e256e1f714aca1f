/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis.c: publishes the diagnosis of every app that runs over MQTT, retained: when it changes,
 * and at each connection. The broker drops it when the app has ended, when the daemon stops, and,
 * after a process that was killed, at the next one's first connection. */
#include <string.h>

#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/publish/mqtt/private.h"
#include "daemon/publish/payload/payload.h"
#include "proto/text.h"

static void on_change(void *ctx, const char *app, const struct diagnosis *diagnosis)
{
	struct mqtt *mqtt = ctx;
	char topic[TOPIC_SIZE];
	size_t length = 0;
	topic_diagnosis(&mqtt->topics, app, topic);
	if (diagnosis) {
		char *payload = payload_diagnosis(mqtt->core, app, diagnosis, &length);
		mqtt_put_retained(mqtt, topic, payload, length);
	} else {
		mqtt_clear_retained(mqtt, topic);
	}
}

void mqtt_diagnosis_observe(struct mqtt *mqtt, bool observe)
{
	if (mqtt->core->diagnoses) {
		diagnoses_observe(mqtt->core->diagnoses, observe ? on_change : NULL, mqtt);
	}
}

void mqtt_diagnosis_all(struct mqtt *mqtt, bool hold)
{
	const char *app;
	const struct diagnosis *diagnosis;
	struct diagnoses *all = mqtt->core->diagnoses;
	for (size_t i = 0; all && (diagnosis = diagnoses_published(all, i, &app)); i++) {
		on_change(mqtt, app, hold ? diagnosis : NULL);
	}
}

bool mqtt_diagnosis_is(const struct mqtt *mqtt, const char *topic)
{
	size_t length = strlen(mqtt->topics.base);
	return strncmp(topic, mqtt->topics.base, length) == 0 &&
	       text_starts_with(topic + length, "/diagnosis/");
}

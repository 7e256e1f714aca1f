/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis.c: publishes the diagnosis of every app that runs over MQTT, retained: when it changes,
 * and at each connection. The broker drops it when the app has ended. */
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/publish/mqtt/private.h"
#include "daemon/publish/payload/payload.h"

static void publish(struct mqtt *mqtt, const char *app, const struct diagnosis *diagnosis)
{
	char topic[TOPIC_SIZE];
	size_t length = 0;
	topic_diagnosis(&mqtt->topics, app, topic);
	char *payload = payload_diagnosis(mqtt->core, app, diagnosis, &length);
	mqtt_put_retained(mqtt, topic, payload, length);
}

static void on_change(void *ctx, const char *app, const struct diagnosis *diagnosis)
{
	struct mqtt *mqtt = ctx;
	char topic[TOPIC_SIZE];
	if (diagnosis) {
		publish(mqtt, app, diagnosis);
	} else {
		topic_diagnosis(&mqtt->topics, app, topic);
		mqtt_clear_retained(mqtt, topic);
	}
}

void mqtt_diagnosis_observe(struct mqtt *mqtt, bool observe)
{
	if (mqtt->core->diagnoses) {
		diagnoses_observe(mqtt->core->diagnoses, observe ? on_change : NULL, mqtt);
	}
}

void mqtt_diagnosis_connected(struct mqtt *mqtt)
{
	const char *app;
	const struct diagnosis *diagnosis;
	struct diagnoses *all = mqtt->core->diagnoses;
	for (size_t i = 0; all && (diagnosis = diagnoses_published(all, i, &app)); i++) {
		publish(mqtt, app, diagnosis);
	}
}

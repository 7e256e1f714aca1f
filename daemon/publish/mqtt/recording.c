/* Recordings over MQTT: what there is is announced; whoever wants it asks the device. */
#include "daemon/publish/mqtt/private.h"
#include "daemon/publish/payload/payload.h"

void mqtt_recording(struct mqtt *mqtt, const struct recording *recording)
{
	char topic[TOPIC_SIZE];
	topic_plain(&mqtt->topics, "event/recording", topic);
	struct outbox_entry entry = {.class = OUTBOX_ALERT, .qos = 1, .keep = true, .topic = topic};
	char *payload = payload_recording(mqtt->core, recording, &entry.payload_length);
	mqtt_put_payload(mqtt, entry, payload);
}

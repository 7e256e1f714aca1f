/* TLS to the broker, and why it failed, in words for GetStatus. */
#pragma once

#include <stddef.h>

struct mosquitto;
struct mqtt_link;

#define MQTT_TLS_CLOSED                                                             \
	"TLS: the broker closed the connection (a port without TLS, or it wants a " \
	"client certificate?)"

/* Before the connection: authorities, our certificate, and the host's name that the broker's must
 * hold. A code of libmosquitto; MOSQ_ERR_INVAL: a file can't be read,
 * MOSQ_ERR_NOT_SUPPORTED: libmosquitto was built without TLS. */
int mqtt_tls_set(struct mosquitto *mosq, const struct mqtt_link *link);

/* What such a code other than 0 means; nothing was sent then. */
const char *mqtt_tls_fault(int code);

/* In a log callback of libmosquitto: ssl is what mosquitto_ssl_get gave (may be NULL), line the
 * error line, host the name that was connected to. ret stays "" when the line is not about TLS. */
void mqtt_tls_reason(void *ssl, const char *line, const char *host, char *ret, size_t size);

/* What we prove to the broker and demand of it, and why that failed, in words for GetStatus. */
#pragma once

#include <stddef.h>

struct mosquitto;
struct mqtt_link;

#define MQTT_TLS_CLOSED                                                             \
	"TLS: the broker closed the connection (a port without TLS, or it wants a " \
	"client certificate?)"

/* Before the connection: user name and password, as they are configured now. A code of
 * libmosquitto; reason is set when it is not 0. */
int mqtt_authenticate(
	struct mosquitto *mosq, const struct mqtt_link *link, char *reason, size_t size);

/* Before the connection, when it is encrypted: authorities, our certificate, and the host's name
 * that the broker's must hold. As above; nothing was sent then. */
int mqtt_encrypt(struct mosquitto *mosq, const struct mqtt_link *link, char *reason, size_t size);

/* In a log callback of libmosquitto: ssl is what mosquitto_ssl_get gave (may be NULL), line the
 * error line, host the name that was connected to. ret stays "" when the line is not about TLS. */
void mqtt_tls_reason(void *ssl, const char *line, const char *host, char *ret, size_t size);

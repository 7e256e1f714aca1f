/* Why TLS failed, in words for GetStatus. */
#pragma once

#include <stddef.h>

#define MQTT_TLS_CLOSED                                                             \
	"TLS: the broker closed the connection (a port without TLS, or it wants a " \
	"client certificate?)"

/* In a log callback of libmosquitto: ssl is what mosquitto_ssl_get gave (may be NULL), line the
 * error line, host the name that was connected to. ret stays "" when the line is not about TLS. */
void mqtt_tls_reason(void *ssl, const char *line, const char *host, char *ret, size_t size);

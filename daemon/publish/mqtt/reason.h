/* SPDX-License-Identifier: Apache-2.0 */
/* reason.h: declares the texts for failures of a connection, as GetStatus shows them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mqtt_fault {
	int code;  /* of libmosquitto */
	int error; /* errno, when the code says so */
	bool connected, encrypted;
	const char *tls_reason; /* of mqtt_tls_reason; "" = none */
};

void mqtt_reason(const struct mqtt_fault *fault, char *ret, size_t size);

/* In a log callback of libmosquitto: ssl is what mosquitto_ssl_get gave (may be NULL), line the
 * error line, host the name that was connected to. ret stays "" when the line is not about TLS. */
void mqtt_tls_reason(void *ssl, const char *line, const char *host, char *ret, size_t size);

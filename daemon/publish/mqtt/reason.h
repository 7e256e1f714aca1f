/* Why a connection to the broker failed or ended, in words for GetStatus. */
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

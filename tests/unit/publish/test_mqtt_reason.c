/* SPDX-License-Identifier: Apache-2.0 */
/* test_mqtt_reason.c: tests the texts for failures of a connection to a broker. */
#include "daemon/publish/mqtt/reason.h"

#include <errno.h>
#include <mosquitto.h>

#include "tests/unit/unit.h"

static const char *reason(int error, bool encrypted, bool connected)
{
	static char text[160];
	const struct mqtt_fault fault = {MOSQ_ERR_ERRNO, error, .encrypted = encrypted,
		.connected = connected, .tls_reason = ""};
	mqtt_reason(&fault, text, sizeof(text));
	return text;
}

/* TLS 1.3: the client is done before the broker has seen its certificate, or that there is none. */
START_TEST(a_reset_instead_of_a_session_hints_at_the_certificate)
{
	ck_assert_ptr_nonnull(strstr(reason(ECONNRESET, true, false), "client certificate?"));
	ck_assert_ptr_nonnull(strstr(reason(EPIPE, true, false), "client certificate?"));
	ck_assert_str_eq(reason(ECONNRESET, true, true), "Connection reset by peer");
	ck_assert_str_eq(reason(ECONNRESET, false, false), "Connection reset by peer");
}
END_TEST

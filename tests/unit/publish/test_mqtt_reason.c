/* SPDX-License-Identifier: Apache-2.0 */
/* test_mqtt_reason.c: tests the texts for failures of a connection to a broker. */
#include "daemon/publish/mqtt/reason.h"

#include <errno.h>
#include <mosquitto.h>

#include "tests/unit/unit.h"

static const char *reason(int code, int error, bool encrypted, bool connected)
{
	static char text[160];
	const struct mqtt_fault fault = {
		code, error, .encrypted = encrypted, .connected = connected, .tls_reason = ""};
	mqtt_reason(&fault, text, sizeof(text));
	return text;
}

/* TLS 1.3: the client is done before the broker has seen its certificate, or that there is none. */
START_TEST(a_reset_instead_of_a_session_hints_at_the_certificate)
{
	ck_assert_ptr_nonnull(
		strstr(reason(MOSQ_ERR_ERRNO, ECONNRESET, true, false), "client certificate?"));
	ck_assert_ptr_nonnull(
		strstr(reason(MOSQ_ERR_ERRNO, EPIPE, true, false), "client certificate?"));
	ck_assert_str_eq(
		reason(MOSQ_ERR_ERRNO, ECONNRESET, true, true), "Connection reset by peer");
	ck_assert_str_eq(
		reason(MOSQ_ERR_ERRNO, ECONNRESET, false, false), "Connection reset by peer");
}
END_TEST

START_TEST(a_reset_in_the_log_of_openssl_hints_at_the_certificate)
{
	char text[160] = "";
	mqtt_tls_reason(NULL,
		"OpenSSL Error[0]: error:80000068:system library::Connection reset by peer", "a",
		text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "client certificate?"));
}
END_TEST

START_TEST(the_end_of_a_session_hints_at_nothing)
{
	char text[160], log[160];
	const struct mqtt_fault fault = {
		MOSQ_ERR_CONN_LOST, 0, .encrypted = true, .connected = true, .tls_reason = log};
	mqtt_tls_reason(NULL, "OpenSSL Error[0]: error:0A000126:SSL routines::unexpected eof", "a",
		log, sizeof(log));
	mqtt_reason(&fault, text, sizeof(text));
	ck_assert_str_eq(text, "the broker closed the connection");
	ck_assert_str_eq(reason(MOSQ_ERR_ERRNO, EPROTO, true, true), text);
}
END_TEST

START_TEST(an_error_of_tls_without_a_text_is_the_end)
{
	ck_assert_ptr_nonnull(strstr(reason(MOSQ_ERR_TLS, 0, true, false), "without TLS"));
}
END_TEST

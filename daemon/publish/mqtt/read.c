/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c: reads from the broker, and survives a failed assertion of libmosquitto. Up to 2.0 it logs
 * an MQTT 5 property that it does not know without naming its client, which its own log__printf()
 * asserts: whoever answers in the place of the broker could end the daemon. No lock is held then,
 * so the call is left, and the packet is what such a packet is, malformed. What it had allocated
 * for that packet is lost.
 */
#include <mosquitto.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/mqtt/link_private.h"

/* The call in progress; of the broker's thread alone. */
static _Thread_local jmp_buf *reading;

/* Replaces that of libc in the whole process: assert() of glibc calls it. */
_Noreturn __attribute__((visibility("default"))) void __assert_fail(
	const char *assertion, const char *file, unsigned line, const char *function);

void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
	if (reading && function && strcmp(function, "log__printf") == 0) {
		longjmp(*reading, 1);
	}
	fprintf(stderr, "edgeprofd: %s:%u: %s: Assertion `%s' failed.\n", file, line,
		function ? function : "?", assertion);
	abort();
}

int mqtt_read(struct mosquitto *mosq)
{
	jmp_buf here;
	if (setjmp(here) != 0) {
		reading = NULL;
		return MOSQ_ERR_MALFORMED_PACKET;
	}
	reading = &here;
	int code = mosquitto_loop_read(mosq, 1);
	reading = NULL;
	return code;
}

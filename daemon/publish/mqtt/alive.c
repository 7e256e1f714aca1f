/* SPDX-License-Identifier: Apache-2.0 */
/* alive.c: sends pings of the daemon's own, because libmosquitto has no call for one. Any byte that
 * arrives is an answer. */
#include "daemon/publish/mqtt/alive.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "daemon/publish/outbox/outbox.h"

#define DEADLINE_NS UINT64_C(10000000000)
#define PING_NS (DEADLINE_NS / 2)
/* 64 bytes a second are more than answers to pings within TLS; a handshake has less than the rest.
 */
#define UNASKED_NS (UINT64_C(1000000000) / 64)
#define UNASKED_MAX_NS ((256 << 10) * UNASKED_NS)

enum { SLOW_LINK_BYTES = 4096 }; /* less is on its way on any link */

void mqtt_alive_begin(struct mqtt_alive *alive, uint64_t now_ns)
{
	*alive = (struct mqtt_alive){.heard_ns = now_ns, .acked_ns = now_ns};
}

void mqtt_alive_heard(struct mqtt_alive *alive, uint64_t now_ns)
{
	alive->heard_ns = now_ns;
	alive->pinged = false;
}

void mqtt_alive_wanted(struct mqtt_alive *alive, size_t bytes)
{
	const uint64_t ns = bytes * UNASKED_NS;
	alive->unasked_ns -= ns < alive->unasked_ns ? ns : alive->unasked_ns;
}

bool mqtt_alive_flooded(struct mqtt_alive *alive, int fd, uint64_t now_ns)
{
	struct tcp_info info = {.tcpi_bytes_received = alive->received};
	socklen_t size = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) {
		return false;
	}
	const uint64_t from_ns = alive->unasked_ns > now_ns ? alive->unasked_ns : now_ns;
	alive->unasked_ns = from_ns + (info.tcpi_bytes_received - alive->received) * UNASKED_NS;
	alive->received = info.tcpi_bytes_received;
	return alive->unasked_ns > now_ns + UNASKED_MAX_NS;
}

/* Only when nothing of libmosquitto's is half written; then 2 bytes fit. */
static bool send_ping(struct mosquitto *mosq)
{
	static const unsigned char pingreq[] = {0xc0, 0};
	SSL *ssl = mosquitto_ssl_get(mosq);
	if (mosquitto_want_write(mosq)) {
		return false;
	}
	if (ssl) {
		return SSL_write(ssl, pingreq, sizeof(pingreq)) == sizeof(pingreq);
	}
	return send(mosquitto_socket(mosq), pingreq, sizeof(pingreq),
		       MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(pingreq);
}

static void watch_backlog(struct mqtt_alive *alive, int fd, uint64_t now_ns)
{
	int backlog = 0;
	if (ioctl(fd, SIOCOUTQ, &backlog) < 0) {
		backlog = 0;
	}
	if (alive->backlog > SLOW_LINK_BYTES && backlog < alive->backlog) {
		alive->moved_ns = now_ns;
	}
	alive->backlog = backlog;
}

static uint64_t since(uint64_t a_ns, uint64_t b_ns, uint64_t now_ns)
{
	return now_ns - (a_ns > b_ns ? a_ns : b_ns);
}

const char *mqtt_alive_check(struct mqtt_alive *alive, struct mosquitto *mosq,
	const struct outbox_counts *counts, uint64_t now_ns)
{
	watch_backlog(alive, mosquitto_socket(mosq), now_ns);
	if (counts->in_flight == 0 || counts->answered != alive->acked) {
		alive->acked_ns = now_ns;
		alive->acked = counts->answered;
	}
	if (since(alive->acked_ns, alive->moved_ns, now_ns) >= DEADLINE_NS) {
		return "the broker did not acknowledge a message within 10 s";
	}
	uint64_t silent_ns = since(alive->heard_ns, alive->moved_ns, now_ns);
	if (silent_ns >= DEADLINE_NS) {
		return "the broker did not answer for 10 s";
	}
	if (silent_ns >= PING_NS && !alive->pinged && alive->backlog == 0) {
		alive->pinged = send_ping(mosq);
	}
	return NULL;
}

uint64_t mqtt_alive_wait_ns(const struct mqtt_alive *alive, uint64_t now_ns)
{
	uint64_t silent_ns = since(alive->heard_ns, alive->moved_ns, now_ns);
	uint64_t next_ns = alive->pinged ? DEADLINE_NS : PING_NS;
	return silent_ns < next_ns ? next_ns - silent_ns : 0;
}

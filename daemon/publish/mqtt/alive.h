/* SPDX-License-Identifier: Apache-2.0 */
/* alive.h: detects within 10 s of its last sign of life that the broker at the other end of a
 * connection is gone. libmosquitto alone takes twice its keepalive, and gives up on a slow link
 * while bytes still move. Also limits what the other end makes us hold: libmosquitto takes a packet
 * of 256 MB, and any number of messages of QoS 2. Used by the broker's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mosquitto;
struct outbox_counts;

struct mqtt_alive {
	uint64_t heard_ns; /* bytes came */
	uint64_t acked_ns; /* a message was acknowledged, or none waited for it */
	uint64_t acked;	   /* messages */
	uint64_t moved_ns; /* a backlog of what we sent became smaller */
	int backlog;	   /* bytes that the other end's kernel does not have */
	bool pinged;
	uint64_t received;   /* bytes */
	uint64_t unasked_ns; /* until what came and nobody asked for is forgiven */
};

void mqtt_alive_begin(struct mqtt_alive *alive, uint64_t now_ns);
void mqtt_alive_heard(struct mqtt_alive *alive, uint64_t now_ns);

/* This number of the bytes that came was wanted. */
void mqtt_alive_wanted(struct mqtt_alive *alive, size_t bytes);

/* More came than was wanted, and than it would take to keep alive for an hour. */
bool mqtt_alive_flooded(struct mqtt_alive *alive, int fd, uint64_t now_ns);

/* Why the connection is of no use any more, or NULL. Asks the broker for a sign when it gave none
 * for a while. */
const char *mqtt_alive_check(struct mqtt_alive *alive, struct mosquitto *mosq,
	const struct outbox_counts *counts, uint64_t now_ns);

/* When to check next, at the latest. */
uint64_t mqtt_alive_wait_ns(const struct mqtt_alive *alive, uint64_t now_ns);

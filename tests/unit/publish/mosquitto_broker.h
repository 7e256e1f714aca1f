/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real mosquitto on a free loopback port, and a subscriber that records what it gets. Everything
 * is pumped by pump(); nothing sleeps but in poll.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct {
	char folder[64], binary[64];
	int port;
	pid_t pid;
} broker;

struct heard {
	char topic[128];
	char payload[1024];
	bool retain;
};

static struct {
	struct mosquitto *mosq;
	char topic[64];
	bool subscribed;
	size_t count;
	struct heard heard[2048];
} subscriber;

static inline const char *broker_binary(void)
{
	static const char *const places[] = {"/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto",
		"/usr/bin/mosquitto", "/usr/local/bin/mosquitto"};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], X_OK) == 0) {
			return places[i];
		}
	}
	return NULL;
}

static inline int free_port(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return ntohs(address.sin_port);
}

/* Writes the configuration; access: the lines that say who may connect, and how. */
static inline void broker_configure(const char *access)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/conf", broker.folder);
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	/* Saved at every change, so that a persistent subscription survives SIGKILL. */
	fprintf(file,
		"listener %d 127.0.0.1\npersistence true\npersistence_location %s/\n"
		"autosave_interval 1\nautosave_on_changes true\nmax_queued_messages 0\n%s%s",
		broker.port, broker.folder, geteuid() == 0 ? "user root\n" : "", access);
	fclose(file);
}

/* A folder, a port and a configuration that lets everybody in; not started. */
static inline void broker_prepare(void)
{
	snprintf(broker.folder, sizeof(broker.folder), "/tmp/edgeprof-broker-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(broker.folder));
	broker.port = free_port();
	broker_configure("allow_anonymous true\n");
}

static inline void broker_start(void)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/conf", broker.folder);
	broker.pid = fork();
	if (broker.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		freopen("/dev/null", "w", stderr);
		execl(broker_binary(), "mosquitto", "-c", path, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_ge(broker.pid, 0);
}

static inline void broker_kill(int signal)
{
	if (broker.pid > 0) {
		kill(broker.pid, signal);
		waitpid(broker.pid, NULL, 0);
		broker.pid = 0;
	}
}

static inline void on_subscriber_message(
	struct mosquitto *mosq, void *userdata, const struct mosquitto_message *message)
{
	(void)mosq;
	(void)userdata;
	if (subscriber.count == 2048) {
		return;
	}
	struct heard *heard = &subscriber.heard[subscriber.count++];
	snprintf(heard->topic, sizeof(heard->topic), "%s", message->topic);
	snprintf(heard->payload, sizeof(heard->payload), "%.*s", message->payloadlen,
		message->payload ? (const char *)message->payload : "");
	heard->retain = message->retain;
}

static inline void on_subscriber_connect(struct mosquitto *mosq, void *userdata, int code)
{
	(void)userdata;
	if (code == 0) {
		mosquitto_subscribe(mosq, NULL, subscriber.topic, 1);
	}
}

static inline void on_subscriber_subscribe(
	struct mosquitto *mosq, void *userdata, int mid, int count, const int *granted)
{
	(void)mosq;
	(void)userdata;
	(void)mid;
	(void)count;
	(void)granted;
	subscriber.subscribed = true;
}

/* clean false: the broker keeps what comes while the subscriber is away. */
static inline void subscriber_open(const char *topic, bool clean)
{
	mosquitto_lib_init();
	snprintf(subscriber.topic, sizeof(subscriber.topic), "%s", topic);
	subscriber.mosq = mosquitto_new("subscriber", clean, NULL);
	mosquitto_connect_callback_set(subscriber.mosq, on_subscriber_connect);
	mosquitto_subscribe_callback_set(subscriber.mosq, on_subscriber_subscribe);
	mosquitto_message_callback_set(subscriber.mosq, on_subscriber_message);
	mosquitto_connect(subscriber.mosq, "127.0.0.1", broker.port, 60);
}

/* At most some ms. */
static inline void subscriber_pump(void)
{
	if (subscriber.mosq && mosquitto_loop(subscriber.mosq, 2, 1) != 0) {
		subscriber.subscribed = false;
		mosquitto_reconnect(subscriber.mosq);
		poll(NULL, 0, 5);
	}
}

static inline void subscriber_close(void)
{
	if (subscriber.mosq) {
		mosquitto_destroy(subscriber.mosq);
		subscriber.mosq = NULL;
		mosquitto_lib_cleanup();
	}
	subscriber.count = 0;
	subscriber.subscribed = false;
}

static inline const struct heard *heard_last(const char *topic)
{
	for (size_t i = subscriber.count; i > 0; i--) {
		if (strcmp(subscriber.heard[i - 1].topic, topic) == 0) {
			return &subscriber.heard[i - 1];
		}
	}
	return NULL;
}

static inline bool heard_payload(const char *topic, const char *part)
{
	for (size_t i = 0; i < subscriber.count; i++) {
		if (strcmp(subscriber.heard[i].topic, topic) == 0 &&
			strstr(subscriber.heard[i].payload, part)) {
			return true;
		}
	}
	return false;
}

static inline void broker_remove(void)
{
	broker_kill(SIGKILL);
	static const char *const names[] = {"conf", "mosquitto.db", "mosquitto.db.new", "passwd",
		"secret", "ca.crt", "server.crt", "server.key", "other.crt"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[96];
		snprintf(path, sizeof(path), "%s/%s", broker.folder, names[i]);
		unlink(path);
	}
	rmdir(broker.folder);
}

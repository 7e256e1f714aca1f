/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c: runs one connection to the broker on the thread of link.c: it connects, passes
 * messages of the outbox to libmosquitto, and reports what was acknowledged. The only file that
 * knows libmosquitto.
 *
 * Each connection is a new struct mosquitto: libmosquitto 2.0 resends its own unacknowledged
 * messages after a reconnect, in addition to ours; so messages in flight return to the outbox
 * instead, and are sent again in order. The thread polls the socket together with an eventfd (only
 * a publish from another thread wakes mosquitto_loop_forever for a new message).
 */
#include "daemon/publish/mqtt/link_private.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/publish/mqtt/alive.h"
#include "daemon/publish/mqtt/options.h"
#include "daemon/publish/mqtt/reason.h"
#include "daemon/util/sysops.h"

#define NS_PER_S UINT64_C(1000000000)

enum {
	KEEPALIVE_S = 30,
	CONNECT_TIMEOUT_S = 10, /* from the TCP connection to the broker's answer */
	STEADY_S = 20,		/* twice the deadline of alive.c: all is well */
	FLUSH_MS = 1000,	/* of a stop: what waits may still go out */
	FAREWELL_MS = 1800,	/* of a stop: until "offline" must be acknowledged */
	BUSY_POLL_MS = 200,	/* TLS may hold bytes that poll doesn't see */
	STOP_POLL_MS = 20,
	ANSWER_BYTES = 256,   /* the most that an acknowledgement has, with TLS */
	RECEIVE_BYTES = 8192, /* of the kernel's, so that a flood is seen before it is read */
};

/* One connection. */
struct session {
	struct mqtt_link *link;
	struct mosquitto *mosq;
	struct proto_broker broker;
	bool connected, farewell_sent, farewell_acknowledged;
	bool asks;  /* speaks MQTT 5, which reports births and clients with our id */
	bool taken; /* the broker reported another client with our id */
	bool reset; /* the connection was broken, not closed */
	int farewell_mid;
	bool steady;
	bool explained; /* the broker said why it refused or ended the connection */
	struct mqtt_alive alive;
	uint64_t opened_ns, connected_ns;
	char reason[160];
	char tls_reason[128]; /* from libmosquitto's log: only there TLS says why */
};

/* Callbacks of libmosquitto, all within this thread. */

static void set_refused(struct mqtt_link *link, const char *why)
{
	struct mqtt_link_status *status = mqtt_link_lock(link);
	if (!status->refused) {
		status->refused = true;
		snprintf(status->reason, sizeof(status->reason),
			"the broker refuses messages: %.80s (its access list or limits?)", why);
	}
	mqtt_link_unlock(link);
}

/* MQTT 5 acknowledges a message that it refuses, too. */
static void on_publish(struct mosquitto *mosq, void *userdata, int mid, int code,
	const mosquitto_property *properties)
{
	(void)mosq;
	(void)properties;
	struct session *session = userdata;
	const bool accepted = code < MQTT_RC_UNSPECIFIED;
	const bool ours = outbox_answered(&session->link->outbox, mid, accepted);
	if (ours && !accepted) {
		set_refused(session->link, mosquitto_reason_string(code));
	} else if (ours) {
		mqtt_alive_wanted(&session->alive, ANSWER_BYTES);
		mqtt_link_lock(session->link); /* the outbox counts them */
		mqtt_link_unlock(session->link);
	} else if (session->farewell_sent && mid == session->farewell_mid) {
		session->farewell_acknowledged = true;
	}
}

static void on_connect(struct mosquitto *mosq, void *userdata, int code)
{
	(void)mosq;
	struct session *session = userdata;
	if (code != 0) {
		snprintf(session->reason, sizeof(session->reason), "%s",
			session->asks ? mosquitto_reason_string(code)
				      : mosquitto_connack_string(code));
		session->explained = code != MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION;
		return;
	}
	session->connected = true;
}

static void on_disconnect(struct mosquitto *mosq, void *userdata, int code)
{
	(void)mosq;
	struct session *session = userdata;
	if (!session->asks || code < MQTT_RC_UNSPECIFIED) {
		return; /* a code of libmosquitto's own */
	}
	session->taken = code == MQTT_RC_SESSION_TAKEN_OVER;
	session->explained = !session->taken;
	if (session->reason[0] == '\0') {
		snprintf(session->reason, sizeof(session->reason),
			"the broker ended the connection: %s", mosquitto_reason_string(code));
	}
}

static void on_message(
	struct mosquitto *mosq, void *userdata, const struct mosquitto_message *message)
{
	(void)mosq;
	struct session *session = userdata;
	mqtt_alive_wanted(&session->alive,
		strlen(message->topic) + (size_t)message->payloadlen + ANSWER_BYTES);
	if (mqtt_birth_is(session->link, message)) {
		mqtt_link_lock(session->link)->births++;
		mqtt_link_unlock(session->link);
	}
}

static void on_log(struct mosquitto *mosq, void *userdata, int level, const char *text)
{
	struct session *session = userdata;
	if (level == MOSQ_LOG_ERR && session->tls_reason[0] == '\0') {
		mqtt_tls_reason(mosquitto_ssl_get(mosq), text, session->broker.host,
			session->tls_reason, sizeof(session->tls_reason));
	}
}

static void set_reason(struct session *session, int code, int error)
{
	if (session->reason[0] == '\0') { /* the first one is the cause */
		const struct mqtt_fault fault = {.code = code,
			.error = error,
			.connected = session->connected,
			.encrypted = proto_broker_encrypted(&session->broker),
			.tls_reason = session->tls_reason};
		mqtt_reason(&fault, session->reason, sizeof(session->reason));
	}
}

static int session_open(struct session *session)
{
	struct mqtt_link *link = session->link;
	session->mosq = mosquitto_new(link->client_id, true, session);
	if (!session->mosq) {
		return MOSQ_ERR_NOMEM;
	}
	mosquitto_connect_callback_set(session->mosq, on_connect);
	mosquitto_disconnect_callback_set(session->mosq, on_disconnect);
	mosquitto_publish_v5_callback_set(session->mosq, on_publish);
	mosquitto_message_callback_set(session->mosq, on_message);
	mosquitto_log_callback_set(session->mosq, on_log);
	mosquitto_int_option(session->mosq, MOSQ_OPT_TCP_NODELAY, 1);
	int code = mosquitto_will_set(session->mosq, link->status_topic, 7, "offline", 1, true);
	if (!code && session->asks) {
		code = mosquitto_int_option(
			session->mosq, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
	}
	if (!code) {
		code = mqtt_authenticate(
			session->mosq, &link->options, session->reason, sizeof(session->reason));
	}
	if (!code) {
		code = mqtt_encrypt(
			session->mosq, &session->broker, session->reason, sizeof(session->reason));
	}
	if (!code) {
		/* Blocks in name resolution and connect(2); unlike connect_async it goes through
		 * all addresses of the name. */
		code = mqtt_birth_connect(session->mosq, link, session->asks, KEEPALIVE_S);
	}
	if (!code) {
		setsockopt(mosquitto_socket(session->mosq), SOL_SOCKET, SO_RCVBUF,
			&(int){RECEIVE_BYTES}, sizeof(int));
	}
	return code;
}

/* Hands over what the outbox gives at this time (0: everything). False when the connection is of no
 * use any more. */
static bool session_send(struct session *session, uint64_t now_ns)
{
	struct outbox *outbox = &session->link->outbox;
	struct outbox_message *message;
	while ((message = outbox_take(outbox, now_ns))) {
		/* on_publish may come from within this call, and then frees message. */
		int code = mosquitto_publish(session->mosq, &message->mid, message->topic,
			(int)message->payload_length, message->payload, message->qos,
			message->retain);
		switch (code) {
		case MOSQ_ERR_SUCCESS:
			break;
		case MOSQ_ERR_INVAL:
		case MOSQ_ERR_PAYLOAD_SIZE:
		case MOSQ_ERR_MALFORMED_UTF8:
		case MOSQ_ERR_OVERSIZE_PACKET:
			outbox_reject(outbox, message);
			if (code == MOSQ_ERR_OVERSIZE_PACKET) {
				set_refused(session->link, mosquitto_strerror(code));
			}
			break;
		default:
			set_reason(session, code, errno);
			return false;
		}
	}
	return true;
}

static int session_say(struct session *session, const char *text, int *mid)
{
	return mosquitto_publish(
		session->mosq, mid, session->link->status_topic, (int)strlen(text), text, 1, true);
}

/* True when the connection can be closed. */
static bool session_farewell(struct session *session, uint64_t stop_ns, uint64_t now_ns)
{
	uint64_t waited_ms = (now_ns - stop_ns) / 1000000;
	if (!session->connected || waited_ms > FAREWELL_MS) {
		return true;
	}
	if (!session->farewell_sent) {
		if (outbox_count(&session->link->outbox).messages > 0 && waited_ms < FLUSH_MS) {
			return !session_send(session, 0);
		}
		session->farewell_sent = true;
		return session_say(session, "offline", &session->farewell_mid) != 0;
	}
	return session->farewell_acknowledged;
}

static int session_poll_ms(const struct session *session, bool stopping)
{
	if (stopping) {
		return STOP_POLL_MS;
	}
	struct outbox_counts counts = outbox_count(&session->link->outbox);
	uint64_t now_ns = sysops()->now_ns();
	if (session->connected && counts.ready) {
		return counts.ready_ns > now_ns ? (int)((counts.ready_ns - now_ns) / 1000000) + 1
						: 1;
	}
	if (!session->connected || counts.in_flight > 0 || session->alive.backlog > 0) {
		return BUSY_POLL_MS;
	}
	return (int)(mqtt_alive_wait_ns(&session->alive, now_ns) / 1000000) + 1;
}

/* Waits for the socket or a wake-up, then lets libmosquitto read, write and keep alive. */
static int session_turn(struct session *session, bool stopping)
{
	struct pollfd fds[2] = {
		{.fd = session->link->wake_fd, .events = POLLIN},
		{.fd = mosquitto_socket(session->mosq), .events = POLLIN},
	};
	if (fds[1].fd < 0) {
		return MOSQ_ERR_CONN_LOST;
	}
	if (mosquitto_want_write(session->mosq)) {
		fds[1].events |= POLLOUT;
	}
	poll(fds, 2, session_poll_ms(session, stopping));
	session->reset = fds[1].revents & POLLERR;
	uint64_t count;
	if (fds[0].revents & POLLIN && read(fds[0].fd, &count, sizeof(count)) < 0) {
		return MOSQ_ERR_ERRNO;
	}
	if (fds[1].revents & POLLIN) {
		mqtt_alive_heard(&session->alive, sysops()->now_ns());
	}
	errno = 0;
	int code = mqtt_read(session->mosq);
	if (!code && fds[1].revents & POLLOUT) {
		code = mosquitto_loop_write(session->mosq, 1);
	}
	if (!code) {
		code = mosquitto_loop_misc(session->mosq);
	}
	if (!code && mqtt_alive_flooded(&session->alive, fds[1].fd, sysops()->now_ns())) {
		snprintf(session->reason, sizeof(session->reason),
			"the broker sends data that nobody asked for");
		code = MOSQ_ERR_PROTOCOL;
	}
	if (!code && !session->connected && fds[1].revents & (POLLERR | POLLHUP)) {
		/* A reset within the TLS handshake: libmosquitto would try for ever. */
		code = MOSQ_ERR_CONN_LOST;
	}
	return code;
}

/* The first thing on a connection. False when it is of no use. */
static bool session_begin(struct session *session, uint64_t now_ns)
{
	session->connected_ns = now_ns;
	mqtt_alive_begin(&session->alive, now_ns);
	int code = session_say(session, "online", NULL);
	code = code ? code : mqtt_birth_listen(session->mosq, session->link, session->asks);
	if (code) {
		set_reason(session, code, errno);
		return false;
	}
	outbox_pace(&session->link->outbox);
	struct mqtt_link_status *status = mqtt_link_lock(session->link);
	status->state = LINK_CONNECTED;
	status->broker = round_broker(&session->link->round);
	status->connects++;
	if (!status->pushed) { /* else the two clients only alternate */
		status->reason[0] = '\0';
	}
	mqtt_link_unlock(session->link);
	return true;
}

/* The connection held: nothing is wrong any more. What a broker refuses stays true for it. calm:
 * nobody else uses the id any more. */
static void set_steady(struct mqtt_link *link, bool calm)
{
	struct mqtt_link_status *status = mqtt_link_lock(link);
	if (status->pushed) {
		status->pushed = false;
		status->reason[0] = '\0';
	}
	status->flaps = 0;
	status->taken = status->taken && !calm;
	mqtt_link_unlock(link);
}

/* One turn of a connection that is up; false when it is of no use any more. */
static bool session_serve(struct session *session, uint64_t now_ns)
{
	struct mqtt_link *link = session->link;
	if (session->connected_ns == 0 && !session_begin(session, now_ns)) {
		return false;
	}
	uint64_t up_ns = now_ns - session->connected_ns;
	const bool calm = collision_calms(&link->collision, up_ns, link->options.backoff_max_ns);
	if (calm || (!session->steady && up_ns >= STEADY_S * NS_PER_S)) {
		session->steady = true;
		set_steady(link, calm);
	}
	struct outbox_counts counts = outbox_count(&link->outbox);
	const char *dead = mqtt_alive_check(&session->alive, session->mosq, &counts, now_ns);
	if (dead) {
		session->explained = true;
		snprintf(session->reason, sizeof(session->reason), "%s", dead);
		return false;
	}
	return session_send(session, now_ns);
}

/* Until the connection ends or a stop is asked for. */
static void session_run(struct session *session)
{
	struct mqtt_link *link = session->link;
	for (;;) {
		uint64_t now_ns = sysops()->now_ns();
		uint64_t stop_ns = mqtt_link_stop_ns(link);
		if (stop_ns > 0) {
			if (session_farewell(session, stop_ns, now_ns)) {
				mosquitto_disconnect(session->mosq);
				return;
			}
		} else if (session->connected) {
			if (!session_serve(session, now_ns)) {
				return;
			}
		} else if (now_ns - session->opened_ns > CONNECT_TIMEOUT_S * NS_PER_S) {
			snprintf(session->reason, sizeof(session->reason),
				"no answer from the broker within %d s", CONNECT_TIMEOUT_S);
			return;
		}
		int code = session_turn(session, stop_ns > 0);
		if (code) {
			/* else it would look as if another client had the id */
			session->explained = session->explained || code == MOSQ_ERR_PROTOCOL ||
					     code == MOSQ_ERR_MALFORMED_PACKET;
			set_reason(session, code, errno);
			return;
		}
	}
}

static enum session_how session_how(const struct session *session)
{
	if (session->taken) {
		return SESSION_TAKEN;
	}
	if (session->connected) {
		/* mosquitto 2.0 closes after it refused a message */
		bool known = session->explained || session->link->status.refused;
		return known ? SESSION_FAILED : session->reset ? SESSION_RESET : SESSION_LOST;
	}
	bool old = session->asks && session->opened_ns > 0 && !session->explained;
	return old ? SESSION_OLD : SESSION_FAILED;
}

void mqtt_session(struct mqtt_link *link, struct session_end *ret)
{
	const bool births = link->birth_topic[0] != '\0' && !link->collision.old;
	struct session session = {.link = link,
		.broker = mqtt_broker(&link->options, round_broker(&link->round)),
		.asks = births || collision_asks(&link->collision)};
	int code = session_open(&session);
	if (code) {
		set_reason(&session, code, errno);
	} else {
		session.opened_ns = sysops()->now_ns();
		session_run(&session);
	}
	*ret = (struct session_end){.how = session_how(&session)};
	if (session.connected_ns > 0) {
		ret->up_ns = sysops()->now_ns() - session.connected_ns;
	}
	mosquitto_destroy(session.mosq);
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		session.reason[0] ? session.reason : "the connection was closed");
}

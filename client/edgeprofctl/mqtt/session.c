/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: subscribes to a topic at a broker. TLS is as in the daemon: the host name is verified
 * before a credential is sent. */
#include "client/edgeprofctl/mqtt/mqtt.h"

#include <errno.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/edgeprofctl/term/when.h"

enum { KEEPALIVE_S = 30 };

static void on_connect(struct mosquitto *mosq, void *userdata, int code)
{
	struct mqtt_session *session = userdata;
	if (code != 0) {
		snprintf(session->reason, sizeof(session->reason), "%s",
			mosquitto_connack_string(code));
	} else {
		mosquitto_subscribe(mosq, NULL, session->topic, 1);
	}
}

static void on_subscribe(
	struct mosquitto *mosq, void *userdata, int mid, int count, const int *granted)
{
	(void)mosq;
	(void)mid;
	struct mqtt_session *session = userdata;
	session->subscribed = count > 0 && granted[0] <= 2;
	if (!session->subscribed) {
		snprintf(session->reason, sizeof(session->reason),
			"the broker rejected the subscription");
	}
}

static void on_message(
	struct mosquitto *mosq, void *userdata, const struct mosquitto_message *message)
{
	(void)mosq;
	struct mqtt_session *session = userdata;
	const char *bytes = message->payload ? message->payload : "";
	session->on_message(session->ctx, bytes, (size_t)message->payloadlen, message->retain);
}

/* Only the log contains the reason of a TLS failure; its first line is the cause. */
static void on_log(struct mosquitto *mosq, void *userdata, int level, const char *text)
{
	(void)mosq;
	struct mqtt_session *session = userdata;
	if (level == MOSQ_LOG_ERR && session->reason[0] == '\0') {
		const char *colon = strrchr(text, ':');
		snprintf(session->reason, sizeof(session->reason), "TLS: %s",
			colon && colon[1] != '\0' ? colon + 1 : text);
	}
}

static int fail(struct mqtt_session *session, int code)
{
	const char *reason = session->reason;
	if (reason[0] == '\0') {
		reason = code == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(code);
	}
	return ctl_fail(session->ctl, CTL_UNREACHABLE, "broker %s:%d: %s", session->setup.host,
		session->setup.broker.port, reason);
}

static int encrypt(struct mqtt_session *session)
{
	const struct proto_broker *broker = &session->setup.broker;
	SSL_CTX *context;
	if (!proto_broker_encrypted(broker)) {
		return 0;
	}
	int r = proto_broker_context(broker, &context);
	if (r < 0) {
		snprintf(session->reason, sizeof(session->reason), "TLS: %s",
			r == -ENOENT ? "cannot use ca_file, cert_file or key_file" : strerror(-r));
		return MOSQ_ERR_TLS;
	}
	int code = mosquitto_void_option(session->mosq, MOSQ_OPT_SSL_CTX, context);
	SSL_CTX_free(context); /* it has its own reference */
	return code != 0 ? code
			 : mosquitto_int_option(session->mosq, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0);
}

static int authenticate(struct mqtt_session *session)
{
	char password[512] = "";
	const struct mqtt_setup *setup = &session->setup;
	if (setup->username[0] == '\0') {
		return 0;
	}
	if (setup->password_file[0] != '\0') {
		int r = mqtt_setup_password(setup, password, sizeof(password));
		if (r < 0) {
			snprintf(session->reason, sizeof(session->reason), "password_file: %s",
				r == -EPERM ? "refused: must be a regular file that only its owner "
					      "may read"
					    : strerror(-r));
			return MOSQ_ERR_AUTH;
		}
	}
	int code = mosquitto_username_pw_set(
		session->mosq, setup->username, password[0] != '\0' ? password : NULL);
	explicit_bzero(password, sizeof(password));
	return code;
}

static void on_alarm(int number)
{
	static const char text[] =
		"edgeprofctl: no reply from the broker, or no address for its name, in time\n";
	(void)number;
	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? CTL_OUTPUT : CTL_UNREACHABLE);
}

/* libmosquitto waits for a name and for a connection as long as the system does, which is minutes.
 * There is nothing to clean up yet. */
static int connect_in_time(struct mqtt_session *session)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval never = {.it_value = {.tv_sec = 0}};
	long ms = (long)session->ctl->options.timeout_ms;
	const struct itimerval limit = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &limit, NULL);
	int code = mosquitto_connect(
		session->mosq, session->setup.host, session->setup.broker.port, KEEPALIVE_S);
	int error = errno;
	setitimer(ITIMER_REAL, &never, NULL);
	errno = error;
	return code;
}

static int begin(struct mqtt_session *session)
{
	session->mosq = mosquitto_new(NULL, true, session);
	if (!session->mosq) {
		return MOSQ_ERR_NOMEM;
	}
	mosquitto_connect_callback_set(session->mosq, on_connect);
	mosquitto_subscribe_callback_set(session->mosq, on_subscribe);
	mosquitto_message_callback_set(session->mosq, on_message);
	mosquitto_log_callback_set(session->mosq, on_log);
	mosquitto_int_option(session->mosq, MOSQ_OPT_TCP_NODELAY, 1);
	int code = authenticate(session);
	code = code == 0 ? encrypt(session) : code;
	return code == 0 ? connect_in_time(session) : code;
}

int mqtt_session_open(struct mqtt_session *session, bool sends)
{
	struct ctl *ctl = session->ctl;
	const char *topic = session->topic;
	mosquitto_lib_init();
	if ((sends ? mosquitto_pub_topic_check(topic) : mosquitto_sub_topic_check(topic)) != 0) {
		return ctl_fail(ctl, CTL_USAGE, "invalid topic '%s'%s", topic,
			sends ? "; a topic to publish to has no wildcards" : "");
	}
	int status = mqtt_setup_read(ctl, &session->setup);
	if (status != CTL_FINE) {
		return status;
	}
	int code = begin(session);
	if (code != 0) {
		return fail(session, code);
	}
	double end_ms = when_mono_ms() + (double)ctl->options.timeout_ms;
	while (status == CTL_FINE && !session->subscribed) {
		if (when_mono_ms() > end_ms) {
			snprintf(session->reason, sizeof(session->reason), "no reply");
			return fail(session, 0);
		}
		status = mqtt_session_turn(session, 50);
	}
	return status;
}

int mqtt_session_turn(struct mqtt_session *session, int wait_ms)
{
	int code = mosquitto_loop(session->mosq, wait_ms, 1);
	if (code == MOSQ_ERR_ERRNO && errno == EINTR) {
		return CTL_FINE; /* a signal: the caller looks */
	}
	return code != 0 || session->reason[0] != '\0' ? fail(session, code) : CTL_FINE;
}

int mqtt_session_publish(struct mqtt_session *session, const char *payload)
{
	int code = mosquitto_publish(
		session->mosq, NULL, session->topic, (int)strlen(payload), payload, 0, false);
	return code != 0 ? fail(session, code) : CTL_FINE;
}

void mqtt_session_close(struct mqtt_session *session)
{
	if (session->mosq) {
		mosquitto_disconnect(session->mosq);
		mosquitto_destroy(session->mosq);
		session->mosq = NULL;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher against a real mosquitto: absent, there, killed, stopped, back. */
#include "daemon/publish/mqtt/mqtt.h"

#include <dirent.h>
#include <netdb.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "daemon/core/status/broker_status.h"
#include "daemon/publish/mqtt/link.h"
#include "tests/unit/publish/fake_core.h"
#include "tests/unit/publish/mosquitto_broker.h"
#include "tests/unit/unit.h"

#define EVENTS "edgeprof/nano-7/event/alert"
#define STATE "edgeprof/nano-7/alert/hot/cpu"
#define STATUS "edgeprof/nano-7/status"

static struct core core;
static uv_loop_t loop;
static struct mqtt *mqtt;
static struct mqtt_thread *thread;
static struct mqtt_options options;
static bool closed;
static void *memory; /* what survives the process */
static uv_timer_t ticker;
static unsigned long ticks;

/* Name resolution that hangs while the test says so. libmosquitto finds this one first. */
static bool resolution_hangs;
static sem_t resolution_entered, resolution_go;
int getaddrinfo(const char *restrict host, const char *restrict service,
	const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
	(void)hints;
	(void)service;
	if (resolution_hangs) {
		sem_post(&resolution_entered);
		sem_wait(&resolution_go);
		return EAI_AGAIN;
	}
	if (strcmp(host, "127.0.0.1") != 0) {
		return EAI_NONAME;
	}
	struct {
		struct addrinfo info;
		struct sockaddr_in address;
	} *one = calloc(1, sizeof(*one));
	one->info.ai_family = AF_INET;
	one->info.ai_socktype = SOCK_STREAM;
	one->info.ai_addr = (struct sockaddr *)&one->address;
	one->info.ai_addrlen = sizeof(one->address);
	one->address.sin_family = AF_INET;
	one->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret = &one->info;
	return 0;
}

void freeaddrinfo(struct addrinfo *info)
{
	free(info);
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	ticks++;
}

static void setup(void)
{
	fake_core_init(&core);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	uv_timer_init(&loop, &ticker);
	uv_timer_start(&ticker, on_tick, 1, 1);
	options = (struct mqtt_options){.enabled = true,
		.brokers = 1,
		.broker = {{.host = "127.0.0.1"}},
		.topic_prefix = "edgeprof",
		.summary_interval_ns = UINT64_C(3600000000000),
		.max_messages = 512,
		.max_bytes = 768 << 10,
		.backoff_min_ns = 20000000,
		.backoff_max_ns = 100000000};
	broker_prepare();
}

static void on_done(void *ctx)
{
	(void)ctx;
	closed = true;
}

static void teardown(void)
{
	if (mqtt && !closed) {
		mqtt_close(mqtt, on_done, NULL);
	}
	uv_close((uv_handle_t *)&ticker, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	mqtt_thread_destroy(thread);
	thread = NULL;
	subscriber_close();
	broker_remove();
	fake_core_finish(&core);
}

static void open_mqtt(void)
{
	options.port = broker.port;
	if (!thread) {
		ck_assert_int_eq(mqtt_thread_create(&thread), 0);
	}
	ck_assert_int_eq(mqtt_open(&loop, &core, &options, thread, memory, &mqtt), 0);
}

/* Runs everything until the condition holds; check's time limit ends what never comes. */
#define UNTIL(condition)                      \
	do {                                  \
		uv_run(&loop, UV_RUN_NOWAIT); \
		subscriber_pump();            \
		poll(NULL, 0, 1);             \
	} while (!(condition))

static bool is(const char *topic, const char *payload)
{
	const struct heard *heard = heard_last(topic);
	return heard && strcmp(heard->payload, payload) == 0;
}

static bool timeline_tells(const char *part)
{
	const struct timeline_entry *entry;
	for (uint64_t serial = 0; (entry = timeline_from(core.timeline, serial));
		serial = entry->serial + 1) {
		if (strstr(entry->text, part)) {
			return true;
		}
	}
	return false;
}

static void start_all(bool clean)
{
	broker_start();
	subscriber_open("#", clean);
	UNTIL(subscriber.subscribed);
	open_mqtt();
	UNTIL(core.broker->state == BROKER_CONNECTED && is(STATUS, "online"));
}

SKIP_UNLESS(broker_binary(), "no mosquitto on this machine");
TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(birth_info_and_summary_reach_a_subscriber)
{
	options.summary_interval_ns = 20000000;
	start_all(true);
	UNTIL(heard_last("edgeprof/nano-7/info") && heard_last("edgeprof/nano-7/summary"));
	ck_assert(heard_payload("edgeprof/nano-7/info", "\"edgeprof.info/1\""));
	ck_assert(heard_payload("edgeprof/nano-7/summary", "\"edgeprof.summary/1\""));
	ck_assert(timeline_tells("connected"));
	UNTIL(core.broker->delivered == 1); /* info; of a summary nobody knows */
	ck_assert_uint_eq(core.broker->connects, 1);
	/* Retained: one who comes later is told at once. */
	subscriber_close();
	subscriber_open("edgeprof/+/+", true);
	UNTIL(heard_last(STATUS) && heard_last("edgeprof/nano-7/info"));
	ck_assert(heard_last(STATUS)->retain);
	ck_assert(heard_last("edgeprof/nano-7/info")->retain);
}
END_TEST

START_TEST(closing_says_offline)
{
	start_all(true);
	mqtt_close(mqtt, on_done, NULL);
	UNTIL(closed && is(STATUS, "offline"));
	ck_assert_int_eq(core.broker->state, BROKER_OFF);
}
END_TEST

START_TEST(the_will_says_offline_when_the_daemon_is_killed)
{
	broker_start();
	subscriber_open("#", true);
	UNTIL(subscriber.subscribed);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		subscriber.mosq = NULL;
		open_mqtt();
		uv_run(&loop, UV_RUN_DEFAULT);
		_exit(0);
	}
	UNTIL(is(STATUS, "online"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	UNTIL(is(STATUS, "offline"));
}
END_TEST

START_TEST(an_alert_is_an_event_and_a_retained_state_until_it_clears)
{
	start_all(true);
	fake_transition("cpu", ALERT_FIRING, "hot", 1);
	UNTIL(heard_last(EVENTS) && heard_last(STATE));
	ck_assert(heard_payload(EVENTS, "\"state\":\"firing\""));
	ck_assert(heard_payload(STATE, "\"state\":\"firing\""));
	subscriber_close();
	subscriber_open("#", true);
	UNTIL(heard_last(STATE) && heard_last(STATUS));
	ck_assert(heard_last(STATE)->retain);
	ck_assert_ptr_null(heard_last(EVENTS));
	fake_transition("cpu", ALERT_OK, "cool", 2);
	UNTIL(heard_payload(EVENTS, "\"state\":\"ok\"") && is(STATE, ""));
	subscriber_close();
	subscriber_open("#", true);
	UNTIL(heard_last(STATUS));
	ck_assert_ptr_null(heard_last(STATE));
}
END_TEST

START_TEST(a_broker_that_appears_later_gets_everything)
{
	open_mqtt();
	UNTIL(core.broker->state == BROKER_AWAY);
	ck_assert_str_eq(core.broker->reason, "Connection refused");
	ck_assert(timeline_tells("is not reachable: Connection refused"));
	fake_transition("cpu", ALERT_FIRING, "early", 1);
	broker_start();
	UNTIL(core.broker->state == BROKER_CONNECTED && core.broker->queued == 0);
	ck_assert_str_eq(core.broker->reason, "");
	subscriber_open("#", true);
	UNTIL(heard_last(STATE) && is(STATUS, "online"));
	ck_assert(heard_payload(STATE, "early"));
}
END_TEST

/* First arrivals of "n<number>" among the events, in order. */
static int in_order(void)
{
	int next = 0;
	for (size_t i = 0; i < subscriber.count; i++) {
		const struct heard *heard = &subscriber.heard[i];
		const char *text = strstr(heard->payload, "\"text\":\"n");
		if (strcmp(heard->topic, EVENTS) != 0 || !text) {
			continue;
		}
		int number = (int)strtol(text + 9, NULL, 10);
		ck_assert_int_le(number, next); /* a repetition, or the next: nothing left out */
		next += number == next;
	}
	return next;
}

START_TEST(alerts_raised_around_a_broker_s_death_arrive_in_order)
{
	start_all(false);
	int raised = 0;
	char text[16];
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 60; i++) { /* some are in flight when it dies */
			snprintf(text, sizeof(text), "n%d", raised++);
			fake_transition("cpu", raised % 2 ? ALERT_FIRING : ALERT_OK, text, 1);
		}
		uint64_t connects = core.broker->connects;
		broker_kill(SIGTERM);
		UNTIL(core.broker->state == BROKER_AWAY);
		ck_assert_str_ne(core.broker->reason, "");
		for (int i = 0; i < 20; i++) {
			snprintf(text, sizeof(text), "n%d", raised++);
			fake_transition("cpu", raised % 2 ? ALERT_FIRING : ALERT_OK, text, 1);
		}
		broker_start();
		UNTIL(core.broker->connects > connects && in_order() == raised);
	}
	ck_assert(timeline_tells("connection lost"));
	ck_assert_uint_eq(core.broker->dropped_alerts, 0);
	UNTIL(core.broker->queued == 0);
}
END_TEST

/* kill -9 with a full hand: what was raised without a broker, and a retained state to clear. */
START_TEST(alerts_of_a_killed_process_arrive_from_the_next_one)
{
	memory = mmap(NULL, mqtt_memory_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		-1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_mqtt();
		UNTIL(core.broker->state == BROKER_AWAY);
		for (int i = 0; i < 100; i++) {
			char text[16];
			snprintf(text, sizeof(text), "n%d", i);
			/* its states: fires at an even number, ends at an odd one */
			fake_transition(
				"cpu", i % 2 ? ALERT_OK : ALERT_FIRING, text, 1 + (uint64_t)i);
		}
		fake_transition("gpu", ALERT_FIRING, "n100", 200);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	broker_start();
	subscriber_open("#", true);
	UNTIL(subscriber.subscribed);
	options.inherit_ns = 500000000;
	options.summary_interval_ns = 50000000;
	open_mqtt();
	ck_assert_uint_ge(core.broker->queued, 101);
	UNTIL(core.broker->connects == 1 && in_order() == 101 && core.broker->queued == 0);
	ck_assert_uint_eq(core.broker->dropped_alerts, 0);
	/* "gpu" fires in no process any more: the broker is told so. */
	UNTIL(is("edgeprof/nano-7/alert/hot/gpu", "") && core.broker->queued == 0);
	/* When it happened, not when it was said: 2024-02-29T12:00:00.250Z and 49 ns. */
	ck_assert(heard_payload(EVENTS, "\"ts_ms\":1709208000250"));
	mqtt_close(mqtt, on_done, NULL);
	UNTIL(closed);
	/* Delivered: nothing is left to a third one. */
	closed = false;
	uint64_t delivered = core.broker->delivered;
	options.summary_interval_ns = UINT64_C(3600000000000);
	struct slots slots;
	uint64_t serial = 0;
	slots_init(&slots, memory, OUTBOX_KEPT, OUTBOX_KEPT_SIZE);
	ck_assert_int_eq(slots_next(&slots, &serial), SLOT_NONE);
	open_mqtt();
	UNTIL(core.broker->state == BROKER_CONNECTED && core.broker->queued == 0);
	ck_assert_uint_gt(delivered, core.broker->delivered);
	mqtt_close(mqtt, on_done, NULL);
	UNTIL(closed);
	munmap(memory, mqtt_memory_size());
	memory = NULL;
}
END_TEST

START_TEST(a_killed_broker_is_told_of_what_fires_when_it_is_back)
{
	start_all(true);
	fake_transition("cpu", ALERT_FIRING, "hot", 1);
	fake_transition("gpu", ALERT_FIRING, "hot", 1);
	UNTIL(core.broker->queued == 0);
	broker_kill(SIGKILL);
	UNTIL(core.broker->state == BROKER_AWAY);
	fake_transition("gpu", ALERT_OK, "cool", 2);
	char path[96];
	snprintf(path, sizeof(path), "%s/mosquitto.db", broker.folder);
	unlink(path); /* it has forgotten everything */
	broker_start();
	UNTIL(core.broker->state == BROKER_CONNECTED && core.broker->queued == 0);
	subscriber_close();
	subscriber_open("#", true);
	UNTIL(heard_last(STATE) && is(STATUS, "online") && heard_last("edgeprof/nano-7/info"));
	ck_assert_ptr_null(heard_last("edgeprof/nano-7/alert/hot/gpu"));
}
END_TEST

START_TEST(a_stalled_broker_neither_stops_the_loop_nor_fills_memory)
{
	options.summary_interval_ns = 1000000;
	options.max_messages = 64;
	start_all(true);
	kill(broker.pid, SIGSTOP);
	/* The kernel's buffers take some; then the queue fills and drops, while the loop turns. */
	for (int i = 0; i < 2000; i++) {
		char name[64];
		struct source *source = sources_find(core.sources, "s");
		if (!source) {
			ck_assert_int_eq(sources_add(core.sources, "s", 0, &source), 0);
		}
		struct metric *metric;
		snprintf(name, sizeof(name), "gauge/app/some_longer_name_of_a_gauge_%d", i);
		ck_assert_int_eq(metrics_add(core.metrics, source, name, UNIT_NONE, &metric), 0);
		metric_set(metric, i + 0.123456);
	}
	metrics_commit(core.metrics, sources_find(core.sources, "s"), 1);
	unsigned long before = ticks;
	subscriber_close();
	while (core.broker->dropped < 300) {
		uv_run(&loop, UV_RUN_ONCE);
		ck_assert_uint_le(core.broker->queued, 64);
	}
	/* One interval drops at most one summary: the loop turned at least that often. */
	ck_assert_uint_ge(ticks - before, 300);
	fake_transition("cpu", ALERT_FIRING, "stalled", 1);
	kill(broker.pid, SIGCONT);
	subscriber_open("#", true);
	UNTIL(heard_payload(STATE, "stalled"));
	ck_assert_uint_eq(core.broker->dropped_alerts, 0);
}
END_TEST

START_TEST(closing_ends_while_the_broker_is_stalled)
{
	start_all(true);
	kill(broker.pid, SIGSTOP);
	subscriber_close();
	fake_transition("cpu", ALERT_FIRING, "hot", 1);
	mqtt_close(mqtt, on_done, NULL);
	mqtt_close(mqtt, NULL, NULL); /* a second call is ignored */
	UNTIL(closed);
	kill(broker.pid, SIGCONT);
}
END_TEST

START_TEST(closing_ends_while_the_broker_is_absent)
{
	open_mqtt();
	UNTIL(core.broker->state == BROKER_AWAY);
	mqtt_close(mqtt, on_done, NULL);
	UNTIL(closed);
}
END_TEST

START_TEST(closing_ends_while_name_resolution_hangs)
{
	sem_init(&resolution_entered, 0, 0);
	sem_init(&resolution_go, 0, 0);
	resolution_hangs = true;
	open_mqtt();
	sem_wait(&resolution_entered);
	mqtt_close(mqtt, on_done, NULL);
	UNTIL(closed);
	/* The thread comes back, finds nobody, and must free what it holds (leak check). */
	resolution_hangs = false;
	sem_post(&resolution_go);
	poll(NULL, 0, 200);
}
END_TEST

static unsigned threads(void)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc/self/task");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		count += entry->d_name[0] != '.';
	}
	closedir(dir);
	return count;
}

START_TEST(what_follows_an_attempt_that_hangs_waits_for_its_thread)
{
	sem_init(&resolution_entered, 0, 0);
	sem_init(&resolution_go, 0, 0);
	resolution_hangs = true;
	open_mqtt();
	sem_wait(&resolution_entered);
	unsigned before = threads();
	for (int i = 0; i < 6; i++) { /* as reloads with other settings do */
		closed = false;
		mqtt_close(mqtt, on_done, NULL);
		UNTIL(closed);
		snprintf(options.device_id, sizeof(options.device_id), "other-%d", i);
		open_mqtt();
		ck_assert_str_eq(
			core.broker->reason, "waiting for the previous attempt to connect to end");
		ck_assert_uint_eq(threads(), before);
	}
	closed = false;
	fake_transition("cpu", ALERT_FIRING, "meanwhile", 1); /* waits, too */
	resolution_hangs = false;
	broker_start();
	subscriber_open("#", true);
	UNTIL(subscriber.subscribed);
	sem_post(&resolution_go);
	UNTIL(core.broker->state == BROKER_CONNECTED &&
		heard_payload("edgeprof/other-5/event/alert", "meanwhile"));
	ck_assert_str_eq(core.broker->reason, "");
	ck_assert_uint_eq(threads(), before);
}
END_TEST

START_TEST(a_name_that_does_not_resolve_is_a_reason)
{
	snprintf(options.broker[0].host, PROTO_HOST_SIZE, "nowhere.invalid");
	open_mqtt();
	UNTIL(core.broker->state == BROKER_AWAY);
	ck_assert_ptr_nonnull(strstr(core.broker->reason, "resolved"));
}
END_TEST

static void password_broker(const char *password, mode_t mode)
{
	char path[96], access[256];
	snprintf(access, sizeof(access), "allow_anonymous false\npassword_file %s/passwd\n",
		broker.folder);
	broker_configure(access);
	snprintf(path, sizeof(path), "%s/passwd", broker.folder);
	pid_t pid = fork();
	if (pid == 0) {
		execlp("mosquitto_passwd", "mosquitto_passwd", "-c", "-b", path, "edge", "geheim",
			(char *)NULL);
		_exit(127);
	}
	int status;
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	snprintf(options.username, sizeof(options.username), "edge");
	snprintf(options.password_file, sizeof(options.password_file), "%s/secret", broker.folder);
	FILE *file = fopen(options.password_file, "w");
	fputs(password, file);
	fclose(file);
	chmod(options.password_file, mode);
}

START_TEST(a_password_of_a_file_is_used)
{
	password_broker("geheim\n", 0600);
	broker_start();
	open_mqtt();
	UNTIL(core.broker->state == BROKER_CONNECTED);
}
END_TEST

START_TEST(a_wrong_password_is_a_reason)
{
	password_broker("falsch\n", 0600);
	broker_start();
	open_mqtt();
	UNTIL(core.broker->state == BROKER_AWAY &&
		strcmp(core.broker->reason, "Connection refused") != 0);
	ck_assert_ptr_nonnull(strstr(core.broker->reason, "not authorised"));
	ck_assert_ptr_null(strstr(core.broker->reason, "falsch"));
}
END_TEST

/* One self-signed certificate of 127.0.0.1, in the broker's folder. */
static void make_certificate(const char *name)
{
	char key[96], certificate[96];
	snprintf(key, sizeof(key), "%s/server.key", broker.folder);
	snprintf(certificate, sizeof(certificate), "%s/%s", broker.folder, name);
	pid_t pid = fork();
	if (pid == 0) {
		freopen("/dev/null", "w", stderr);
		execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
			"ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
			"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
			certificate, (char *)NULL);
		_exit(127);
	}
	int status;
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
}

static void tls_broker(const char *trusted)
{
	char access[400];
	make_certificate("other.crt");
	make_certificate("server.crt");
	snprintf(access, sizeof(access),
		"allow_anonymous true\ncertfile %s/server.crt\nkeyfile %s/server.key\n",
		broker.folder, broker.folder);
	broker_configure(access);
	snprintf(options.ca_file, sizeof(options.ca_file), "%s/%s", broker.folder, trusted);
	broker_start();
	open_mqtt();
}

START_TEST(tls_with_a_trusted_certificate_delivers)
{
	tls_broker("server.crt");
	for (int i = 0; i < 50; i++) {
		fake_transition("cpu", i % 2 ? ALERT_OK : ALERT_FIRING, "hot", 1);
	}
	UNTIL(core.broker->state == BROKER_CONNECTED && core.broker->queued == 0);
	ck_assert_uint_ge(core.broker->delivered, 50);
}
END_TEST

START_TEST(tls_with_an_untrusted_certificate_is_refused)
{
	tls_broker("other.crt");
	UNTIL(core.broker->state == BROKER_AWAY &&
		strcmp(core.broker->reason, "Connection refused") != 0);
	ck_assert_msg(
		strstr(core.broker->reason, "certificate"), "reason: %s", core.broker->reason);
	ck_assert_uint_eq(core.broker->connects, 0);
}
END_TEST

/* 50 daemons lose their broker at once and come back: whatever the attempt, they are spread over
 * the whole pause, and the next one does not find them together. */
START_TEST(a_fleet_comes_back_spread_over_the_pause)
{
	enum { FLEET = 50, ROUNDS = 400, SLICES = 10 };
	const uint64_t min_ns = 1000000000, max_ns = 60000000000;
	unsigned attempts[] = {0, 1, 3, 5, 6, 31, 32, 1000};
	for (size_t a = 0; a < sizeof(attempts) / sizeof(attempts[0]); a++) {
		uint64_t limit_ns = attempts[a] < 6 ? min_ns << attempts[a] : max_ns;
		unsigned total[SLICES] = {0}, most = 0;
		for (int round = 0; round < ROUNDS; round++) {
			unsigned slice[SLICES] = {0};
			for (int i = 0; i < FLEET; i++) {
				uint64_t ns = mqtt_link_backoff_ns(min_ns, max_ns, attempts[a]);
				if (ns > limit_ns) {
					ck_abort_msg("%llu", (unsigned long long)ns);
				}
				size_t at = (size_t)(ns * SLICES / (limit_ns + 1));
				slice[at]++;
				total[at]++;
				most = slice[at] > most ? slice[at] : most;
			}
		}
		/* 5 expected in a tenth; 25 has a probability of 10^-11 each. */
		ck_assert_uint_lt(most, 25);
		for (int i = 0; i < SLICES; i++) { /* 2000 expected, deviation 42 */
			ck_assert_uint_gt(total[i], 1600);
			ck_assert_uint_lt(total[i], 2400);
		}
	}
}
END_TEST

START_TEST(a_round_begins_with_the_broker_that_worked_last_then_the_others_in_order)
{
	struct round round = {.first = 0};
	static const unsigned fresh[] = {0, 1, 2}, after_third[] = {2, 0, 1};
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(round_broker(&round), fresh[i]);
		ck_assert(round_ended(&round, 3, false) == (i == 2));
	}
	round.tried = 2;
	ck_assert(round_ended(&round, 3, true));
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(round_broker(&round), after_third[i]);
		ck_assert(round_ended(&round, 3, false) == (i == 2));
	}
	ck_assert_uint_eq(round_broker(&round), 2);
}
END_TEST

START_TEST(unusable_options_are_refused)
{
	password_broker("geheim\n", 0644);
	options.port = broker.port;
	ck_assert_int_eq(mqtt_open(&loop, &core, &options, thread, memory, &mqtt), -EINVAL);
	options.username[0] = '\0';
	ck_assert_int_eq(mqtt_open(&loop, &core, &options, thread, memory, &mqtt), -EINVAL);
	options.password_file[0] = '\0';
	options.brokers = 0;
	ck_assert_int_eq(mqtt_open(&loop, &core, &options, thread, memory, &mqtt), -EINVAL);
	ck_assert_ptr_null(mqtt);
}
END_TEST

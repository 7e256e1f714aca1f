/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that mean no good, or do not know better: framing, order, limits, times, subscriptions. */
#include "tests/unit/alloc_faults.h"
#include "tests/unit/varlink/api_fixture.h"

#include <grp.h>

#include "tests/unit/unit.h"

static void start(void)
{
	fixture_open();
	fixture_serve();
}

static void end(void)
{
	fixture_close();
}

/* True when the server has ended the stream without another word. */
static bool hung_up(int fd)
{
	char *text = client_hear(fd);
	bool end_of_stream = text == NULL;
	free(text);
	return end_of_stream;
}

struct text {
	const char *bytes;
	size_t length;
};
#define TEXT(literal)                    \
	{                                \
		literal, sizeof(literal) \
	}

/* With their NUL. */
static const struct text hostile[] = {
	TEXT(""),
	TEXT("x"),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\""),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\"}x"),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\"}{}"),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\",\"method\":\"io.edgeprof.Reload\"}"),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\\u0000\"}"),
	TEXT("{\"method\":\"io.edge\0prof.GetSelf\"}"),
	TEXT("{\"method\":\"\xff\xfe\"}"),
	TEXT("{\"method\":\"\xc0\xaf\"}"),
	TEXT("{\"method\":7}"),
	TEXT("{\"method\":null}"),
	TEXT("{\"method\":[\"io.edgeprof.GetSelf\"]}"),
	TEXT("{}"),
	TEXT("[]"),
	TEXT("{\"parameters\":{}}"),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\",\"more\":1}"),
	TEXT("{\"method\":\"io.edgeprof.GetSelf\",\"oneway\":\"yes\"}"),
	TEXT("GET / HTTP/1.1\r\n\r\n"),
	TEXT("\x16\x03\x01\x02"),
};

TEST_TIMEOUT(100);
FIXTURE(start, end);

START_LOOP_TEST(what_is_no_call_ends_the_connection_and_only_that, 0, COUNT(hostile))
{
	int good = client_open(), bad = client_open();
	client_send(bad, hostile[_i].bytes, hostile[_i].length);
	ck_assert(hung_up(bad));
	close(bad);
	ck_assert_uint_ge(f.counters.api_errors, 1);
	cJSON *reply = client_call(good, "GetSelf", NULL, "");
	ck_assert(!cJSON_HasObjectItem(reply, "error"));
	cJSON_Delete(reply);
	close(good);
}
END_TEST

START_TEST(a_message_of_more_than_64_kib_ends_the_connection)
{
	static char text[PROTO_FRAME_MAX + 8];
	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"method\":\"io.edgeprof.GetSelf\"}", 32);
	int fd = client_open();
	client_send(fd, text, PROTO_FRAME_MAX);
	ck_assert(hung_up(fd));
	close(fd);
	/* the longest that is allowed */
	fd = client_open();
	text[PROTO_FRAME_MAX - 1] = '\0';
	client_send(fd, text, PROTO_FRAME_MAX);
	cJSON *reply = client_reply(fd, "GetSelf");
	ck_assert_ptr_nonnull(reply);
	cJSON_Delete(reply);
	close(fd);
}
END_TEST

START_TEST(nested_ten_thousand_deep_ends_the_connection)
{
	static char text[20100];
	int n = snprintf(text, sizeof(text), "{\"method\":\"io.edgeprof.GetSelf\",\"parameters\":");
	memset(text + n, '[', 10000);
	memset(text + n + 10000, ']', 10000 - 100);
	int fd = client_open();
	client_send(fd, text, (size_t)n + 19900);
	client_send(fd, "", 1);
	ck_assert(hung_up(fd));
	close(fd);
}
END_TEST

START_TEST(pipelined_calls_are_answered_in_order)
{
	char text[8192];
	size_t n = 0;
	for (int i = 0; i < 60; i++) {
		int length = snprintf(text + n, sizeof(text) - n,
			"{\"method\":\"io.edgeprof.Mark\",\"parameters\":{\"label\":\"%d\"}}", i);
		n += (size_t)length + 1;
	}
	int fd = client_open();
	client_send(fd, text, n);
	double last = 0;
	for (int i = 0; i < 60; i++) {
		cJSON *reply = client_reply(fd, "Mark");
		double serial = number(get(reply, "parameters"), "serial");
		ck_assert(last == 0 || serial == last + 1);
		last = serial;
		cJSON_Delete(reply);
	}
	close(fd);
}
END_TEST

START_TEST(a_message_may_come_in_pieces_and_two_at_once)
{
	static const char text[] = "{\"method\":\"io.edgeprof.GetSelf\"}\0"
				   "{\"method\":\"io.edgeprof.GetStatus\"}";
	for (size_t cut = 1; cut < sizeof(text); cut += 7) {
		int fd = client_open();
		client_send(fd, text, cut);
		uv_run(&f.loop, UV_RUN_NOWAIT);
		uv_run(&f.loop, UV_RUN_NOWAIT);
		client_send(fd, text + cut, sizeof(text) - cut);
		cJSON *reply = client_reply(fd, "GetSelf");
		ck_assert_ptr_nonnull(reply);
		cJSON_Delete(reply);
		reply = client_reply(fd, "GetStatus");
		ck_assert_ptr_nonnull(reply);
		cJSON_Delete(reply);
		close(fd);
	}
}
END_TEST

START_TEST(oneway_is_carried_out_and_never_answered)
{
	int fd = client_open();
	client_say(fd, "{\"method\":\"io.edgeprof.Mark\",\"parameters\":{\"label\":\"x\"},"
		       "\"oneway\":true}");
	client_say(fd, "{\"method\":\"io.edgeprof.NoSuch\",\"oneway\":true}");
	client_say(
		fd, "{\"method\":\"io.edgeprof.Mark\",\"parameters\":{\"y\":1},\"oneway\":true}");
	client_say(fd, "{\"method\":\"io.edgeprof.ListMetrics\",\"oneway\":true,\"more\":true}");
	cJSON *reply = client_call(fd, "Mark", "{\"label\":\"z\"}", "");
	double serial = number(get(reply, "parameters"), "serial");
	cJSON_Delete(reply);
	ck_assert_str_eq(timeline_from(f.core.timeline, (uint64_t)serial - 1)->text, "x");
	close(fd);
}
END_TEST

START_TEST(a_half_closed_peer_still_gets_its_answers)
{
	int fd = client_open();
	client_say(fd, "{\"method\":\"io.edgeprof.ListMetrics\",\"more\":true}");
	client_say(fd, "{\"method\":\"io.edgeprof.GetSelf\"}");
	shutdown(fd, SHUT_WR);
	cJSON *reply = client_reply(fd, "ListMetrics");
	ck_assert_ptr_nonnull(reply);
	cJSON_Delete(reply);
	reply = client_reply(fd, "GetSelf");
	ck_assert_ptr_nonnull(reply);
	cJSON_Delete(reply);
	ck_assert(hung_up(fd));
	close(fd);
}
END_TEST

FIXTURE(NULL, NULL);

START_TEST(no_first_message_in_time_ends_the_connection)
{
	fixture_open();
	f.options.first_frame_timeout_ns = 500000000; /* good speaks within it */
	fixture_serve();
	int silent = client_open(), half = client_open(), good = client_open();
	cJSON *reply = client_call(good, "GetSelf", NULL, "");
	cJSON_Delete(reply);
	client_send(half, "{\"method\":", 10);
	ck_assert(hung_up(silent));
	ck_assert(hung_up(half));
	reply = client_call(good, "GetSelf", NULL, "");
	ck_assert_ptr_nonnull(reply);
	cJSON_Delete(reply);
	close(silent);
	close(half);
	close(good);
	fixture_close();
}
END_TEST

START_TEST(half_a_later_message_is_not_waited_for_either)
{
	fixture_open();
	f.options.frame_timeout_ns = 20000000;
	fixture_serve();
	int fd = client_open();
	cJSON_Delete(client_call(fd, "GetSelf", NULL, ""));
	client_send(fd, "{\"method\":", 10);
	ck_assert(hung_up(fd));
	close(fd);
	fixture_close();
}
END_TEST

/* Asks without reading; the server must stop reading, hold bounded memory, and hang up. */
START_TEST(a_peer_that_never_reads_is_paused_then_closed)
{
	fixture_open();
	f.options.stall_timeout_ns = 100000000;
	fixture_serve();
	static const char call[] = "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
				   "\"parameters\":{\"interface\":\"io.edgeprof\"}}";
	int bad = client_open(), good = client_open();
	uint64_t most = 0;
	bool paused = false;
	for (;;) {
		ssize_t n = send(bad, call, sizeof(call), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN) {
			break; /* hung up */
		}
		paused = paused || n < 0;
		most = f.counters.api_bytes_queued > most ? f.counters.api_bytes_queued : most;
		uv_run(&f.loop, n < 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
	}
	ck_assert(paused);
	ck_assert_uint_gt(most, 64 * 1024);
	ck_assert_uint_le(most, 1024 * 1024);
	cJSON *reply = client_call(good, "GetSelf", NULL, "");
	ck_assert_ptr_nonnull(reply);
	cJSON_Delete(reply);
	close(bad);
	close(good);
	fixture_close();
}
END_TEST

static bool refused(int fd, const char *what, double limit)
{
	cJSON *reply = client_reply(fd, "GetSelf");
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(reply, "error"));
	bool result = error && strcmp(error, "io.edgeprof.LimitReached") == 0 &&
		      strcmp(string(get(reply, "parameters"), "what"), what) == 0 &&
		      number(get(reply, "parameters"), "limit") == limit;
	cJSON_Delete(reply);
	return result && hung_up(fd);
}

FIXTURE(start, end);

START_TEST(of_200_connections_those_past_the_limit_are_told)
{
	int fds[200];
	for (int i = 0; i < 200; i++) {
		if (geteuid() == 0 && i < 190) {
			/* many users: none reaches his own limit */
			ck_assert_int_eq(seteuid((uid_t)(5000 + i)), 0);
		}
		fds[i] = client_open();
		ck_assert_int_eq(seteuid(getuid()), 0);
	}
	int held = 0;
	for (int i = 0; i < 200; i++) {
		client_say(fds[i], "{\"method\":\"io.edgeprof.GetSelf\"}");
		client_wait(fds[i]);
		char *text = client_hear(fds[i]);
		ck_assert_ptr_nonnull(text);
		held += strstr(text, "LimitReached") == NULL;
		free(text);
	}
	if (geteuid() == 0) {
		/* 120 of others, 8 places are root's */
		ck_assert_int_eq(held, 128);
	} else {
		ck_assert_int_eq(held, 32);
	}
	ck_assert_uint_eq(f.counters.api_refused, 200 - (unsigned)held);
	for (int i = 0; i < 200; i++) {
		close(fds[i]);
	}
	/* places come back */
	while (f.counters.api_connections > 0) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	cJSON_Delete(ask("GetSelf", NULL));
}
END_TEST

START_TEST(one_user_has_so_many_connections_and_others_still_come_in)
{
	if (geteuid() != 0) {
		return; /* needs root to be two users */
	}
	int fds[33];
	ck_assert_int_eq(seteuid(4242), 0);
	for (int i = 0; i < 33; i++) {
		fds[i] = client_open();
	}
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert(refused(fds[32], "connections of this user", 32));
	cJSON_Delete(ask("GetSelf", NULL));
	for (int i = 0; i < 33; i++) {
		close(fds[i]);
	}
}
END_TEST

/* Complete requests fill what a user may hold; none of them has an answer that somebody reads. */
START_TEST(requests_of_many_connections_do_not_wait_for_each_other)
{
	enum { CONNECTIONS = 17, FILL = 60000 }; /* 1 MiB, but for less than a frame */
	static const char oneway[] = "{\"method\":\"x.Y\",\"oneway\":true}";
	static char text[FILL + sizeof(oneway)];
	if (geteuid() != 0) {
		return; /* needs root to be another user: root may hold more */
	}
	int fds[CONNECTIONS];
	size_t length = 0;
	while (length + sizeof(oneway) <= FILL) {
		memcpy(text + length, oneway, sizeof(oneway));
		length += sizeof(oneway);
	}
	ck_assert_int_eq(seteuid(4242), 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = client_open();
	}
	ck_assert_int_eq(seteuid(0), 0);
	while (f.counters.api_connections < CONNECTIONS) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		client_send(fds[i], text, length);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		client_say(fds[i], "{\"method\":\"org.varlink.service.GetInfo\"}");
		cJSON *reply = client_reply(fds[i], "org.varlink.service.GetInfo");
		ck_assert_ptr_nonnull(reply);
		cJSON_Delete(reply);
	}
	/* what was handled is held no more, by those who stay, too */
	ck_assert_uint_eq(f.counters.api_bytes_queued, 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		close(fds[i]);
	}
}
END_TEST

FIXTURE(NULL, NULL);

START_TEST(without_memory_nothing_opens_and_nothing_leaks)
{
	fixture_open();
	fixture_bind();
	int r = -ENOMEM;
	for (size_t n = 1; r < 0; n++) {
		alloc_faults_start(n);
		r = api_open(&f.loop, &f.core, &f.options, &f.api);
		alloc_faults_stop();
		ck_assert(r == 0 || r == -ENOMEM);
	}
	fixture_close();
}
END_TEST

FIXTURE(start, end);

/* Each allocation of a call fails once: an error or a hang-up, and the next peer is served. */
START_TEST(without_memory_a_call_fails_alone)
{
	static const char *const calls[] = {
		"{\"method\":\"io.edgeprof.GetHistory\",\"parameters\":{\"glob\":\"**\"}}",
		"{\"method\":\"io.edgeprof.ListStages\"}",
		"{\"method\":\"io.edgeprof.Subscribe\",\"more\":true}",
		"{\"method\":\"io.edgeprof.ListMetrics\",\"more\":true}",
	};
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		bool failed = true;
		for (size_t n = 1; failed; n++) {
			alloc_faults_start(n);
			int fd = client_open();
			/* in two pieces: the first is kept */
			client_send(fd, calls[i], 5);
			uv_run(&f.loop, UV_RUN_NOWAIT);
			client_send(fd, calls[i] + 5, strlen(calls[i]) - 4);
			char *text = client_hear(fd);
			failed = alloc_calls >= n;
			alloc_faults_stop();
			free(text);
			close(fd);
			cJSON_Delete(ask("GetSelf", NULL));
		}
	}
}
END_TEST

static uint64_t random_state = 88172645463325252u;

static unsigned pick(unsigned below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 11) % below;
}

/* Whole messages, damaged; the server answers or hangs up, and lives. */
START_TEST(mutated_calls_do_no_harm)
{
	static const char *const seeds[] = {
		"{\"method\":\"io.edgeprof.GetHistory\",\"parameters\":{\"glob\":\"**\","
		"\"from_us\":1,\"max_points\":9}}",
		"{\"method\":\"io.edgeprof.ListMetrics\",\"parameters\":{\"glob\":\"*/m*\"},"
		"\"more\":true}",
		"{\"method\":\"io.edgeprof.Subscribe\",\"more\":true}",
		"{\"method\":\"io.edgeprof.Mark\",\"parameters\":{\"label\":\"x\"}}",
		"{\"method\":\"io.edgeprof.ListEvents\",\"parameters\":{\"limit\":3}}",
	};
	int fd = client_open();
	for (int round = 0; round < 5000; round++) {
		char text[256];
		const char *seed = seeds[pick(sizeof(seeds) / sizeof(seeds[0]))];
		size_t n = strlen(seed) + 1;
		memcpy(text, seed, n);
		for (unsigned i = pick(3); i > 0; i--) {
			text[pick((unsigned)n)] = (char)pick(256);
		}
		client_send(fd, text, n);
		uv_run(&f.loop, UV_RUN_NOWAIT);
		char buffer[4096];
		ssize_t got;
		while ((got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
		}
		if (got == 0 || errno != EAGAIN || round % 50 == 0) {
			close(fd);
			fd = client_open();
		}
	}
	close(fd);
	cJSON_Delete(ask("GetSelf", NULL));
}
END_TEST

START_TEST(a_subscription_starts_with_the_state_then_changes)
{
	fixture_temperature(80, 0);
	int fd = client_open();
	cJSON *reply = client_call(fd, "Subscribe",
		"{\"glob\":\"temperature/max\",\"interval_ms\":100}", ",\"more\":true");
	ck_assert(cJSON_IsTrue(get(reply, "continues")));
	const cJSON *parameters = get(reply, "parameters");
	ck_assert_int_eq(count(parameters, "metrics"), 1);
	ck_assert_int_eq(count(parameters, "alerts"), 1);
	cJSON_Delete(reply);
	/* many commits at once: one push, with the last value */
	for (int i = 0; i < 10; i++) {
		fixture_temperature(81 + i, 0);
	}
	for (;;) {
		reply = client_reply(fd, "Subscribe");
		parameters = get(reply, "parameters");
		if (cJSON_HasObjectItem(parameters, "metrics")) {
			break;
		}
		cJSON_Delete(reply);
	}
	ck_assert_int_eq(count(parameters, "metrics"), 1);
	ck_assert_double_eq(
		number(item_of(parameters, "metrics", "name", "temperature/max"), "value"), 90);
	cJSON_Delete(reply);
	/* an event is pushed by itself */
	timeline_add(f.core.timeline, f.now_ns, TIMELINE_MARK, TIMELINE_INFO, "", "now");
	reply = client_reply(fd, "Subscribe");
	ck_assert_str_eq(
		string(item_of(get(reply, "parameters"), "events", "kind", "mark"), "text"), "now");
	cJSON_Delete(reply);
	close(fd);
}
END_TEST

START_TEST(events_that_a_slow_reader_missed_are_counted)
{
	int fd = client_open();
	cJSON_Delete(client_call(
		fd, "Subscribe", "{\"metrics\":false,\"events\":true}", ",\"more\":true"));
	for (int i = 0; i < 600; i++) {
		timeline_add(f.core.timeline, f.now_ns, TIMELINE_CLOCK, TIMELINE_INFO, "", "%d", i);
	}
	int got = 0;
	double lost = 0, last = 0;
	while (got + lost < 600) {
		cJSON *reply = client_reply(fd, "Subscribe");
		const cJSON *parameters = get(reply, "parameters"), *event;
		lost += cJSON_HasObjectItem(parameters, "lost") ? number(parameters, "lost") : 0;
		cJSON_ArrayForEach(event, get(parameters, "events"))
		{
			ck_assert_double_gt(number(event, "serial"), last);
			last = number(event, "serial");
			got++;
		}
		cJSON_Delete(reply);
	}
	ck_assert_int_eq(got, 256);
	ck_assert_double_eq(lost, 600 - 256);
	close(fd);
}
END_TEST

START_TEST(a_long_first_state_comes_in_several_replies)
{
	for (int i = 0; i < 2000; i++) {
		char name[64];
		struct metric *metric;
		snprintf(name, sizeof(name), "gauge/test/metric_number_%d", i);
		ck_assert_int_eq(
			metrics_add(f.core.metrics, f.thermal, name, UNIT_NONE, &metric), 0);
		metric_set(metric, i);
	}
	metrics_commit(f.core.metrics, f.thermal, f.now_ns);
	int fd = client_open(), total = 0, replies = 0;
	cJSON *reply = client_call(
		fd, "Subscribe", "{\"glob\":\"gauge/**\",\"events\":false}", ",\"more\":true");
	for (;;) {
		total += count(get(reply, "parameters"), "metrics");
		replies++;
		cJSON_Delete(reply);
		if (total >= 2000) {
			break;
		}
		reply = client_reply(fd, "Subscribe");
	}
	ck_assert_int_eq(total, 2000);
	ck_assert_int_gt(replies, 3);
	close(fd);
}
END_TEST

START_TEST(a_subscriber_that_leaves_is_let_go)
{
	int fd = client_open();
	cJSON_Delete(client_call(fd, "Subscribe", NULL, ",\"more\":true"));
	ck_assert_uint_eq(f.counters.api_connections, 1);
	close(fd);
	while (f.counters.api_connections > 0) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	fixture_temperature(41, 0);
}
END_TEST

START_TEST(subscribe_refuses_what_is_out_of_range)
{
	static const char *const table[][2] = {
		{"{\"interval_ms\":99}", "interval_ms"},
		{"{\"interval_ms\":60001}", "interval_ms"},
		{"{\"interval_ms\":1e999}", "interval_ms"},
		{"{\"glob\":\"[\"}", "glob"},
		{"{\"events\":1}", "events"},
	};
	int fd = client_open();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		cJSON *reply = client_call(fd, "Subscribe", table[i][0], ",\"more\":true");
		ck_assert_str_eq(string(reply, "error"), "org.varlink.service.InvalidParameter");
		ck_assert_str_eq(string(get(reply, "parameters"), "parameter"), table[i][1]);
		cJSON_Delete(reply);
	}
	close(fd);
}
END_TEST

/* SPDX-License-Identifier: Apache-2.0 */
/* How edgeprofctl takes answers: getters on odd shapes, the printer, joining chunks, the wire. */
#include "client/edgeprofctl/command.h"
#include "client/edgeprofctl/link/client.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/link/merge.h"
#include "proto/varlink.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char *print(const cJSON *value, bool pretty)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_write(out, value, pretty);
	fclose(out);
	return text;
}

START_TEST(wrong_shapes_read_as_nothing)
{
	static const char *const shapes[] = {
		"{}", "{\"a\":null}", "{\"a\":{}}", "[]", "3", "\"text\"", "null", "{\"b\":1}"};
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		cJSON *object = cJSON_Parse(shapes[i]);
		ck_assert_ptr_null(json_text(object, "a"));
		ck_assert_str_eq(json_word(object, "a"), "");
		ck_assert(isnan(json_number(object, "a")));
		ck_assert_int_eq(json_integer(object, "a"), 0);
		ck_assert(!json_true(object, "a"));
		ck_assert_ptr_null(json_first(object, "a"));
		ck_assert_int_eq(json_count(object, "a"), 0);
		cJSON_Delete(object);
	}
	ck_assert_ptr_null(json_get(NULL, "a"));
	cJSON *huge = cJSON_Parse("{\"a\":1e300}");
	ck_assert_int_eq(json_integer(huge, "a"), 0);
	cJSON_Delete(huge);
}
END_TEST

START_TEST(printing_keeps_values_and_hides_controls)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"{\"time_us\":1763703625123450}", "{\"time_us\":1763703625123450}\n"},
		{"[0.1,1e300,-5,33.333333333333336]", "[0.1,1e+300,-5,33.333333333333336]\n"},
		{"[true,false,null,{},[]]", "[true,false,null,{},[]]\n"},
		{"[\"a\\u001b[2J\\u009b\\u202e\\\"\\\\\\n\"]",
			"[\"a\\u001b[2J\\u009b\\u202e\\\"\\\\\\n\"]\n"},
		{"[\"\303\274\"]", "[\"\303\274\"]\n"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *value = cJSON_Parse(cases[i].in);
		char *text = print(value, false);
		ck_assert_str_eq(text, cases[i].out);
		cJSON *again = cJSON_Parse(text);
		ck_assert(cJSON_Compare(value, again, true));
		cJSON_Delete(again);
		free(text);
		text = print(value, true);
		again = cJSON_Parse(text);
		ck_assert(cJSON_Compare(value, again, true));
		cJSON_Delete(again);
		free(text);
		cJSON_Delete(value);
	}
}
END_TEST

static void check_merge(const char *whole, const char *part, const char *expected)
{
	cJSON *to = cJSON_Parse(whole);
	cJSON *from = cJSON_Parse(part);
	merge_reply(to, from);
	char *text = print(to, false);
	ck_assert_str_eq(text, expected);
	free(text);
	cJSON_Delete(from);
	cJSON_Delete(to);
}

START_TEST(chunks_become_one_answer)
{
	check_merge("{\"metrics\":[1,2]}", "{\"metrics\":[3]}", "{\"metrics\":[1,2,3]}\n");
	check_merge("{\"a\":[1],\"n\":1}", "{\"a\":[],\"n\":2,\"m\":3}",
		"{\"a\":[1],\"n\":2,\"m\":3}\n");
	check_merge("{\"series\":[{\"name\":\"a\",\"mean\":[1]},{\"name\":\"b\",\"mean\":[5]}]}",
		"{\"series\":[{\"name\":\"b\",\"mean\":[6]},{\"name\":\"c\",\"mean\":[7]},"
		"{\"name\":\"a\",\"mean\":[2]}]}",
		"{\"series\":[{\"name\":\"a\",\"mean\":[1,2]},{\"name\":\"b\",\"mean\":[5,6]},"
		"{\"name\":\"c\",\"mean\":[7]}]}\n");
	/* parts that are no series are kept, not joined */
	check_merge("{\"series\":[3]}", "{\"series\":[null,{\"mean\":[1]}]}",
		"{\"series\":[3,null,{\"mean\":[1]}]}\n");
	check_merge("{\"series\":3}", "{\"series\":[1]}", "{\"series\":[1]}\n");
}
END_TEST

/* Receives one reply made of these bytes, then the end of the stream. */
static int receive(const char *bytes, size_t length, struct reply *reply)
{
	int fds[2];
	struct client *client;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(client_create(fds[0], &client), 0);
	if (length > 0) {
		ck_assert_int_eq(write(fds[1], bytes, length), (ssize_t)length);
	}
	close(fds[1]);
	int r = client_receive(client, 1000, reply);
	client_destroy(client);
	return r;
}

START_TEST(bad_frames_are_badmsg)
{
	static const char *const bad[] = {"{", "[]", "3", "{} x", "{\"parameters\":3}",
		"{\"error\":5}", "{\"parameters\":{\"a\":1,\"a\":2}}", "", "\"x\"",
		"{\"parameters\":[]}"};
	struct reply reply;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(receive(bad[i], strlen(bad[i]) + 1, &reply), -EBADMSG);
	}
	/* broken off in the middle */
	ck_assert_int_eq(receive("{\"param", 7, &reply), -EBADMSG);
	ck_assert_int_eq(receive("", 0, &reply), -ECONNRESET);
}
END_TEST

START_TEST(odd_but_good_replies_are_taken)
{
	struct reply reply;
	ck_assert_int_eq(receive("{}", 3, &reply), 0);
	ck_assert(cJSON_IsObject(reply.parameters));
	ck_assert_ptr_null(reply.error);
	reply_finish(&reply);
	static const char error[] = "{\"error\":\"a.b.C\",\"parameters\":null,\"continues\":true}";
	ck_assert_int_eq(receive(error, sizeof(error), &reply), 0);
	ck_assert_str_eq(reply.error, "a.b.C");
	ck_assert(reply.continues);
	reply_finish(&reply);
}
END_TEST

START_TEST(a_frame_over_64_kib_is_emsgsize)
{
	char *bytes = malloc(PROTO_FRAME_MAX + 1);
	struct reply reply;
	memset(bytes, ' ', PROTO_FRAME_MAX + 1);
	ck_assert_int_eq(receive(bytes, PROTO_FRAME_MAX + 1, &reply), -EMSGSIZE);
	free(bytes);
}
END_TEST

START_TEST(silence_times_out_and_a_closed_peer_is_epipe)
{
	int fds[2];
	struct client *client;
	struct reply reply;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(client_create(fds[0], &client), 0);
	ck_assert_int_eq(client_receive(client, 1, &reply), -ETIMEDOUT);
	close(fds[1]);
	ck_assert_int_eq(client_send(client, "a.b.C", NULL, false, 1000), -EPIPE);
	client_destroy(client);
}
END_TEST

START_TEST(two_replies_in_one_packet_are_two)
{
	int fds[2];
	struct client *client;
	struct reply reply;
	static const char bytes[] = "{\"parameters\":{\"n\":1},\"continues\":true}\0"
				    "{\"parameters\":{\"n\":2}}";
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(client_create(fds[0], &client), 0);
	ck_assert_int_eq(write(fds[1], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	for (int n = 1; n <= 2; n++) {
		ck_assert_int_eq(client_receive(client, 0, &reply), 0);
		ck_assert_int_eq(json_integer(reply.parameters, "n"), n);
		ck_assert(reply.continues == (n == 1));
		reply_finish(&reply);
	}
	client_destroy(client);
	close(fds[1]);
}
END_TEST

START_TEST(a_call_is_one_frame_with_its_parameters)
{
	int fds[2];
	struct client *client;
	char bytes[128] = "";
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(client_create(fds[0], &client), 0);
	cJSON *parameters = cJSON_Parse("{\"glob\":\"a/*\"}");
	ck_assert_int_eq(client_send(client, "a.b.C", parameters, true, 1000), 0);
	cJSON_Delete(parameters);
	static const char expected[] =
		"{\"method\":\"a.b.C\",\"parameters\":{\"glob\":\"a/*\"},\"more\":true}";
	ck_assert_int_eq(read(fds[1], bytes, sizeof(bytes)), (ssize_t)sizeof(expected));
	ck_assert_str_eq(bytes, expected);
	client_destroy(client);
	close(fds[1]);
}
END_TEST

static const struct option_spec some_options[] = {
	{"since", 0, "TIME", "", option_text, offsetof(struct options, since)},
	{"step", 0, "SPAN", "", option_ms, offsetof(struct options, step_ms)},
	{"lines", 'n', "N", "", option_count, offsetof(struct options, lines)},
	{"recent", 0, "[N]", "", option_count, offsetof(struct options, recent)},
	{"by", 0, "category|unit", "", option_word, offsetof(struct options, by)},
	{"check", 0, "[warning|critical]", "", option_word, offsetof(struct options, check)},
	{"run", 0, "0|-1", "", option_run, offsetof(struct options, runs.run)},
	{"all", 'a', NULL, "", option_flag, offsetof(struct options, all)},
	{.name = NULL},
};

static const struct verb some = {.name = "some", .synopsis = "", .options = some_options};
static const struct verb other = {.name = "other", .synopsis = ""};
static const struct verb *const some_verbs[] = {&some, &other, NULL};

START_TEST(options_stand_on_both_sides_of_the_verb)
{
	char *argv[] = {"edgeprofctl", "-j", "--since", "5min", "some", "cpu/*", "--step=10s",
		"-an", "3", "--timeout", "250ms", "--recent", "7", "--by", "unit", "--check",
		"--run=-2", "--", "-x", NULL};
	struct command command;
	ck_assert_int_eq(command_parse(19, argv, some_verbs, &command), 0);
	const struct options *options = &command.options;
	ck_assert_ptr_eq(command.verb, &some);
	ck_assert_int_eq(command.options.json, JSON_SHORT);
	ck_assert_uint_eq(command.options.timeout_ms, 250);
	ck_assert_int_eq(command.word_count, 2);
	ck_assert_str_eq(command.words[0], "cpu/*");
	ck_assert_str_eq(command.words[1], "-x");
	ck_assert_str_eq(options->since, "5min");
	ck_assert_double_eq(options->step_ms, 10000);
	ck_assert_int_eq(options->lines, 3);
	ck_assert_int_eq(options->recent, 7);
	ck_assert_str_eq(options->by, "unit");
	ck_assert_str_eq(options->check, "");
	ck_assert_str_eq(options->runs.run, "-2");
	ck_assert(options->all);
}
END_TEST

START_TEST(what_is_not_given_stays_zero)
{
	char *argv[] = {"edgeprofctl", "some", "--recent", NULL};
	struct command command;
	ck_assert_int_eq(command_parse(3, argv, some_verbs, &command), 0);
	const struct options *options = &command.options;
	ck_assert_int_eq(options->recent, -1); /* given without a number */
	ck_assert(!options->since && !options->by && !options->check && !options->runs.run);
	ck_assert(options->step_ms == 0 && options->lines == 0 && !options->all);
	ck_assert_int_eq(command.options.json, JSON_OFF);
	ck_assert_uint_eq(command.options.timeout_ms, 5000);
}
END_TEST

START_TEST(bad_options_are_refused)
{
	static char *const bad[] = {"--nope", "-x", "--json=loud", "--color=blue", "--timeout=0",
		"--timeout=x", "--socket=", "--lines=0", "--lines=-3", "-n", "-nx", "--lines=1e3",
		"--step=5y", "--step=0", "--all=1", "--by=", "--by=uni", "--by=category|unit",
		"--check=info", "--run=-9", "--run=1", "--recent=0"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *argv[] = {"edgeprofctl", "some", bad[i], NULL};
		struct command command;
		ck_assert_int_eq(command_parse(3, argv, some_verbs, &command), -EINVAL);
	}
}
END_TEST

START_TEST(an_option_of_another_verb_is_refused)
{
	char *argv[] = {"edgeprofctl", "--all", "other", NULL};
	struct command command;
	ck_assert_int_eq(command_parse(3, argv, some_verbs, &command), -EINVAL);
}
END_TEST

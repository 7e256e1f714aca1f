/* SPDX-License-Identifier: Apache-2.0 */
/* test_alert.c: sends a test alert through the complete chain, and reports on each link. */
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/verb.h"

/* The end of the test comes 5 s after its begin, and the broker has 3 s. */
enum { TIMEOUT_MS = 12000 };

static void show_link(
	struct ctl *ctl, const char *name, const char *word, const char *good, const char *text)
{
	bool none = strcmp(word, "off") == 0;
	bool fine = strcmp(word, good) == 0;
	enum tone tone = style_of_state(fine ? "ok" : none ? "unavailable" : "error");
	fprintf(ctl->output.stream, "  %-12s%s%s%s%s%s\n", name, style_on(&ctl->style, tone), word,
		style_off(&ctl->style, tone), text[0] == '\0' ? "" : "  ", text);
}

static const char *mqtt_text(const cJSON *reply)
{
	static const struct {
		const char *word, *text;
	} texts[] = {
		{"delivered", "acknowledged by the broker"},
		{"unconfirmed", "no acknowledgement within 3 s"},
		{"dropped", "the queue is full"},
		{"off", "not configured"},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(json_word(reply, "mqtt"), texts[i].word) == 0) {
			return texts[i].text;
		}
	}
	return json_word(reply, "mqtt_reason");
}

static void show(struct ctl *ctl, const cJSON *reply)
{
	static const struct {
		const char *word, *text;
	} journals[] = {
		{"yes", "accepted, with MESSAGE_ID"},
		{"refused", "its socket refused the entry"},
		{"filtered", "suppressed by [daemon] log_level"},
		{"off", "the daemon is not a service; a line on its stderr"},
	};
	const char *journal = json_word(reply, "journal"), *text = "";
	char number[80];
	for (size_t i = 0; i < sizeof(journals) / sizeof(journals[0]); i++) {
		text = strcmp(journal, journals[i].word) == 0 ? journals[i].text : text;
	}
	fprintf(ctl->output.stream, "%s\n",
		strcmp(json_word(reply, "state"), "firing") == 0 ? "The test alert is firing:"
								 : "The test alert is over:");
	snprintf(number, sizeof(number), "entry %.0f", json_number(reply, "timeline_serial"));
	show_link(ctl, "timeline", "yes", "yes", number);
	show_link(ctl, "journal", journal, "yes", text);
	show_link(ctl, "mqtt", json_word(reply, "mqtt"), "delivered", mqtt_text(reply));
	fprintf(ctl->output.stream, "  %-12s%.0f\n", "subscribers",
		json_number(reply, "subscribers"));
}

struct test_options {
	const char *note;
};

static cJSON *parameters_of(const struct ctl *ctl)
{
	const struct test_options *options = ctl->verb_options;
	cJSON *parameters = ctl_parameters("severity", ctl_word(ctl, 0));
	if (options->note) {
		cJSON_AddStringToObject(parameters, "text", options->note);
	}
	return parameters;
}

static bool is_fine(const cJSON *reply)
{
	const char *journal = json_word(reply, "journal"), *mqtt = json_word(reply, "mqtt");
	return (strcmp(journal, "yes") == 0 || strcmp(journal, "off") == 0) &&
	       (strcmp(mqtt, "delivered") == 0 || strcmp(mqtt, "off") == 0);
}

static int run(struct ctl *ctl)
{
	int status = ctl_subscribe(ctl, "TestAlert", parameters_of(ctl));
	bool fine = true;
	for (int reply_number = 0; status == CTL_FINE && reply_number < 2; reply_number++) {
		cJSON *reply;
		status = ctl_expect(ctl, TIMEOUT_MS, &reply);
		if (status != CTL_FINE) {
			return status;
		}
		fine = fine && is_fine(reply);
		if (!ctl_json(ctl, reply)) {
			show(ctl, reply);
		}
		cJSON_Delete(reply);
		if (!ctl_flush(ctl, &status)) {
			return status;
		}
	}
	if (status == CTL_FINE && ctl->options.json == JSON_OFF) {
		fputs(fine ? "Every configured link confirmed both.\n"
			   : "Not every configured link confirmed both.\n",
			ctl->output.stream);
	}
	return status != CTL_FINE ? status : fine ? CTL_FINE : CTL_BAD_NEWS;
}

static const struct option_spec options[] = {
	{"note", 'm', "TEXT", "the text of the alert", option_text,
		offsetof(struct test_options, note)},
	{.name = NULL},
};

const struct verb verb_test_alert = {"test-alert", "[info|warning|critical]",
	"Test the alert chain: timeline, journal, MQTT.", "test-alert critical", options,
	sizeof(struct test_options), run};

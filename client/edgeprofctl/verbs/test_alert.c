/* SPDX-License-Identifier: Apache-2.0 */
/* test_alert.c: sends a test alert through the complete chain, and reports on each link. */

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/verb.h"

/* The end of the test comes 5 s after its begin, and the broker has 3 s. */
enum { TIMEOUT_MS = 12000 };

/* Each link of the chain, in the tone of how it is, and why. */
static const char chain_template[] =
	"The test alert is [{?state=firing}firing|over]:\n"
	"  timeline    {~good}yes{~none}  entry {timeline_serial:0}\n"
	"  journal     [{?journal=yes}{~good}|{?journal=off}{~dim}|{~bad}]{journal}{~none}"
	"[{?journal=yes}  accepted, with MESSAGE_ID|{?journal=refused}  its socket refused the "
	"entry|"
	"{?journal=filtered}  suppressed by \\[daemon\\] log_level|"
	"{?journal=off}  the daemon is not a service; a line on its stderr]\n"
	"  mqtt        [{?mqtt=delivered}{~good}|{?mqtt=off}{~dim}|{~bad}]{mqtt}{~none}"
	"[{?mqtt=delivered}  acknowledged by the broker|"
	"{?mqtt=unconfirmed}  no acknowledgement within 3 s|{?mqtt=dropped}  the queue is full|"
	"{?mqtt=off}  not configured|{?mqtt_reason}  {mqtt_reason}]\n"
	"  subscribers {subscribers:0}\n";

static bool is_fine(const cJSON *reply)
{
	const char *journal = json_word(reply, "journal"), *mqtt = json_word(reply, "mqtt");
	return (strcmp(journal, "yes") == 0 || strcmp(journal, "off") == 0) &&
	       (strcmp(mqtt, "delivered") == 0 || strcmp(mqtt, "off") == 0);
}

static int run(struct ctl *ctl)
{
	cJSON *parameters = ctl_parameters("severity", ctl_word(ctl, 0));
	int status = ctl_subscribe(
		ctl, "TestAlert", ctl_add_text(parameters, "text", ctl->options.note));
	bool fine = true;
	for (int reply_number = 0; status == CTL_FINE && reply_number < 2; reply_number++) {
		cJSON *reply;
		status = ctl_expect(ctl, TIMEOUT_MS, &reply);
		if (status != CTL_FINE) {
			return status;
		}
		fine = fine && is_fine(reply);
		if (!ctl_json(ctl, reply)) {
			listing_text(ctl, chain_template, reply);
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
	{"note", 'm', "TEXT", "the text of the alert", option_text, offsetof(struct options, note)},
	{.name = NULL},
};

const struct verb verb_test_alert = {"test-alert", "[info|warning|critical]",
	"Test the alert chain: timeline, journal, MQTT.", "test-alert critical", options, run};

/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: prints the device, apps, alerts, stages and sensors each interval. With JSON it is a
 * plain subscription: one reply a line. */
#include "client/edgeprofctl/top/plain.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/verb.h"
#include "proto/name.h"

/* Without a glob: what a person looks at first. A metric that is absent on this machine has no row;
 * one that cannot be read has one. */
static bool is_interesting(const cJSON *metric, const char *unused)
{
	static const char *const globs[] = {"temperature/*", "throttle/*", "power/*", "gpu/*",
		"cpu/*", "cpu/*/frequency", "memory/available", "memory/used*", "swap/used",
		"pressure/*/some", "fan/*", "process/*/rss", "process/*/cpu"};
	const char *state = json_word(metric, "state");
	bool there = !isnan(json_number(metric, "value")) || strcmp(state, "error") == 0 ||
		     strcmp(state, "stale") == 0;
	(void)unused;
	for (size_t i = 0; there && i < sizeof(globs) / sizeof(globs[0]); i++) {
		if (proto_glob_match(globs[i], json_word(metric, "name"))) {
			return true;
		}
	}
	return false;
}

static void show_device(struct ctl *ctl, const cJSON *status)
{
	static const struct field fields[] = {
		{"HOST", FIELD_LONG, "{~bold}{hostname}"},
		{"TEMP", FIELD_NUMBER, "{temperature_celsius:celsius}"},
		{"CPU", FIELD_NUMBER, "{cpu_percent:percent}"},
		{"MEMORY", FIELD_NUMBER, "{memory_percent:percent}"},
		{"TIME", FIELD_TEXT, "{time_us:time}"},
		{"SOURCES", FIELD_TEXT, "[{?sources_bad}{~warn}{sources_bad} failing|ok]"},
	};
	struct listing listing;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	listing_add(&listing, status);
	listing_end(&listing);
}

static void show_sensors(struct ctl *ctl, const cJSON *reply)
{
	show_metrics(ctl, reply, NULL, false);
}

enum { PART_STATUS, PART_METRICS, PART_FRAMES, PART_ALERTS, PART_STAGES, PARTS };

static void show_picture(struct ctl *ctl, cJSON *reply[PARTS])
{
	static const struct {
		int part;
		const char *member;
		void (*show)(struct ctl *, const cJSON *);
	} order[] = {
		{PART_FRAMES, "frames", show_frames},
		{PART_ALERTS, "alerts", show_alerts},
		{PART_STAGES, "stages", show_stages},
		{PART_METRICS, "metrics", show_sensors},
	};
	show_device(ctl, reply[PART_STATUS]);
	if (ctl->word_count == 0) {
		listing_narrow(reply[PART_METRICS], "metrics", is_interesting, NULL);
	}
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (json_count(reply[order[i].part], order[i].member) > 0) {
			fputc('\n', ctl->output.stream);
			order[i].show(ctl, reply[order[i].part]);
		}
	}
}

/* One picture: five calls. An exit status when the daemon can't be asked. */
static int make_picture(struct ctl *ctl)
{
	static const char *const methods[PARTS] = {
		"GetStatus", "ListMetrics", "GetFrames", "ListAlerts", "ListStages"};
	cJSON *reply[PARTS] = {NULL};
	int status = CTL_FINE;
	for (int i = 0; i < PARTS && status == CTL_FINE; i++) {
		const char *glob = i == PART_METRICS ? ctl_word(ctl, 0) : NULL;
		cJSON *parameters = ctl_parameters("glob", glob);
		bool of_apps = i == PART_FRAMES || i == PART_STAGES;
		parameters =
			of_apps ? ctl_add_flag(parameters, "all", ctl->options.all) : parameters;
		status = ctl_call(ctl, methods[i], parameters, i != PART_STATUS, &reply[i]);
	}
	if (status == CTL_FINE) {
		show_picture(ctl, reply);
	}
	for (int i = 0; i < PARTS; i++) {
		cJSON_Delete(reply[i]);
	}
	return status;
}

static int print_text(struct ctl *ctl, double interval_ms)
{
	int64_t wait_ns = (int64_t)(interval_ms * 1e6);
	struct timespec pause = {wait_ns / 1000000000, wait_ns % 1000000000};
	ctl->style.fit = true;
	for (long updates = 1;; updates++) {
		int status = make_picture(ctl);
		if (status == CTL_FINE) {
			fputc('\n', ctl->output.stream);
		}
		if (!ctl_flush(ctl, &status) || status != CTL_FINE ||
			(ctl->options.count > 0 && updates >= ctl->options.count)) {
			return status;
		}
		nanosleep(&pause, NULL);
	}
}

static int print_json(struct ctl *ctl, double interval_ms)
{
	const char *glob = ctl_word(ctl, 0);
	cJSON *parameters = ctl_parameters("glob", glob);
	cJSON_AddTrueToObject(parameters, "metrics");
	cJSON_AddTrueToObject(parameters, "events");
	cJSON_AddNumberToObject(parameters, "interval_ms", interval_ms);
	int status = ctl_subscribe(ctl, "Subscribe", parameters);
	for (long updates = 0; status == CTL_FINE;) {
		cJSON *reply;
		status = updates == 0 ? ctl_expect(ctl, ctl->options.timeout_ms, &reply)
				      : ctl_next(ctl, UINT64_C(3600000), &reply);
		if (status != CTL_FINE) {
			break;
		}
		updates += reply ? 1 : 0;
		if (reply) {
			ctl_json(ctl, reply);
		}
		cJSON_Delete(reply);
		if (!ctl_flush(ctl, &status) ||
			(ctl->options.count > 0 && updates >= ctl->options.count)) {
			break;
		}
	}
	return status;
}

int plain_run(struct ctl *ctl)
{
	double interval_ms = ctl->options.interval_ms > 0 ? ctl->options.interval_ms : 1000;
	return ctl->options.json == JSON_OFF ? print_text(ctl, interval_ms)
					     : print_json(ctl, interval_ms);
}

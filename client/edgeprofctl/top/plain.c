/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: prints the device, apps, alerts, stages and sensors each interval. With JSON it is a
 * plain subscription: one reply a line. */
#include "client/edgeprofctl/top/plain.h"

#include <math.h>
#include <string.h>

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

/* One picture: five calls. An exit status when the daemon can't be asked. */
static int show_picture(struct ctl *ctl)
{
	static const struct {
		const char *method, *array;
		void (*show)(struct ctl *, const cJSON *);
		bool ended; /* it can have apps that ended */
	} parts[] = {
		{"GetStatus", NULL, show_device, false},
		{"GetFrames", "frames", show_frames, true},
		{"ListAlerts", "alerts", show_alerts, false},
		{"ListStages", "stages", show_stages, true},
		{"ListMetrics", "metrics", show_sensors, false},
	};
	const char *glob = ctl_word(ctl, 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		bool metrics = parts[i].show == show_sensors;
		cJSON *reply, *parameters = ctl_parameters("glob", metrics ? glob : NULL);
		parameters = ctl_add_flag(parameters, "all", parts[i].ended && ctl->options.all);
		int status = ctl_call(ctl, parts[i].method, parameters, i > 0, &reply);
		if (status != CTL_FINE) {
			return status;
		}
		if (metrics && !glob) {
			listing_narrow(reply, "metrics", is_interesting, NULL);
		}
		if (!parts[i].array || json_count(reply, parts[i].array) > 0) {
			fputs(i > 0 ? "\n" : "", ctl->output.stream);
			parts[i].show(ctl, reply);
		}
		cJSON_Delete(reply);
	}
	return CTL_FINE;
}

static int print_text(struct ctl *ctl, double interval_ms)
{
	ctl->style.fit = true;
	ctl->style.color = ctl->options.color == COLOR_ALWAYS;
	for (long updates = 1;; updates++) {
		int status = show_picture(ctl);
		if (status == CTL_FINE) {
			fputc('\n', ctl->output.stream);
		}
		if (!ctl_flush(ctl, &status) || status != CTL_FINE ||
			(ctl->options.count > 0 && updates >= ctl->options.count)) {
			return status;
		}
		output_wait(-1, interval_ms);
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

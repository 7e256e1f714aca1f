/* watch: status line, apps, stages, sensors and alerts, drawn again each interval. With JSON it is
 * a plain subscription: one reply a line. */
#include "client/edgeprofctl/verbs.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/format.h"
#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/screen.h"
#include "proto/name.h"

/* Without a glob: what a person looks at first; apps, stages and the daemon have their own place.
 */
static bool interesting(const char *name)
{
	static const char *const globs[] = {"temperature/*", "throttle/*", "power/*", "cpu/*",
		"cpu/*/frequency", "memory/*", "swap/*", "pressure/*/some", "gpu/*", "fan/*",
		"process/*/rss", "process/*/cpu"};
	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		if (proto_glob_match(globs[i], name)) {
			return true;
		}
	}
	return false;
}

static void show_line(struct ctl *ctl, const cJSON *status)
{
	bool utf8 = ctl->style.utf8;
	FILE *out = ctl->output.stream;
	double celsius = json_number(status, "temperature_celsius");
	fprintf(out, "%s%s%s  %s%s%s  CPU %s  memory %s  sources %lld/%lld ok\n",
		style_on(&ctl->style, TONE_BOLD), json_word(status, "hostname"),
		style_off(&ctl->style, TONE_BOLD),
		format_time(json_integer(status, "time_us")).text, isnan(celsius) ? "" : "  ",
		isnan(celsius) ? "" : format_value(celsius, "celsius", utf8).text,
		format_value(json_number(status, "cpu_percent"), "percent", utf8).text,
		format_value(json_number(status, "memory_percent"), "percent", utf8).text,
		(long long)json_integer(status, "sources_ok"),
		(long long)json_integer(status, "sources"));
}

static void show_if(struct ctl *ctl, const cJSON *reply, const char *member,
	void (*show)(struct ctl *, const cJSON *))
{
	if (json_count(reply, member) > 0) {
		fputc('\n', ctl->output.stream);
		show(ctl, reply);
	}
}

static void show_sensors(struct ctl *ctl, const cJSON *reply)
{
	show_metrics(ctl, reply, ctl->word_count > 0 ? NULL : interesting);
}

/* One picture: five calls. An exit status when the daemon can't be asked. */
static int make_picture(struct ctl *ctl)
{
	static const struct {
		const char *method, *member;
		void (*show)(struct ctl *, const cJSON *);
	} parts[] = {
		{"ListAlerts", "alerts", show_alerts},
		{"GetFrames", "frames", show_frames},
		{"ListStages", "stages", show_stages},
		{"ListMetrics", "metrics", show_sensors},
	};
	cJSON *reply;
	int status = ctl_call(ctl, "GetStatus", NULL, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	show_line(ctl, reply);
	cJSON_Delete(reply);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		bool metrics = parts[i].show == show_sensors;
		const char *glob = metrics && ctl->word_count > 0 ? ctl->words[0] : NULL;
		status = ctl_call(ctl, parts[i].method, ctl_parameters("glob", glob), true, &reply);
		if (status != CTL_FINE) {
			return status;
		}
		show_if(ctl, reply, parts[i].member, parts[i].show);
		cJSON_Delete(reply);
	}
	return CTL_FINE;
}

/* Draws what is in the output as a screen. */
static int draw(struct ctl *ctl)
{
	if (fflush(ctl->output.stream) != 0) {
		return -ENOMEM;
	}
	int r = screen_draw(ctl->output.bytes, ctl->style.height);
	output_finish(&ctl->output);
	int opened = output_open(&ctl->output);
	return r < 0 ? r : opened;
}

/* On a terminal the picture waits for a daemon that is away; else that ends it. False: stop. */
static bool turn(struct ctl *ctl, int *ret)
{
	int status = make_picture(ctl);
	*ret = status;
	if (!ctl->style.tty) {
		if (status == CTL_FINE) {
			fputc('\n', ctl->output.stream);
		}
		return ctl_flush(ctl, ret) && status == CTL_FINE;
	}
	if (status != CTL_FINE) {
		ctl_disconnect(ctl);
		fprintf(ctl->output.stream, "\n%s%s%s\nTrying again; q ends.\n",
			style_on(&ctl->style, TONE_BAD), ctl->failure,
			style_off(&ctl->style, TONE_BAD));
	}
	*ret = draw(ctl) < 0 ? CTL_OUTPUT : CTL_FINE;
	return *ret == CTL_FINE;
}

static int watch_text(struct ctl *ctl, double interval_ms)
{
	struct screen *screen;
	int status = ctl_connect(ctl);
	if (status != CTL_FINE) {
		return status;
	}
	int r = screen_open(ctl->style.tty, &screen);
	if (r < 0) {
		return ctl_fail(ctl, CTL_OUTPUT, "%s", strerror(-r));
	}
	ctl->quiet = ctl->style.tty;
	for (long turns = 0;;) {
		bool go_on = turn(ctl, &status);
		turns++;
		if (!go_on || (ctl->options.count > 0 && turns >= ctl->options.count)) {
			break;
		}
		enum screen_event event = screen_wait(screen, (uint64_t)interval_ms);
		if (event == SCREEN_QUIT) {
			break;
		}
		if (event == SCREEN_REDRAW) {
			style_resize(&ctl->style);
			turns--;
		}
	}
	screen_close(screen);
	ctl->quiet = false;
	return status;
}

static int watch_json(struct ctl *ctl, double interval_ms)
{
	const char *glob = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *parameters = ctl_parameters("glob", glob);
	cJSON_AddTrueToObject(parameters, "metrics");
	cJSON_AddTrueToObject(parameters, "events");
	cJSON_AddNumberToObject(parameters, "interval_ms", interval_ms);
	int status = ctl_subscribe(ctl, "Subscribe", parameters);
	for (long turns = 0; status == CTL_FINE;) {
		cJSON *reply;
		uint64_t patience = turns == 0 ? ctl->options.timeout_ms : UINT64_C(3600000);
		status = ctl_next(ctl, patience, &reply);
		if (status != CTL_FINE) {
			break;
		}
		if (reply == NULL && turns == 0) {
			return ctl_fail(ctl, CTL_UNREACHABLE,
				"Subscribe: no answer within %.1f s (--timeout)",
				(double)ctl->options.timeout_ms / 1000);
		}
		turns += reply != NULL;
		if (reply != NULL) {
			ctl_json(ctl, reply);
		}
		cJSON_Delete(reply);
		if (!ctl_flush(ctl, &status) ||
			(ctl->options.count > 0 && turns >= ctl->options.count)) {
			break;
		}
	}
	return status;
}

int verb_watch(struct ctl *ctl)
{
	double interval_ms = ctl->options.given & OPTION_INTERVAL ? ctl->options.interval_ms : 1000;
	return ctl->options.json == JSON_OFF ? watch_text(ctl, interval_ms)
					     : watch_json(ctl, interval_ms);
}

/* A negative latency is kept in the numbers: it shows how wrong the clocks are. */
#include "client/edgeprofctl/mqtt/latency_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/timex.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/mqtt/setup.h"
#include "proto/percentile.h"

int latency_report_init(struct latency_report *report, size_t room)
{
	report->values_ms = calloc(room, sizeof(double));
	return !report->values_ms ? -ENOMEM : 0;
}

void latency_report_finish(struct latency_report *report)
{
	free(report->values_ms);
}

void latency_report_add(
	struct latency_report *report, enum stamp stamp, double latency_ms, bool unsynchronised)
{
	report->messages++;
	switch (stamp) {
	case STAMP_FOUND:
		break;
	case STAMP_NONE:
		report->without_time++;
		return;
	case STAMP_MALFORMED:
		report->malformed++;
		return;
	case STAMP_TOO_LARGE:
		report->too_large++;
		return;
	}
	if (fabs(latency_ms) > LATENCY_PLAUSIBLE_MS) {
		report->implausible++;
		return;
	}
	report->negative += latency_ms < 0;
	report->unsynchronised += unsynchronised;
	report->values_ms[report->count++] = latency_ms;
}

static bool clock_synchronised(void)
{
	struct timex timex = {.modes = 0};
	int state = adjtimex(&timex);
	return state >= 0 && state != TIME_ERROR && !(timex.status & STA_UNSYNC);
}

static void print_json(const struct latency_report *report, const struct proto_summary *summary,
	bool synchronised, struct ctl *ctl)
{
	const struct {
		const char *name;
		double value;
	} numbers[] = {
		{"messages", (double)report->messages},
		{"count", (double)report->count},
		{"mean_ms", summary->mean},
		{"min_ms", summary->min},
		{"p50_ms", summary->p50},
		{"p95_ms", summary->p95},
		{"p99_ms", summary->p99},
		{"max_ms", summary->max},
		{"negative", (double)report->negative},
		{"without_time", (double)report->without_time},
		{"malformed", (double)report->malformed},
		{"too_large", (double)report->too_large},
		{"implausible", (double)report->implausible},
		{"retained", (double)report->retained},
		{"unsynchronised", (double)report->unsynchronised},
	};
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "topic", ctl->words[0]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (isnan(numbers[i].value)) {
			cJSON_AddNullToObject(object, numbers[i].name);
		} else {
			cJSON_AddNumberToObject(object, numbers[i].name,
				round(numbers[i].value * 1e3) / 1e3); /* whole µs */
		}
	}
	cJSON_AddBoolToObject(object, "clock_synced", synchronised);
	ctl_json(ctl, object);
	cJSON_Delete(object);
}

static void print_text(const struct latency_report *report, const struct proto_summary *summary,
	bool comparable, FILE *out)
{
	const struct {
		uint64_t count;
		const char *what;
	} notes[] = {
		{report->negative, "arrived before they were sent: the clocks of sender and "
				   "receiver disagree"},
		{report->unsynchronised, "were sent by a clock that is not synchronised"},
		{report->without_time, "hold no capture time"},
		{report->malformed, "are neither a JSON object nor a number"},
		{report->too_large, "are larger than 64 KiB"},
		{report->implausible, "hold a time more than a day off"},
		{report->retained, "were retained by the broker, sent long ago: not measured"},
	};
	if (report->count > 0) {
		fprintf(out,
			"Latency of %zu messages, received - captured:\n"
			"  mean %.3f ms, min %.3f, p50 %.3f, p95 %.3f, p99 %.3f, max %.3f ms\n",
			report->count, summary->mean, summary->min, summary->p50, summary->p95,
			summary->p99, summary->max);
	}
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (notes[i].count > 0) {
			fprintf(out, "  %" PRIu64 " %s\n", notes[i].count, notes[i].what);
		}
	}
	if (!comparable) {
		fprintf(out,
			"  this machine's clock is not synchronised: the numbers are right only "
			"if the sender uses the same clock\n");
	}
}

int latency_report_print(struct latency_report *report, struct ctl *ctl)
{
	struct proto_summary summary;
	bool synchronised = clock_synchronised();
	proto_summarize(report->values_ms, report->count, &summary);
	if (ctl->options.json != JSON_OFF) {
		print_json(report, &summary, synchronised, ctl);
	} else {
		const struct latency_options *options = ctl->verb_options;
		print_text(report, &summary, synchronised || options->publish, ctl->output.stream);
	}
	if (report->count == 0) {
		return ctl_fail(ctl, CTL_NO_DATA, "no message with a capture time came");
	}
	return report->negative > 0 ? CTL_BAD_NEWS : CTL_FINE;
}

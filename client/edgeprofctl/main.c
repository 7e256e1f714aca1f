/* edgeprofctl: options and the table of verbs. Everything else is in the verbs' own files. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/verbs.h"

struct verb {
	const char *name, *arguments, *summary;
	uint64_t options; /* mask of those it knows */
	int least, most;  /* arguments */
	int (*run)(struct ctl *ctl);
};

static const struct verb verbs[] = {
	{"status", "", "one screen: device, sources, apps, alerts", 0, 0, 0, verb_status},
	{"snapshot", "", "the few numbers of this moment in one answer", OPTION_APP, 0, 0,
		verb_snapshot},
	{"sensors", "[GLOB]", "current values", OPTION_ALL, 0, 1, verb_sensors},
	{"stages", "[APP]", "pipeline report: mean, p95, p99 of each stage",
		OPTION_TREE | OPTION_BY | OPTION_SPAN | OPTION_METHOD | OPTION_THROTTLE |
			OPTION_WIDE | OPTION_RUN | OPTION_ALL_RUNS,
		0, 1, verb_stages},
	{"frames", "[APP]", "frame rate, frame time, jitter, single frames",
		OPTION_SPAN | OPTION_METHOD | OPTION_THROTTLE | OPTION_SLOW | OPTION_RECENT |
			OPTION_RUN | OPTION_ALL_RUNS,
		0, 1, verb_frames},
	{"report", "[APP]", "an app's report, as it is written when the app ends",
		OPTION_RUN | OPTION_ALL_RUNS, 0, 1, verb_report},
	{"apps", "", "attached applications and their event accounts", 0, 0, 0, verb_apps},
	{"ps", "", "watched processes",
		OPTION_WATCH | OPTION_UNWATCH | OPTION_NAME | OPTION_THREADS, 0, 0, verb_ps},
	{"power", "", "rails, the total and its source, energy since the start", 0, 0, 0,
		verb_power},
	{"history", "[GLOB]", "series over time; what happened around a moment",
		OPTION_SINCE | OPTION_UNTIL | OPTION_STEP | OPTION_MAX_POINTS | OPTION_SHAPE |
			OPTION_AROUND | OPTION_SPAN | OPTION_LINES | OPTION_BOOTS |
			OPTION_AGGREGATE,
		0, 1, verb_history},
	{"trace", "[APP]", "a trace file for Perfetto or chrome://tracing",
		OPTION_SINCE | OPTION_UNTIL | OPTION_OUTPUT | OPTION_FORMAT | OPTION_SENSORS, 0, 1,
		verb_trace},
	{"record", "now [LABEL [BEFORE [AFTER]]] | list | show NAME|FILE | export NAME|FILE",
		"the flight recorder's files", OPTION_OUTPUT | OPTION_FORMAT | OPTION_SENSORS, 0, 4,
		verb_record},
	{"alerts", "[GLOB]", "what fires or is about to; what happened last",
		OPTION_ALL | OPTION_CHECK | OPTION_RECENT, 0, 1, verb_alerts},
	{"ack", "RULE[:INSTANCE]", "an alert is known: not told again until it gets worse",
		OPTION_NOTE | OPTION_REMOVE, 1, 1, verb_ack},
	{"silence", "[RULE[:INSTANCE] SPAN]", "call nobody for a time; alone: list",
		OPTION_NOTE | OPTION_REMOVE, 0, 2, verb_silence},
	{"test-alert", "[SEVERITY]", "prove the chain: timeline, journal, MQTT", OPTION_NOTE, 0, 1,
		verb_test_alert},
	{"events", "[GLOB]", "the timeline",
		OPTION_FOLLOW | OPTION_LINES | OPTION_SINCE | OPTION_UNTIL | OPTION_KIND |
			OPTION_LEVEL,
		0, 1, verb_events},
	{"watch", "[GLOB]", "live picture; q ends", OPTION_INTERVAL | OPTION_COUNT, 0, 1,
		verb_watch},
	{"mark", "LABEL", "put a mark on the timeline", OPTION_APP, 1, 1, verb_mark},
	{"marks", "[APP]", "marks, their memory and what changed between them", 0, 0, 1,
		verb_marks},
	{"source", "list | enable NAME | disable NAME", "sensor sources", OPTION_INTERVAL, 0, 2,
		verb_source},
	{"metrics", "[GLOB]", "names of metrics", 0, 0, 1, verb_metrics},
	{"throttle", "", "what the hardware says about throttling", 0, 0, 0, verb_throttle},
	{"self", "", "what the daemon itself costs", 0, 0, 0, verb_self},
	{"doctor", "", "what is missing here, why, and how to fix it", 0, 0, 0, verb_doctor},
	{"reload", "", "read the configuration again", 0, 0, 0, verb_reload},
	{"parse", "tegrastats [FILE]", "lines of tegrastats as JSON, without a daemon", 0, 1, 2,
		verb_parse},
	{"emit", "NAME VALUE[ms|s|us|g|c] | --time NAME -- COMMAND... | -",
		"send a value, or time a command",
		OPTION_APP | OPTION_FRAME | OPTION_UNIT | OPTION_TIME, 1, INT_MAX, verb_emit},
	{"mqtt-latency", "TOPIC", "how old MQTT messages are when they arrive",
		OPTION_HOST | OPTION_PORT | OPTION_CONFIG | OPTION_KEY | OPTION_COUNT |
			OPTION_PUBLISH | OPTION_INTERVAL,
		1, 1, verb_mqtt_latency},
	{"version", "", "versions of edgeprofctl and edgeprofd", 0, 0, 0, verb_version},
	{"help", "[COMMAND]", "this text", 0, 0, 1, NULL},
};

enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			return &verbs[i];
		}
	}
	return NULL;
}

static void print_verb(const struct verb *verb, FILE *out)
{
	fprintf(out, "Usage: edgeprofctl %s%s%s", verb->name, verb->arguments[0] == '\0' ? "" : " ",
		verb->arguments);
	for (uint64_t bit = 1; bit < OPTION_END; bit <<= 1) {
		if (verb->options & bit) {
			fprintf(out, " [%s%s]", options_name(bit), options_argument(bit));
		}
	}
	fprintf(out, "\n%s\n", verb->summary);
}

static void print_usage(FILE *out)
{
	fputs("Usage: edgeprofctl [OPTION]... COMMAND [ARGUMENT]...\n\nCommands:\n", out);
	for (size_t i = 0; i < VERB_COUNT; i++) {
		fprintf(out, "  %-12s %-10.10s %s\n", verbs[i].name,
			strlen(verbs[i].arguments) > 10 ? "..." : verbs[i].arguments,
			verbs[i].summary);
	}
	fputc('\n', out);
	options_usage(out);
}

static int print_help(const struct verb *about)
{
	if (about == NULL) {
		print_usage(stdout);
	} else {
		print_verb(about, stdout);
	}
	return fflush(stdout) == 0 || errno == EPIPE ? CTL_FINE : CTL_OUTPUT;
}

/* 0, or the usage on stderr and CTL_USAGE. */
static int check_usage(const struct verb *verb, const struct options *options)
{
	uint64_t unknown = options->given & ~verb->options;
	int arguments = options->word_count - 1;
	if (unknown != 0) {
		fprintf(stderr, "edgeprofctl: '%s' does not know %s\n", verb->name,
			options_name(unknown & (~unknown + 1)));
	} else if (options->window_ms > 0 && !(verb->options & OPTION_AROUND)) {
		fprintf(stderr, "edgeprofctl: --span of '%s' is recent or lifetime\n", verb->name);
	} else if (arguments < verb->least || arguments > verb->most) {
		fprintf(stderr, "edgeprofctl: too %s arguments for '%s'\n",
			arguments < verb->least ? "few" : "many", verb->name);
	} else {
		return 0;
	}
	print_verb(verb, stderr);
	return CTL_USAGE;
}

static int run_verb(const struct verb *verb, const struct options *options)
{
	struct ctl ctl = {.options = *options};
	ctl.words = options->words + 1;
	ctl.word_count = options->word_count - 1;
	style_detect(&ctl.style, options->color);
	if (output_open(&ctl.output) < 0) {
		return ctl_fail(&ctl, CTL_OUTPUT, "no memory");
	}
	int status = verb->run(&ctl);
	int r = options->no_pager || options->json == JSON_SHORT
			? output_flush(&ctl.output)
			: output_page(&ctl.output, &ctl.style);
	if (r < 0 && r != -EPIPE) {
		status = ctl_fail(&ctl, CTL_OUTPUT, "can't write the output: %s", strerror(-r));
	}
	ctl_disconnect(&ctl);
	output_finish(&ctl.output);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	setlocale(LC_CTYPE, "");
	output_ignore_sigpipe();
	if (options_parse(argc, argv, &options) < 0) {
		fputs("Try 'edgeprofctl help'.\n", stderr);
		return CTL_USAGE;
	}
	if (options.version) {
		puts("edgeprofctl " EDGEPROF_VERSION);
		return CTL_FINE;
	}
	bool help = options.word_count > 0 && strcmp(options.words[0], "help") == 0;
	int at = help ? 1 : 0;
	const struct verb *verb = options.word_count > at ? find_verb(options.words[at]) : NULL;
	if (options.word_count > at && verb == NULL) {
		fprintf(stderr, "edgeprofctl: no command '%s'; 'edgeprofctl help' lists them\n",
			options.words[at]);
		return CTL_USAGE;
	}
	if (options.help || help) {
		return print_help(verb);
	}
	if (verb == NULL) {
		print_usage(stderr);
		return CTL_USAGE;
	}
	int status = check_usage(verb, &options);
	return status != 0 ? status : run_verb(verb, &options);
}

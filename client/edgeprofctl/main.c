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
	const char *example;
	int (*run)(struct ctl *ctl);
};

static const struct verb verbs[] = {
	{"status", "", "One screen: device, sources, apps, alerts.", OPTION_ALL, 0, 0, "status",
		verb_status},
	{"snapshot", "", "The most important numbers of this moment in one answer.", OPTION_APP, 0,
		0, "snapshot -j", verb_snapshot},
	{"sensors", "[GLOB]", "Current values of metrics.", OPTION_ALL | OPTION_WIDE, 0, 1,
		"sensors cpu", verb_sensors},
	{"stages", "[APP]", "Pipeline report: mean, p95, p99 of each stage.",
		OPTION_TREE | OPTION_BY | OPTION_SPAN | OPTION_METHOD | OPTION_THROTTLE |
			OPTION_WIDE | OPTION_ALL | OPTION_RUN | OPTION_ALL_RUNS,
		0, 1, "stages cam --tree", verb_stages},
	{"frames", "[APP]", "Frame rate, frame time, jitter, single frames.",
		OPTION_SPAN | OPTION_METHOD | OPTION_THROTTLE | OPTION_SLOW | OPTION_RECENT |
			OPTION_ALL | OPTION_RUN | OPTION_ALL_RUNS,
		0, 1, "frames cam --slow", verb_frames},
	{"report", "[APP]", "An app's report, as it is written when the app ends.",
		OPTION_RUN | OPTION_ALL_RUNS, 0, 1, "report cam", verb_report},
	{"apps", "", "Attached applications and their event accounts.", OPTION_ALL, 0, 0, "apps",
		verb_apps},
	{"ps", "", "Watched processes; adds and removes watches.",
		OPTION_WATCH | OPTION_UNWATCH | OPTION_NAME | OPTION_THREADS, 0, 0,
		"ps --watch '*sample_img*' --name sample", verb_ps},
	{"power", "", "Power rails, the total and its source, energy since the start.", 0, 0, 0,
		"power", verb_power},
	{"history", "[GLOB]", "Series over time; what happened around a moment.",
		OPTION_SINCE | OPTION_UNTIL | OPTION_STEP | OPTION_MAX_POINTS | OPTION_SHAPE |
			OPTION_AROUND | OPTION_SPAN | OPTION_LINES | OPTION_BOOTS |
			OPTION_AGGREGATE,
		0, 1, "history 'stage/cam/*/p95_ms' --since 10min --plot", verb_history},
	{"trace", "[APP]", "A trace file for Perfetto or chrome://tracing.",
		OPTION_SINCE | OPTION_UNTIL | OPTION_OUTPUT | OPTION_FORMAT | OPTION_SENSORS, 0, 1,
		"trace cam --since 30s -o cam.json", verb_trace},
	{"record", "now [LABEL [BEFORE [AFTER]]] | list | show NAME|FILE | export NAME|FILE",
		"The flight recorder's files.", OPTION_OUTPUT | OPTION_FORMAT | OPTION_SENSORS, 0,
		4, "record now 'slow start' 10s 5s", verb_record},
	{"alerts", "[GLOB]", "Alerts that are firing or pending; recent changes.",
		OPTION_ALL | OPTION_CHECK | OPTION_RECENT, 0, 1, "alerts --check=critical",
		verb_alerts},
	{"rules", "[GLOB]", "The alert rules: condition, state, built-in or configured.", 0, 0, 1,
		"rules temperature", verb_rules},
	{"ack", "RULE[:INSTANCE]", "Acknowledge an alert: no notification until it gets worse.",
		OPTION_NOTE | OPTION_REMOVE, 1, 1, "ack temperature -m 'fan ordered'", verb_ack},
	{"silence", "[RULE[:INSTANCE] SPAN]",
		"Mute notifications for a time; without arguments: list.",
		OPTION_NOTE | OPTION_REMOVE, 0, 2, "silence temperature 2h", verb_silence},
	{"test-alert", "[SEVERITY]", "Test the chain: timeline, journal, MQTT.", OPTION_NOTE, 0, 1,
		"test-alert critical", verb_test_alert},
	{"events", "[GLOB]", "The timeline: alerts, marks, apps, throttling.",
		OPTION_FOLLOW | OPTION_LINES | OPTION_SINCE | OPTION_UNTIL | OPTION_KIND |
			OPTION_LEVEL,
		0, 1, "events --follow --level warning", verb_events},
	{"watch", "[GLOB]", "Live view; q quits.", OPTION_INTERVAL | OPTION_COUNT | OPTION_ALL, 0,
		1, "watch temperature --interval 500ms", verb_watch},
	{"mark", "LABEL", "Put a mark on the timeline.", OPTION_APP, 1, 1, "mark 'model loaded'",
		verb_mark},
	{"marks", "[APP]", "Marks, their memory and what changed between them.", 0, 0, 1,
		"marks cam", verb_marks},
	{"source", "list | enable NAME | disable NAME",
		"Sensor sources: their state; enable or disable one.", OPTION_INTERVAL, 0, 2,
		"source disable tegrastats", verb_source},
	{"metrics", "[GLOB]", "Names of metrics.", 0, 0, 1, "metrics 'stage/**'", verb_metrics},
	{"throttle", "", "Whether the hardware throttles, and why.", 0, 0, 0, "throttle",
		verb_throttle},
	{"self", "", "What the daemon itself costs.", 0, 0, 0, "self", verb_self},
	{"doctor", "", "What is missing here, why, and how to fix it.", 0, 0, 0, "doctor",
		verb_doctor},
	{"reload", "", "Read the configuration again.", 0, 0, 0, "reload", verb_reload},
	{"parse", "tegrastats [FILE]", "Lines of tegrastats as JSON; needs no daemon.", 0, 1, 2,
		"parse tegrastats log.txt", verb_parse},
	{"emit", "NAME VALUE[ms|s|us|g|c] | --time NAME -- COMMAND... | -",
		"Send a value, or time a command.",
		OPTION_APP | OPTION_FRAME | OPTION_UNIT | OPTION_TIME, 1, INT_MAX,
		"emit infer 12.5ms --app cam", verb_emit},
	{"mqtt-latency", "TOPIC", "How old MQTT messages are when they arrive.",
		OPTION_HOST | OPTION_PORT | OPTION_CONFIG | OPTION_KEY | OPTION_COUNT |
			OPTION_PUBLISH | OPTION_INTERVAL,
		1, 1, "mqtt-latency 'edgeprof/+/summary' --count 10", verb_mqtt_latency},
	{"version", "", "Versions of edgeprofctl and edgeprofd.", 0, 0, 0, "version", verb_version},
	{"help", "[COMMAND]", "This text, or that of a command.", 0, 0, 1, "help sensors", NULL},
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

/* Changes of one letter between two words; lengths beyond a verb's are cut. */
static unsigned distance(const char *a, const char *b)
{
	enum { LONGEST = 16 };
	unsigned row[LONGEST + 1];
	size_t width = strnlen(b, LONGEST);
	for (size_t j = 0; j <= width; j++) {
		row[j] = (unsigned)j;
	}
	for (size_t i = 1; i <= LONGEST && a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= width; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[width];
}

/* A verb of which the word is the beginning, else one with few other letters. NULL: none is near.
 */
static const char *nearest(const char *word)
{
	const char *found = NULL;
	unsigned least = strlen(word) > 4 ? 3 : 2;
	for (size_t i = 0; i < VERB_COUNT; i++) {
		bool begins = strlen(word) > 1 && strncmp(verbs[i].name, word, strlen(word)) == 0;
		unsigned far = begins ? 0 : distance(word, verbs[i].name);
		if (far < least) {
			least = far;
			found = verbs[i].name;
		}
	}
	return found;
}

static int unknown_verb(const char *word)
{
	const char *meant = nearest(word);
	if (meant != NULL) {
		fprintf(stderr, "edgeprofctl: unknown command '%s'; did you mean '%s'?\n", word,
			meant);
	} else {
		fprintf(stderr, "edgeprofctl: unknown command '%s'\n", word);
	}
	fputs("Try 'edgeprofctl help'.\n", stderr);
	return CTL_USAGE;
}

static void print_synopsis(const struct verb *verb, FILE *out)
{
	fprintf(out, "Usage: edgeprofctl %s%s%s%s\n", verb->name,
		verb->arguments[0] == '\0' ? "" : " ", verb->arguments,
		verb->options == 0 ? "" : " [OPTION]...");
}

static void print_verb(const struct verb *verb, FILE *out)
{
	print_synopsis(verb, out);
	fprintf(out, "%s\n\n", verb->summary);
	for (uint64_t bit = 1; bit < OPTION_END; bit <<= 1) {
		if (verb->options & bit) {
			options_explain(verb->name, bit, out);
		}
	}
	fprintf(out, "%sExample: edgeprofctl %s\nOptions of every command: edgeprofctl help\n",
		verb->options == 0 ? "" : "\n", verb->example);
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
		fprintf(stderr, "edgeprofctl: '%s' has no option %s\n", verb->name,
			options_name(unknown & (~unknown + 1)));
	} else if (options->window_ms > 0 && !(verb->options & OPTION_AROUND)) {
		fprintf(stderr, "edgeprofctl: --span of '%s' is recent or lifetime\n", verb->name);
	} else if (arguments < verb->least || arguments > verb->most) {
		fprintf(stderr, "edgeprofctl: too %s arguments for '%s'\n",
			arguments < verb->least ? "few" : "many", verb->name);
	} else {
		return 0;
	}
	print_synopsis(verb, stderr);
	fprintf(stderr, "Try 'edgeprofctl %s --help'.\n", verb->name);
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
		return unknown_verb(options.words[at]);
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

/* The command line. One table for getopt_long; which verb knows which option is checked by main. */
#include "client/edgeprofctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/history/when.h"

enum {
	OPT_JSON = 256,
	OPT_NO_PAGER,
	OPT_COLOR,
	OPT_SOCKET,
	OPT_TIMEOUT,
	OPT_VERSION,
	OPT_PLOT,
	OPT_TABLE,
	OPT_VERB
};

enum { RUNS_KEPT = 8 };

/* Codes of verb options are OPT_VERB + the number of their bit. */
static const struct option long_options[] = {
	{"since", required_argument, NULL, OPT_VERB + 0},
	{"until", required_argument, NULL, OPT_VERB + 1},
	{"step", required_argument, NULL, OPT_VERB + 2},
	{"max-points", required_argument, NULL, OPT_VERB + 3},
	{"csv", no_argument, NULL, OPT_VERB + 4},
	{"all", no_argument, NULL, OPT_VERB + 5},
	{"check", optional_argument, NULL, OPT_VERB + 6},
	{"follow", no_argument, NULL, OPT_VERB + 7},
	{"lines", required_argument, NULL, OPT_VERB + 8},
	{"interval", required_argument, NULL, OPT_VERB + 9},
	{"count", required_argument, NULL, OPT_VERB + 10},
	{"app", required_argument, NULL, OPT_VERB + 11},
	{"watch", required_argument, NULL, OPT_VERB + 12},
	{"unwatch", required_argument, NULL, OPT_VERB + 13},
	{"name", required_argument, NULL, OPT_VERB + 14},
	{"threads", no_argument, NULL, OPT_VERB + 15},
	{"tree", no_argument, NULL, OPT_VERB + 16},
	{"by", required_argument, NULL, OPT_VERB + 17},
	{"span", required_argument, NULL, OPT_VERB + 18},
	{"method", required_argument, NULL, OPT_VERB + 19},
	{"throttle", required_argument, NULL, OPT_VERB + 20},
	{"wide", no_argument, NULL, OPT_VERB + 21},
	{"slow", no_argument, NULL, OPT_VERB + 22},
	{"recent", optional_argument, NULL, OPT_VERB + 23},
	{"frame", required_argument, NULL, OPT_VERB + 24},
	{"unit", required_argument, NULL, OPT_VERB + 25},
	{"time", required_argument, NULL, OPT_VERB + 26},
	{"output", required_argument, NULL, OPT_VERB + 27},
	{"format", required_argument, NULL, OPT_VERB + 28},
	{"sensors", required_argument, NULL, OPT_VERB + 29},
	{"around", required_argument, NULL, OPT_VERB + 30},
	{"boots", no_argument, NULL, OPT_VERB + 31},
	{"host", required_argument, NULL, OPT_VERB + 32},
	{"port", required_argument, NULL, OPT_VERB + 33},
	{"config", required_argument, NULL, OPT_VERB + 34},
	{"key", required_argument, NULL, OPT_VERB + 35},
	{"publish", no_argument, NULL, OPT_VERB + 36},
	{"note", required_argument, NULL, OPT_VERB + 37},
	{"remove", no_argument, NULL, OPT_VERB + 38},
	{"kind", required_argument, NULL, OPT_VERB + 39},
	{"level", required_argument, NULL, OPT_VERB + 40},
	{"aggregate", required_argument, NULL, OPT_VERB + 41},
	{"run", required_argument, NULL, OPT_VERB + 42},
	{"all-runs", no_argument, NULL, OPT_VERB + 43},
	{"plot", no_argument, NULL, OPT_PLOT},
	{"table", no_argument, NULL, OPT_TABLE},
	{"json", optional_argument, NULL, OPT_JSON},
	{"no-pager", no_argument, NULL, OPT_NO_PAGER},
	{"color", required_argument, NULL, OPT_COLOR},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int choose(const char *text, const char *const *words, size_t count, int *ret)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = (int)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_count(const char *text, long *ret)
{
	size_t length = strspn(text, "0123456789");
	long value = length == 0 || length > 9 ? 0 : strtol(text, NULL, 10);
	if (text[length] != '\0' || value < 1) {
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

/* 0 = the current or latest run, -1 … -RUNS_KEPT before it. */
static int parse_run(const char *text, long *ret)
{
	bool before = text[0] == '-';
	if (text[before] < '0' || text[before] > '0' + (before ? RUNS_KEPT : 0) ||
		text[before + 1] != '\0') {
		return -EINVAL;
	}
	*ret = before ? '0' - text[1] : 0;
	return 0;
}

/* The text itself when it is one of the words, up to NULL. */
static int parse_word(const char *text, const char *const *words, const char **ret)
{
	for (size_t i = 0; words[i] != NULL; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = text;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_frame(const char *text, uint64_t *ret)
{
	size_t length = strspn(text, "0123456789");
	if (length == 0 || length > 19 || text[length] != '\0') {
		return -EINVAL;
	}
	*ret = strtoull(text, NULL, 10);
	return 0;
}

/* A span of at least 1 ms, in ms. */
static int parse_ms(const char *text, double *ret)
{
	double seconds;
	if (when_parse_span(text, &seconds) < 0 || seconds < 0.001 || seconds > 366 * 86400.0) {
		return -EINVAL;
	}
	*ret = seconds * 1000;
	return 0;
}

/* One shape only. */
static int set_shape(struct options *options, enum shape shape)
{
	bool another = options->shape != SHAPE_LINES && options->shape != shape;
	options->given |= OPTION_SHAPE;
	options->shape = shape;
	return another ? -EINVAL : 0;
}

static int set_verb_option(struct options *options, uint64_t option, const char *argument)
{
	static const char *const formats[] = {"chrome", "csv", "json", NULL};
	static const char *const aggregates[] = {"mean", "min", "max", "count", NULL};
	static const char *const bys[] = {"category", "unit", NULL};
	static const char *const spans[] = {"recent", "lifetime", NULL};
	static const char *const methods[] = {"linear", "nearest", NULL};
	static const char *const levels[] = {"info", "warning", "critical", NULL};
	static const char *const kinds[] = {"alert", "silenced", "hold", "mark", "app", "source",
		"clock", "daemon", "throttle", NULL};
	static const char *const throttles[] = {"all", "throttled", "unthrottled", NULL};
	options->given |= option;
	switch (option) {
	case OPTION_SINCE:
		options->since = argument;
		return 0;
	case OPTION_UNTIL:
		options->until = argument;
		return 0;
	case OPTION_APP:
		options->app = argument;
		return 0;
	case OPTION_WATCH:
		options->watch = argument;
		return 0;
	case OPTION_UNWATCH:
		options->unwatch = argument;
		return 0;
	case OPTION_NAME:
		options->name = argument;
		return 0;
	case OPTION_BY:
		return parse_word(argument, bys, &options->by);
	case OPTION_SPAN:
		return parse_word(argument, spans, &options->span) == 0
			       ? 0
			       : parse_ms(argument, &options->window_ms);
	case OPTION_AGGREGATE:
		return parse_word(argument, aggregates, &options->aggregate);
	case OPTION_AROUND:
		options->around = argument;
		return 0;
	case OPTION_HOST:
		options->host = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPTION_PORT:
		return parse_count(argument, &options->port) < 0 || options->port > 65535 ? -EINVAL
											  : 0;
	case OPTION_CONFIG:
		options->config = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPTION_KEY:
		options->key = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPTION_SHAPE:
		return set_shape(options, SHAPE_CSV);
	case OPTION_METHOD:
		return parse_word(argument, methods, &options->method);
	case OPTION_THROTTLE:
		return parse_word(argument, throttles, &options->throttle);
	case OPTION_FRAME:
		return parse_frame(argument, &options->frame);
	case OPTION_UNIT:
		options->unit = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPTION_TIME:
		options->timed = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPTION_OUTPUT:
		options->output = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPTION_FORMAT:
		return parse_word(argument, formats, &options->format);
	case OPTION_SENSORS:
		options->sensors = argument;
		return 0;
	case OPTION_STEP:
		return parse_ms(argument, &options->step_ms);
	case OPTION_INTERVAL:
		return parse_ms(argument, &options->interval_ms);
	case OPTION_MAX_POINTS:
		return parse_count(argument, &options->max_points);
	case OPTION_LINES:
		return parse_count(argument, &options->lines);
	case OPTION_COUNT:
		return parse_count(argument, &options->count);
	case OPTION_RECENT:
		return argument == NULL ? 0 : parse_count(argument, &options->recent);
	case OPTION_RUN:
		return parse_run(argument, &options->run);
	case OPTION_CHECK:
		return parse_word(
			argument == NULL ? "warning" : argument, levels + 1, &options->check);
	case OPTION_LEVEL:
		return parse_word(argument, levels, &options->level);
	case OPTION_KIND:
		return parse_word(argument, kinds, &options->kind);
	case OPTION_NOTE:
		options->note = argument;
		return 0;
	default: /* flags are told by `given` */
		return 0;
	}
}

static int set_option(struct options *options, int code, const char *argument)
{
	static const char *const json[] = {"off", "pretty", "short"};
	static const char *const color[] = {"auto", "always", "never"};
	int choice = 0, r = 0;
	double milliseconds;
	switch (code) {
	case 'h':
		options->help = true;
		return 0;
	case 'j':
		options->json = JSON_SHORT;
		return 0;
	case OPT_JSON:
		r = choose(argument == NULL ? "pretty" : argument, json, 3, &choice);
		options->json = (enum json_mode)choice;
		return r;
	case OPT_NO_PAGER:
		options->no_pager = true;
		return 0;
	case OPT_COLOR:
		r = choose(argument, color, 3, &choice);
		options->color = (enum color_mode)choice;
		return r;
	case OPT_SOCKET:
		options->socket = argument;
		return argument[0] == '\0' ? -EINVAL : 0;
	case OPT_TIMEOUT:
		r = parse_ms(argument, &milliseconds);
		options->timeout_ms = r < 0 ? 0 : (uint64_t)milliseconds;
		return r;
	case OPT_PLOT:
		return set_shape(options, SHAPE_PLOT);
	case OPT_TABLE:
		return set_shape(options, SHAPE_TABLE);
	case OPT_VERSION:
		options->version = true;
		return 0;
	default:
		return set_verb_option(options, OPTION_BIT(code - OPT_VERB), argument);
	}
}

/* Short forms of verb options. */
static int long_code(int code)
{
	switch (code) {
	case 'a':
		return OPT_VERB + 5;
	case 'f':
		return OPT_VERB + 7;
	case 'n':
		return OPT_VERB + 8;
	case 'o':
		return OPT_VERB + 27;
	case 'm':
		return OPT_VERB + 37;
	default:
		return code;
	}
}

static const char *long_name(int code)
{
	size_t i = 0;
	while (long_options[i].name != NULL && long_options[i].val != code) {
		i++;
	}
	return long_options[i].name != NULL ? long_options[i].name : "";
}

int options_parse(int argc, char **argv, struct options *ret)
{
	*ret = (struct options){.timeout_ms = 5000};
	optind = 0; /* getopt starts anew: tests parse more than once */
	opterr = 0;
	int code;
	while ((code = getopt_long(argc, argv, ":hjafn:o:m:", long_options, NULL)) != -1) {
		if (code == '?' || code == ':') {
			fprintf(stderr,
				code == ':' ? "edgeprofctl: option '%s' requires an argument\n"
					    : "edgeprofctl: unknown option '%s'\n",
				argv[optind - 1]);
			return -EINVAL;
		}
		if (code == OPT_VERB + 23 && optarg == NULL && optind < argc &&
			argv[optind][0] != '\0' &&
			argv[optind][strspn(argv[optind], "0123456789")] == '\0') {
			optarg = argv[optind++]; /* --recent N as well as --recent=N */
		}
		if (set_option(ret, long_code(code), optarg) < 0) {
			fprintf(stderr, "edgeprofctl: invalid value '%s' for --%s\n",
				optarg == NULL ? "" : optarg, long_name(long_code(code)));
			return -EINVAL;
		}
	}
	ret->words = argv + optind;
	ret->word_count = argc - optind;
	return 0;
}

void options_usage(FILE *out)
{
	fputs("Options of every command:\n"
	      "  -j, --json[=pretty|short|off]  the daemon's answer as JSON (-j: one line)\n"
	      "      --no-pager                 never start a pager\n"
	      "      --color=auto|always|never  colours; NO_COLOR turns them off too\n"
	      "      --socket PATH              the daemon's socket\n"
	      "      --timeout 5s               how long to wait for an answer\n"
	      "  -h, --help                     this text, or the command's\n"
	      "      --version                  the version of edgeprofctl\n",
		out);
}

/* What options of verbs are called in the usage and what they do, by the number of their bit. */
#include "client/edgeprofctl/options.h"

#include <string.h>

static const struct {
	const char *name, *argument, *help;
} options[] = {
	{"--since", " TIME", "from this time on: 5min (ago), 14:30, '2026-01-31 14:30', @UNIX"},
	{"--until", " TIME", "up to this time; default: now"},
	{"--step", " SPAN", "one row for each SPAN, such as 10s or 1min; default: the finest"},
	{"--max-points", " N", "at most N rows in all"},
	{"--csv|--plot|--table", "", "comma-separated rows, a diagram, or one column per metric"},
	{"-a, --all", "", "everything, also what is usually not listed"},
	{"--check", "[=warning|critical]", "one line, exit status 1 while an alert is firing"},
	{"-f, --follow", "", "go on with what happens next; Ctrl-C ends"},
	{"-n, --lines", " N", "the last N entries"},
	{"--interval", " SPAN", "time between two updates, such as 500ms"},
	{"--count", " N", "stop after N updates"},
	{"--app", " APP", "of this app only"},
	{"--watch", " PID|PATTERN|UNIT",
		"also watch this process; PATTERN is compared with command lines"},
	{"--unwatch", " PID|PATTERN|UNIT", "end a watch that --watch began"},
	{"--name", " NAME", "name of the metrics: process/NAME/..."},
	{"--threads", "", "the five busiest threads of each process"},
	{"--tree", "", "nested stages under their parent"},
	{"--by", " category|unit", "sums by category or by compute unit"},
	{"--span", " recent|lifetime|TIME", "the recent window, or everything since the start"},
	{"--method", " linear|nearest", "how percentiles are taken from the recent window"},
	{"--throttle", " all|throttled|unthrottled", "only what ran while throttled, or while not"},
	{"--wide", "", "every statistic, a column each"},
	{"--slow", "", "single frames that took long, and where the time went"},
	{"--recent", " N", "the last N, newest first"},
	{"--frame", " N", "the frame that the value belongs to"},
	{"--unit", " UNIT", "the compute unit, such as gpu"},
	{"--time", " NAME", "run COMMAND and send how long it took as stage NAME"},
	{"-o, --output", " FILE", "write to FILE; - is standard output"},
	{"--format", " chrome|csv|json", "chrome opens in ui.perfetto.dev (default)"},
	{"--sensors", " GLOB", "also the metrics that match"},
	{"--around", " TIME", "what changed around a moment"},
	{"--boots", "", "the boots that history knows"},
	{"--host", " HOST", "the broker; default: that of the configuration"},
	{"--port", " N", "the broker's port"},
	{"--config", " FILE", "the configuration to take the broker from"},
	{"--key", " NAME", "the member of a payload that holds its capture time"},
	{"--publish", "", "send the messages to be measured, too"},
	{"-m, --note", " TEXT", "a note for others, shown with the alert"},
	{"--remove", "", "take it back"},
	{"--kind", " KIND", "alert, silenced, hold, mark, app, source, clock, daemon or throttle"},
	{"--level", " info|warning|critical", "of this severity or worse"},
	{"--aggregate", " mean|min|max|count", "which value of a row is shown"},
	{"--run", " 0|-1|-2", "the current or latest run (0), the one before it (-1), up to -7"},
	{"--all-runs", "", "all kept runs together"},
};

_Static_assert(OPTION_BIT(sizeof(options) / sizeof(options[0])) == OPTION_END, "a name for each");

/* Options that mean something of their own to one verb. */
static const struct {
	const char *verb;
	uint64_t option;
	const char *help;
} own[] = {
	{"alerts", OPTION_ALL, "also the alerts that are ok"},
	{"apps", OPTION_ALL, "also apps that ended over 10 s ago"},
	{"frames", OPTION_ALL, "also of apps that ended over 10 s ago"},
	{"sensors", OPTION_WIDE, "also the numbers of thermal zones"},
	{"stages", OPTION_ALL, "also of apps that ended over 10 s ago"},
	{"status", OPTION_ALL, "also apps that ended over 10 s ago"},
	{"watch", OPTION_ALL, "also apps that ended over 10 s ago"},
	{"alerts", OPTION_RECENT, "the last N changes of state (20), newest last"},
	{"emit", OPTION_APP, "the app that the value belongs to"},
	{"frames", OPTION_RECENT, "the last N frames that carry an id"},
	{"history", OPTION_SPAN, "with --around: the window with TIME in its middle, such as 5min"},
	{"history", OPTION_LINES, "with --around: the N metrics that changed most"},
	{"mark", OPTION_APP, "the app that the mark belongs to"},
	{"mqtt-latency", OPTION_INTERVAL, "with --publish: time between two messages"},
	{"mqtt-latency", OPTION_COUNT, "stop after N messages"},
	{"sensors", OPTION_ALL, "also what the daemon and its sources cost"},
	{"source", OPTION_INTERVAL, "how often the source is read"},
};

const char *options_name(uint64_t option)
{
	const char *name = options[__builtin_ctzll(option)].name;
	return name[1] == '-' ? name : name + 4; /* behind the short form */
}

const char *options_argument(uint64_t option)
{
	return options[__builtin_ctzll(option)].argument;
}

void options_explain(const char *verb, uint64_t option, FILE *out)
{
	size_t index = (size_t)__builtin_ctzll(option);
	const char *help = options[index].help, *name = options[index].name;
	char left[64];
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (own[i].option == option && strcmp(own[i].verb, verb) == 0) {
			help = own[i].help;
		}
	}
	snprintf(left, sizeof(left), "%s%s", name, options[index].argument);
	fprintf(out, "  %-30s%s%s\n", left,
		strlen(left) < 29 ? "" : "\n                                ", help);
}

/* What options of verbs are called in the usage, by the number of their bit. */
#include "client/edgeprofctl/options.h"

static const struct {
	const char *name, *argument;
} options[] = {
	{"--since", " TIME"},
	{"--until", " TIME"},
	{"--step", " SPAN"},
	{"--max-points", " N"},
	{"--csv|--plot|--table", ""},
	{"--all", ""},
	{"--check", "[=warning|critical]"},
	{"--follow", ""},
	{"--lines", " N"},
	{"--interval", " SPAN"},
	{"--count", " N"},
	{"--app", " APP"},
	{"--watch", " PID|PATTERN|UNIT"},
	{"--unwatch", " PID|PATTERN|UNIT"},
	{"--name", " NAME"},
	{"--threads", ""},
	{"--tree", ""},
	{"--by", " category|unit"},
	{"--span", " recent|lifetime|TIME"},
	{"--method", " linear|nearest"},
	{"--throttle", " all|throttled|unthrottled"},
	{"--wide", ""},
	{"--slow", ""},
	{"--recent", " N"},
	{"--frame", " N"},
	{"--unit", " UNIT"},
	{"--time", " NAME"},
	{"--output", " FILE"},
	{"--format", " chrome|csv|json"},
	{"--sensors", " GLOB"},
	{"--around", " TIME"},
	{"--boots", ""},
	{"--host", " HOST"},
	{"--port", " N"},
	{"--config", " FILE"},
	{"--key", " NAME"},
	{"--publish", ""},
	{"--note", " TEXT"},
	{"--remove", ""},
	{"--kind", " KIND"},
	{"--level", " info|warning|critical"},
	{"--aggregate", " mean|min|max|count"},
	{"--run", " 0|-1|-2…"},
	{"--all-runs", ""},
};

_Static_assert(OPTION_BIT(sizeof(options) / sizeof(options[0])) == OPTION_END, "a name for each");

const char *options_name(uint64_t option)
{
	return options[__builtin_ctzll(option)].name;
}

const char *options_argument(uint64_t option)
{
	return options[__builtin_ctzll(option)].argument;
}

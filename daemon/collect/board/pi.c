/* SPDX-License-Identifier: Apache-2.0 */
/* pi.c: reads what only the firmware of a Raspberry Pi knows: clock/<name> (Hz, measured),
 * voltage/<name>, memory_split/{arm,gpu}, the rails of a Pi 5's PMIC as power/<rail> (mW = V * A),
 * their sum as power/total, voltage/<rail> of a rail without a current, and temperature/firmware,
 * which is temperature/max where nothing else has that. Through the ioctl of vcgencmd, without
 * running it; read-only. Own key: vcgencmd = the program's absolute path, run for the temperature
 * if the device is absent. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <string.h>

#include "daemon/collect/board/pi_firmware.h"
#include "daemon/collect/board/pi_tool.h"
#include "daemon/collect/lib/naming.h"

enum { RAILS_MAX = 32 };

static const struct question {
	const char *command, *prefix, *name;
	enum unit unit;
	bool constant; /* asked once */
} questions[] = {
	{"measure_clock arm", "clock", "arm", UNIT_HERTZ, false},
	{"measure_clock core", "clock", "core", UNIT_HERTZ, false},
	{"measure_clock v3d", "clock", "v3d", UNIT_HERTZ, false},
	{"measure_clock isp", "clock", "isp", UNIT_HERTZ, false},
	{"measure_clock h264", "clock", "h264", UNIT_HERTZ, false},
	{"measure_volts core", "voltage", "core", UNIT_VOLTS, false},
	{"measure_volts sdram_c", "voltage", "sdram_c", UNIT_VOLTS, true},
	{"measure_volts sdram_i", "voltage", "sdram_i", UNIT_VOLTS, true},
	{"measure_volts sdram_p", "voltage", "sdram_p", UNIT_VOLTS, true},
	{"get_mem arm", "memory_split", "arm", UNIT_BYTES, true},
	{"get_mem gpu", "memory_split", "gpu", UNIT_BYTES, true},
};

enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

struct rail {
	char name[PROTO_NAME_SIZE];
	struct metric *metric;
	bool has_current;
	double amperes, volts; /* of the present sample; NAN = absent */
};

struct pi_state {
	struct pi_firmware firmware;
	struct pi_tool tool;
	bool answers[QUESTIONS]; /* this board does */
	struct metric *answer[QUESTIONS];
	double value[QUESTIONS];
	int result[QUESTIONS]; /* of the last reads */
	bool has_temperature;
	const char *temperature_origin; /* temperature's origin */
	struct metric *temperature;
	double celsius;
	int celsius_result;
	int rails_result;
	bool has_currents; /* of any rail */
	size_t rails;
	struct rail rail[RAILS_MAX];
	char text[PI_TEXT_MAX];
};

static const char *const pi_keys[] = {"vcgencmd", NULL};

static void pi_close(void *state)
{
	struct pi_state *pi = state;
	pi_firmware_close(&pi->firmware);
	pi_tool_close(&pi->tool);
}

static int ask(struct pi_state *pi, const char *command, double *ret)
{
	ssize_t n = pi_firmware_command(&pi->firmware, command, pi->text, sizeof(pi->text));
	return n < 0 ? (int)n : pi_parse_number(pi->text, ret);
}

static int ask_temperature(struct pi_state *pi, double *celsius)
{
	uint32_t values[2] = {0, 0};
	pi->temperature_origin = "firmware mailbox";
	if (pi_firmware_tag(&pi->firmware, PI_TAG_GET_TEMPERATURE, values, 2) == 0) {
		*celsius = (int32_t)values[1] / 1000.0;
		return 0;
	}
	pi->temperature_origin = "firmware command measure_temp";
	int r = ask(pi, "measure_temp", celsius);
	if (r < 0 && pi->tool.path[0] != '\0') {
		pi->temperature_origin = "vcgencmd measure_temp";
		r = pi_tool_ask(&pi->tool);
		r = r < 0 ? r : pi_parse_number(pi->tool.answer, celsius);
	}
	return r;
}

static struct rail *find_rail(struct pi_state *pi, const char *name)
{
	for (size_t i = 0; i < pi->rails; i++) {
		if (strcmp(pi->rail[i].name, name) == 0) {
			return &pi->rail[i];
		}
	}
	return NULL;
}

/* Currents and voltages of all rails; with `add` unknown rails get a slot. */
static int read_rails(struct pi_state *pi, bool add)
{
	struct pi_adc adc;
	const char *cursor = pi->text;
	for (size_t i = 0; i < pi->rails; i++) {
		pi->rail[i].amperes = pi->rail[i].volts = NAN;
	}
	ssize_t n = pi_firmware_command(&pi->firmware, "pmic_read_adc", pi->text, sizeof(pi->text));
	if (n < 0) {
		return (int)n;
	}
	while (pi_parse_adc(&cursor, &adc) == 0) {
		struct rail *rail = find_rail(pi, adc.rail);
		if (!rail && add && pi->rails < RAILS_MAX) {
			rail = &pi->rail[pi->rails++];
			memcpy(rail->name, adc.rail, sizeof(rail->name));
			rail->amperes = rail->volts = NAN;
		}
		if (rail && adc.quantity == 'A') {
			rail->amperes = adc.value;
			rail->has_current = pi->has_currents = true;
		} else if (rail) {
			rail->volts = adc.value;
		}
	}
	return 0;
}

static int add_rails(struct pi_state *pi, struct naming *naming)
{
	for (size_t i = 0; i < pi->rails; i++) {
		struct rail *rail = &pi->rail[i];
		bool power = rail->has_current;
		int r = naming_add(naming, power ? "power" : "voltage", rail->name,
			power ? UNIT_MILLIWATTS : UNIT_VOLTS, &rail->metric);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

/* Finds power/total. The PMIC's sum misses what it does not measure (USB ports, the 5 V pins): a
 * monitor on a HAT that the collector `power` finds provides the total instead, whichever of the
 * two opens first. */
static int find_total(const struct pi_state *pi, struct naming *naming, struct metric **ret)
{
	*ret = NULL;
	int r = pi->has_currents
			? naming_add_shared(naming, "power/total", UNIT_MILLIWATTS, true, ret)
			: 0;
	if (*ret) {
		(*ret)->origin = "sum of the PMIC's rails";
	}
	return r;
}

static int add_answers(struct pi_state *pi, struct naming *naming)
{
	for (size_t i = 0; i < QUESTIONS; i++) {
		int r = pi->answers[i] ? naming_add(naming, questions[i].prefix, questions[i].name,
						 questions[i].unit, &pi->answer[i])
				       : 0;
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

/* How much this board answers. */
static int probe_all(struct pi_state *pi)
{
	int found = 0;
	for (size_t i = 0; i < QUESTIONS; i++) {
		pi->answers[i] = ask(pi, questions[i].command, &pi->value[i]) == 0;
		found += pi->answers[i];
	}
	(void)read_rails(pi, true);
	int r = ask_temperature(pi, &pi->celsius);
	/* A program that can be run may answer later. */
	pi->has_temperature = r == 0 || pi_tool_check(&pi->tool) == 0;
	return found + (int)pi->rails + pi->has_temperature;
}

static int pi_probe(const struct collector_context *ctx, void *state)
{
	struct pi_state *pi = state;
	pi_tool_init(&pi->tool, source_option(ctx->options, pi_keys[0]), "measure_temp");
	int error = pi_firmware_open(&pi->firmware, ctx->root);
	int r = error < 0 && pi->tool.path[0] == '\0' ? error : probe_all(pi);
	if (r > 0) {
		return 0;
	}
	if (error == -ENOENT) {
		return collector_fail(
			ctx, error, "no /dev/vcio and no /dev/vcio_gencmd (Raspberry Pi firmware)");
	}
	return error < 0 ? collector_fail(ctx, error, "/dev/vcio: %s", errno_reason(error))
			 : collector_fail(ctx, -ENODATA, "the firmware answers no question");
}

static int pi_open(const struct collector_context *ctx, void *state)
{
	struct pi_state *pi = state;
	struct naming naming;
	struct metric *total;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = add_answers(pi, &naming);
	r = r < 0 ? r : add_rails(pi, &naming);
	r = r < 0 ? r : find_total(pi, &naming, &total);
	if (r == 0 && pi->has_temperature) {
		r = naming_add_exact(
			&naming, "temperature/firmware", UNIT_CELSIUS, &pi->temperature);
	}
	return naming_finish(&naming, r);
}

static int pi_fetch(const struct collector_context *ctx, void *state)
{
	struct pi_state *pi = state;
	(void)ctx;
	for (size_t i = 0; i < QUESTIONS; i++) {
		if (pi->answers[i] && !questions[i].constant) {
			pi->result[i] = ask(pi, questions[i].command, &pi->value[i]);
		}
	}
	pi->rails_result = pi->rails > 0 ? read_rails(pi, false) : 0;
	if (pi->has_temperature) {
		pi->celsius_result = ask_temperature(pi, &pi->celsius);
	}
	return 0;
}

static void sample_rails(const struct collector_context *ctx, struct pi_state *pi)
{
	struct naming naming;
	struct metric *total;
	int r = pi->rails_result;
	double sum = 0; /* NAN when one of it is */
	for (size_t i = 0; i < pi->rails; i++) {
		struct rail *rail = &pi->rail[i];
		double value = rail->has_current ? rail->volts * rail->amperes * 1000 : rail->volts;
		sum += rail->has_current ? value : 0;
		const char *unknown = isnan(value) ? "not reported" : NULL;
		metric_set_or_null(rail->metric, value, r < 0 ? errno_reason(r) : unknown);
	}
	naming_init(&naming, ctx->core->metrics, ctx->source);
	if (find_total(pi, &naming, &total) == 0) {
		const char *unknown = isnan(sum) ? "a rail of the sum is null" : NULL;
		metric_set_or_null(total, sum, r < 0 ? errno_reason(r) : unknown);
	}
}

static void set_temperature(const struct pi_state *pi, struct metric *metric)
{
	int r = pi->celsius_result;
	metric_set_or_null(metric, pi->celsius, r < 0 ? pi_tool_reason(r) : NULL);
	metric->origin = pi->temperature_origin;
}

/* The sensor is that of the zone: the hottest only where no zone, no chip and no tegrastats has
 * one, whichever opens first. */
static void set_max(const struct collector_context *ctx, const struct pi_state *pi)
{
	struct metric *max = metrics_find(ctx->core->metrics, "temperature/max");
	if (!max && metrics_add(ctx->core->metrics, ctx->source, "temperature/max", UNIT_CELSIUS,
			    &max) == 0) {
		max->yields = true;
	}
	if (max && max->source == ctx->source) {
		set_temperature(pi, max);
	}
}

static int pi_sample(const struct collector_context *ctx, void *state)
{
	struct pi_state *pi = state;
	for (size_t i = 0; i < QUESTIONS; i++) {
		int r = pi->result[i];
		metric_set_or_null(pi->answer[i], pi->value[i],
			r == 0		? NULL
			: r == -EBADMSG ? "malformed"
					: errno_reason(r));
	}
	sample_rails(ctx, pi);
	if (pi->temperature) {
		set_temperature(pi, pi->temperature);
		set_max(ctx, pi);
	}
	return 0;
}

const struct collector_ops collector_pi = {
	.name = "pi",
	.state_size = sizeof(struct pi_state),
	/* A question takes the firmware up to 3 ms, all rails 23 ms. */
	.interval_ns = UINT64_C(5000000000),
	.config_keys = pi_keys,
	.refuse = pi_tool_refuse,
	.probe = pi_probe,
	.open = pi_open,
	.fetch = pi_fetch,
	.sample = pi_sample,
	.close = pi_close,
};

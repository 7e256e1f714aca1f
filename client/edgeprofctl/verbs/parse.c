/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c: parses what a tool of the vendor printed as the daemon does, without a daemon. It is how
 * a person shows us a format that we don't know: the words that were not understood are listed.
 * Every key is in the output, in the order of the line's own words as far as it has one. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/tegrastats/tegrastats.h"

static double number(int64_t value)
{
	return value == TEGRASTATS_NONE ? NAN : (double)value;
}

/* An object, or null when the line has nothing of it. */
static cJSON *add_part(cJSON *object, const char *name, bool present)
{
	if (!present) {
		cJSON_AddNullToObject(object, name);
		return NULL;
	}
	return cJSON_AddObjectToObject(object, name);
}

static void add_memory(cJSON *root, const struct tegrastats *stats)
{
	json_add_number(root, "ram_used_mb", number(stats->ram_used_mb));
	json_add_number(root, "ram_total_mb", number(stats->ram_total_mb));
	cJSON *lfb = add_part(root, "lfb", stats->lfb_blocks != TEGRASTATS_NONE);
	if (lfb) {
		json_add_number(lfb, "blocks", number(stats->lfb_blocks));
		json_add_number(lfb, "block_mb", number(stats->lfb_block_kb) / 1024);
		json_add_number(lfb, "block_kb", number(stats->lfb_block_kb));
	}
	json_add_number(root, "swap_used_mb", number(stats->swap_used_mb));
	json_add_number(root, "swap_total_mb", number(stats->swap_total_mb));
	json_add_number(root, "swap_cached_mb", number(stats->swap_cached_mb));
	cJSON *iram = add_part(root, "iram", stats->iram_total_kb != TEGRASTATS_NONE);
	if (iram) {
		json_add_number(iram, "used_kb", number(stats->iram_used_kb));
		json_add_number(iram, "total_kb", number(stats->iram_total_kb));
		json_add_number(iram, "lfb_kb", number(stats->iram_lfb_kb));
	}
}

static void add_cpus(cJSON *root, const struct tegrastats *stats)
{
	cJSON *cpus = cJSON_AddArrayToObject(root, "cpus");
	for (size_t i = 0; i < stats->cpus; i++) {
		cJSON *cpu = cJSON_CreateObject();
		cJSON_AddBoolToObject(cpu, "online", stats->cpu[i].online);
		json_add_number(cpu, "load_pct", number(stats->cpu[i].load_percent));
		json_add_number(cpu, "freq_mhz", number(stats->cpu[i].freq_mhz));
		cJSON_AddItemToArray(cpus, cpu);
	}
}

static void add_gpu(cJSON *root, const char *name, const struct tegrastats_load *load)
{
	cJSON *gpu = add_part(root, name, load->present);
	if (!gpu) {
		return;
	}
	json_add_number(gpu, "load_pct", number(load->load_percent));
	cJSON *freqs = cJSON_AddArrayToObject(gpu, "freqs_mhz");
	for (size_t i = 0; i < load->freqs; i++) {
		cJSON_AddItemToArray(freqs, cJSON_CreateNumber((double)load->freq_mhz[i]));
	}
}

static void add_engines(cJSON *root, const struct tegrastats *stats)
{
	cJSON *engines = cJSON_AddObjectToObject(root, "engines");
	for (size_t i = 0; i < stats->engines; i++) {
		cJSON *engine = cJSON_AddObjectToObject(engines, stats->engine[i].name);
		cJSON_AddStringToObject(engine, "state", stats->engine[i].on ? "on" : "off");
		json_add_number(engine, "load_pct", number(stats->engine[i].load_percent));
		json_add_number(engine, "freq_mhz", number(stats->engine[i].freq_mhz));
	}
}

static void add_clocks(cJSON *root, const struct tegrastats *stats)
{
	cJSON *emc = add_part(root, "emc", stats->emc.present);
	if (emc) {
		json_add_number(emc, "load_pct", number(stats->emc.load_percent));
		json_add_number(emc, "freq_mhz", number(tegrastats_fastest_mhz(&stats->emc)));
	}
	add_gpu(root, "gpu", &stats->gpu);
	add_gpu(root, "gpu2", &stats->gpu2);
	add_engines(root, stats);
	cJSON *mts = add_part(root, "mts", stats->has_mts);
	if (mts) {
		json_add_number(mts, "fg_pct", number(stats->mts_fg_percent));
		json_add_number(mts, "bg_pct", number(stats->mts_bg_percent));
	}
	json_add_number(root, "edp_limit_mhz", number(stats->edp_limit_mhz));
}

static void add_temps(cJSON *root, const struct tegrastats *stats)
{
	cJSON *temps = cJSON_AddObjectToObject(root, "temps_c");
	cJSON *peaks = cJSON_AddObjectToObject(root, "temps_peak_c");
	cJSON *offline = cJSON_AddArrayToObject(root, "temps_offline");
	for (size_t i = 0; i < stats->temps; i++) {
		const struct tegrastats_temp *temp = &stats->temp[i];
		json_add_number(temps, temp->name, temp->told_celsius);
		if (!isnan(temp->peak_celsius)) {
			json_add_number(peaks, temp->name, temp->peak_celsius);
		}
		if (isnan(temp->celsius)) {
			cJSON_AddItemToArray(offline, cJSON_CreateString(temp->name));
		}
	}
}

static void add_power(cJSON *root, const struct tegrastats *stats)
{
	cJSON *rails = cJSON_AddObjectToObject(root, "power_mw");
	for (size_t i = 0; i < stats->rails; i++) {
		cJSON *rail = cJSON_AddObjectToObject(rails, stats->rail[i].name);
		json_add_number(rail, "now", number(stats->rail[i].now_mw));
		json_add_number(rail, "avg", number(stats->rail[i].average_mw));
		if (stats->rail[i].peak_mw != TEGRASTATS_NONE) {
			json_add_number(rail, "peak", number(stats->rail[i].peak_mw));
		}
	}
}

static cJSON *tegrastats_json(const struct tegrastats *stats)
{
	cJSON *root = cJSON_CreateObject();
	if (stats->timestamp[0] == '\0') {
		cJSON_AddNullToObject(root, "timestamp");
	} else {
		cJSON_AddStringToObject(root, "timestamp", stats->timestamp);
	}
	add_memory(root, stats);
	add_cpus(root, stats);
	add_clocks(root, stats);
	add_temps(root, stats);
	add_power(root, stats);
	cJSON *unknown = cJSON_AddArrayToObject(root, "unknown");
	for (size_t i = 0; i < stats->unknown && i < TEGRASTATS_UNKNOWN; i++) {
		cJSON_AddItemToArray(unknown, cJSON_CreateString(stats->unknown_word[i]));
	}
	return root;
}

struct input {
	int fd;
	bool cut; /* the rest of a line that was too long is still to come */
	size_t used;
	char bytes[TEGRASTATS_LINE];
};

static int show_line(struct ctl *ctl, const char *line, size_t length)
{
	struct tegrastats stats;
	if (tegrastats_parse(line, length, &stats) < 0 && stats.unknown == 0) {
		return CTL_FINE; /* an empty line */
	}
	cJSON *object = tegrastats_json(&stats);
	if (!object) {
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	json_write(ctl->output.stream, object, ctl->options.json == JSON_PRETTY);
	cJSON_Delete(object);
	return CTL_FINE;
}

/* The complete lines that were read; what is left moves to the front. */
static int show_lines(struct ctl *ctl, struct input *input)
{
	char *at = input->bytes, *end = input->bytes + input->used, *newline;
	int status = CTL_FINE;
	while (status == CTL_FINE && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		if (!input->cut) {
			status = show_line(ctl, at, (size_t)(newline - at));
		}
		input->cut = false;
		at = newline + 1;
	}
	input->used = (size_t)(end - at);
	memmove(input->bytes, at, input->used);
	if (status == CTL_FINE && input->used == sizeof(input->bytes)) {
		if (!input->cut) {
			status = show_line(ctl, input->bytes, input->used);
		}
		input->cut = true;
		input->used = 0;
	}
	return status;
}

/* Lines are shown as they come: `tegrastats | edgeprofctl parse tegrastats` never ends. */
static int show_input(struct ctl *ctl, struct input *input, const char *name)
{
	int status = CTL_FINE;
	while (status == CTL_FINE) {
		ssize_t got = read(
			input->fd, input->bytes + input->used, sizeof(input->bytes) - input->used);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return ctl_fail(
				ctl, CTL_NO_INPUT, "cannot read %s: %s", name, strerror(errno));
		}
		if (got == 0) {
			return input->used == 0 || input->cut
				       ? CTL_FINE
				       : show_line(ctl, input->bytes, input->used);
		}
		input->used += (size_t)got;
		status = show_lines(ctl, input);
		if (status == CTL_FINE && !ctl_flush(ctl, &status)) {
			return status;
		}
	}
	return status;
}

static int run(struct ctl *ctl)
{
	const char *name = ctl->word_count > 1 ? ctl->words[1] : "-";
	int local = ctl_check_local(ctl);
	if (local != CTL_FINE) {
		return local;
	}
	if (strcmp(ctl->words[0], "tegrastats") != 0) {
		return ctl_fail(ctl, CTL_USAGE, "unknown format '%s'; tegrastats is the only one",
			ctl->words[0]);
	}
	ctl->output.style = NULL; /* an object a line */
	struct input *input = ctl_memory(1, sizeof(*input));
	bool is_stdin = strcmp(name, "-") == 0;
	input->fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	int status = input->fd < 0 ? ctl_fail(ctl, CTL_NO_INPUT, "cannot open %s: %s", name,
					     strerror(errno))
				   : show_input(ctl, input, is_stdin ? "the input" : name);
	if (!is_stdin && input->fd >= 0) {
		close(input->fd);
	}
	free(input);
	return status;
}

const struct verb verb_parse = {"parse", "tegrastats [FILE]",
	"Print lines of tegrastats as JSON; needs no daemon.", "parse tegrastats log.txt", NULL,
	run};

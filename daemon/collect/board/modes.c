/* SPDX-License-Identifier: Apache-2.0 */
/* modes.c: reads how the board is set, for GetStatus: nvpmodel's power mode
 * (var/lib/nvpmodel/status, its name from etc/nvpmodel.conf), governors, whether jetson_clocks
 * pinned the clocks (the lowest and the highest allowed clock are the same everywhere), and how far
 * the highest allowed clock is below what the hardware can do (cpuinfo_max_freq,
 * available_frequencies). Has no metrics; a change is an entry of the timeline: services reset
 * these silently. No own keys. */
#include "daemon/collect/board/modes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/sched/registry.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/timeline/timeline.h"
#include "proto/text.h"

enum { MODE_MAX = 9999, DOMAINS_MAX = 64, CONF_SIZE = 64 * 1024, TEXT_SIZE = 256 };

#define STATUS "var/lib/nvpmodel/status"
#define CONF "etc/nvpmodel.conf"
#define CPUFREQ "sys/devices/system/cpu/cpufreq"
#define DEVFREQ "sys/class/devfreq"

/* A clock with limits: a policy of cores, or the GPU. */
struct domain {
	bool gpu;
	char files[DEVICE_FILE_PATH]; /* its folder, and what their names begin with */
	char governor_text[64];	      /* of the last read; "" = cannot be read */
	bool limits;		      /* min and max were read */
	long long min_khz, max_khz;
	uint64_t highest_khz; /* of the hardware, found by the probe; 0 = not known */
};

struct modes_state {
	bool jetson;
	size_t domains;
	struct domain domain[DOMAINS_MAX];
	bool sampled;
	char status_text[TEXT_SIZE]; /* of the last read; "" = cannot be read */
	char conf[CONF_SIZE];
};

int modes_parse_status(const char *text)
{
	const char *p = kernel_line(text, "pmode:");
	uint64_t id;
	if (!p || !kernel_u64(&p, &id) || id > MODE_MAX || p[strspn(p, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	return (int)id;
}

/* The value behind KEY= within one line; its length, 0 when there is none. */
static size_t value_of(const char *line, size_t length, const char *key, const char **ret)
{
	const char *at = memmem(line, length, key, strlen(key));
	if (!at) {
		return 0;
	}
	at += strlen(key);
	size_t left = length - (size_t)(at - line), n = 0;
	while (n < left && !strchr(" \t\r>", at[n])) {
		n++;
	}
	*ret = at;
	return n;
}

int modes_find_name(const char *conf, int id, char *name, size_t size)
{
	const char *line = conf;
	while (line) {
		line += strspn(line, "\n");
		size_t length = strcspn(line, "\n");
		const char *text, *number;
		bool model = *line != '#' && memmem(line, length, "POWER_MODEL", 11) != NULL;
		if (model && value_of(line, length, " ID=", &number) > 0) {
			uint64_t value;
			size_t n = value_of(line, length, " NAME=", &text);
			if (kernel_u64(&number, &value) && value == (uint64_t)id && n > 0) {
				snprintf(name, size, "%.*s", n < size ? (int)n : (int)size - 1,
					text);
				return 0;
			}
		}
		line = strchr(line, '\n');
	}
	return -ENOENT;
}

void modes_add_word(char *list, size_t size, const char *word)
{
	size_t length = strlen(word), used = strlen(list);
	for (const char *at = list; length > 0 && *at;) {
		size_t n = strcspn(at, ",");
		if (n == length && memcmp(at, word, n) == 0) {
			return;
		}
		at += n + (at[n] == ',');
	}
	if (length == 0 || used + length + 2 > size) {
		return;
	}
	struct text text = {.data = list, .size = size, .length = used};
	text_join(&text, ",", "%s", word);
}

double modes_budget_mw(const char *name)
{
	for (const char *at = name; *at; at++) {
		const size_t digits = strspn(at, "0123456789");
		if (digits == 0) {
			continue;
		}
		const char *end = at + digits;
		if (digits <= 4 && end[0] == 'W' && (end[1] == '\0' || end[1] == '_')) {
			return strtod(at, NULL) * 1000;
		}
		at = end - 1;
	}
	return 0;
}

/* The clock that the hardware can reach, in the unit of max_freq; 0 = not known. */
static uint64_t highest_of(const struct root *root, const char *folder, bool gpu)
{
	char text[2048];
	uint64_t value, highest = 0;
	device_text(root, text, sizeof(text), "%s/%s", folder,
		gpu ? "available_frequencies" : "cpuinfo_max_freq");
	for (const char *p = text; kernel_u64(&p, &value);) {
		highest = value > highest ? value : highest;
	}
	return highest;
}

/* Read every few seconds: a descriptor for each file would be kept for nothing. */
static void add_domain(
	struct modes_state *modes, const struct root *root, const char *folder, const char *prefix)
{
	struct domain *domain = &modes->domain[modes->domains];
	if (modes->domains == DOMAINS_MAX) {
		return;
	}
	snprintf(domain->files, sizeof(domain->files), "%s/%s", folder, prefix);
	domain->gpu = prefix[0] == '\0';
	domain->highest_khz = highest_of(root, folder, domain->gpu);
	modes->domains += device_text(root, domain->governor_text, sizeof(domain->governor_text),
		"%sgovernor", domain->files);
}

static void add_policy(void *ctx, const struct root *root, const char *path, const char *name)
{
	(void)name;
	add_domain(ctx, root, path, "scaling_");
}

/* Tegra's GPUs: 57000000.gpu, 17000000.gv11b, gpu-gpc-0 */
static void add_gpu(void *ctx, const struct root *root, const char *path, const char *name)
{
	if (device_matches("*.gpu* *gpu-gpc* *.g?1[01]b*", name)) {
		add_domain(ctx, root, path, "");
	}
}

static int modes_probe(const struct collector_context *ctx, void *state)
{
	struct modes_state *modes = state;
	char text[256];
	int r = device_each(ctx->root, CPUFREQ, "policy", add_policy, modes);
	r = r == -ENOMEM ? r : device_each(ctx->root, DEVFREQ, "", add_gpu, modes);
	bool nvpmodel = root_read(ctx->root, STATUS, text, sizeof(text)) > 0;
	modes->jetson =
		nvpmodel || root_read(ctx->root, "etc/nv_tegra_release", text, sizeof(text)) > 0;
	if (r == -ENOMEM || nvpmodel || modes->domains > 0) {
		return r == -ENOMEM ? r : 0;
	}
	return collector_fail(ctx, -ENOENT, "no governor in /" CPUFREQ ", no /" STATUS);
}

static int modes_open(const struct collector_context *ctx, void *state)
{
	(void)state;
	return ctx->core->modes ? 0 : -ENOENT;
}

static int modes_fetch(const struct collector_context *ctx, void *state)
{
	struct modes_state *modes = state;
	const struct root *root = ctx->root;
	if (root_read(root, STATUS, modes->status_text, sizeof(modes->status_text)) < 0) {
		modes->status_text[0] = '\0';
	}
	if (modes->status_text[0] == '\0' ||
		root_read(root, CONF, modes->conf, sizeof(modes->conf)) < 0) {
		modes->conf[0] = '\0';
	}
	for (size_t i = 0; i < modes->domains; i++) {
		struct domain *domain = &modes->domain[i];
		(void)device_text(root, domain->governor_text, sizeof(domain->governor_text),
			"%sgovernor", domain->files);
		domain->limits =
			device_number(root, &domain->min_khz, "%smin_freq", domain->files) == 0 &&
			device_number(root, &domain->max_khz, "%smax_freq", domain->files) == 0;
	}
	return 0;
}

static void set_power_mode(const struct modes_state *state, struct modes *modes)
{
	int id = modes_parse_status(state->status_text);
	modes->have_power_mode = id >= 0;
	modes->power_mode_name[0] = '\0';
	if (id >= 0) {
		modes->power_mode = id;
		(void)modes_find_name(
			state->conf, id, modes->power_mode_name, sizeof(modes->power_mode_name));
	}
}

static void set_domains(const struct modes_state *state, struct modes *modes)
{
	size_t pinned = 0, known = 0;
	modes->governor[0] = modes->gpu_governor[0] = '\0';
	for (size_t i = 0; i < state->domains; i++) {
		const struct domain *domain = &state->domain[i];
		char word[sizeof(domain->governor_text)];
		size_t length = strcspn(domain->governor_text, " \r\n");
		memcpy(word, domain->governor_text, length);
		word[length] = '\0';
		modes_add_word(domain->gpu ? modes->gpu_governor : modes->governor,
			sizeof(modes->governor), word);
		known += domain->limits;
		pinned += domain->limits && domain->min_khz == domain->max_khz;
	}
	modes->clocks = CLOCKS_UNKNOWN;
	if (state->jetson && known > 0) {
		modes->clocks = pinned == known ? CLOCKS_PINNED : CLOCKS_FREE;
	}
}

static void set_limits(const struct modes_state *state, struct modes *modes, uint64_t now_ns)
{
	modes->frequency_limit = modes->gpu_frequency_limit = NAN;
	modes->limit_ns = now_ns;
	for (size_t i = 0; i < state->domains; i++) {
		const struct domain *domain = &state->domain[i];
		if (domain->limits && domain->max_khz > 0 && domain->highest_khz > 0) {
			double *limit =
				domain->gpu ? &modes->gpu_frequency_limit : &modes->frequency_limit;
			double share = (double)domain->max_khz / (double)domain->highest_khz;
			*limit = fmin(*limit, fmin(share, 1)); /* of NAN and a number the number */
		}
	}
}

static void report_changes(
	const struct collector_context *ctx, const struct modes *before, uint64_t now_ns)
{
	const struct modes *now = ctx->core->modes;
	struct timeline *timeline = ctx->core->timeline;
	if (now->have_power_mode && before->have_power_mode &&
		now->power_mode != before->power_mode) {
		timeline_add(timeline, now_ns, TIMELINE_SOURCE, TIMELINE_INFO, ctx->source->name,
			"power mode changed to %d (%s) from %d (%s)", now->power_mode,
			now->power_mode_name, before->power_mode, before->power_mode_name);
	}
	if (strcmp(now->governor, before->governor) != 0) {
		timeline_add(timeline, now_ns, TIMELINE_SOURCE, TIMELINE_INFO, ctx->source->name,
			"cpufreq governor changed to %s from %s", now->governor, before->governor);
	}
	if (now->clocks != before->clocks) {
		timeline_add(timeline, now_ns, TIMELINE_SOURCE, TIMELINE_INFO, ctx->source->name,
			"clocks are %s",
			now->clocks == CLOCKS_PINNED ? "pinned" : "no longer pinned");
	}
}

static int modes_sample(const struct collector_context *ctx, void *state)
{
	struct modes_state *own = state;
	struct modes *modes = ctx->core->modes;
	const struct modes before = *modes;
	set_power_mode(own, modes);
	set_domains(own, modes);
	const struct throttle_status *throttle = ctx->core->throttle;
	if (!throttle || throttle->flag[THROTTLE_ACTIVE].value != THROTTLE_YES) {
		set_limits(own, modes, ctx->now_ns);
	}
	if (own->sampled) {
		report_changes(ctx, &before, ctx->now_ns);
	}
	own->sampled = true;
	return 0;
}

const struct collector_ops collector_modes = {
	.name = "modes",
	.state_size = sizeof(struct modes_state),
	.interval_ns = UINT64_C(10000000000),
	.probe = modes_probe,
	.open = modes_open,
	.fetch = modes_fetch,
	.sample = modes_sample,
};

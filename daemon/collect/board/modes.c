/* How the board is set, read-only, for GetStatus: nvpmodel's power mode (var/lib/nvpmodel/status,
 * its name from etc/nvpmodel.conf), governors, and whether jetson_clocks pinned the clocks (the
 * lowest and the highest allowed clock are the same everywhere). Has no metrics; a change is told
 * on the timeline: services reset these silently. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/board/modes_text.h"
#include "daemon/collect/lib/device_file.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/sysops.h"

enum { DOMAINS_MAX = 64, ENTRIES_MAX = 512, CONF_SIZE = 64 * 1024, TEXT_SIZE = 256 };

#define STATUS "var/lib/nvpmodel/status"
#define CONF "etc/nvpmodel.conf"
#define CPUFREQ "sys/devices/system/cpu/cpufreq"
#define DEVFREQ "sys/class/devfreq"

/* A clock with limits: a policy of cores, or the GPU. */
struct domain {
	bool gpu;
	struct device_file governor, min, max;
	char governor_text[64]; /* of the last read; "" = cannot be read */
	bool limits;		/* min and max were read */
	long long min_khz, max_khz;
};

struct modes_state {
	bool jetson;
	size_t domains;
	struct domain domain[DOMAINS_MAX];
	struct device_file status;
	bool told;
	char status_text[TEXT_SIZE]; /* of the last read; "" = cannot be read */
	char conf[CONF_SIZE];
};

static void modes_close(void *state)
{
	struct modes_state *modes = state;
	for (size_t i = 0; modes && i < modes->domains; i++) {
		device_file_close(&modes->domain[i].governor);
		device_file_close(&modes->domain[i].min);
		device_file_close(&modes->domain[i].max);
	}
	free(modes);
}

static void add_domain(
	struct modes_state *modes, const struct root *root, const char *folder, const char *prefix)
{
	struct domain *domain = &modes->domain[modes->domains];
	char text[64];
	bool gpu = prefix[0] == '\0';
	if (modes->domains == DOMAINS_MAX) {
		return;
	}
	/* Read every few seconds: a descriptor each would be kept for nothing. */
	int r = device_file_init(&domain->governor, false, "%s/%sgovernor", folder, prefix);
	(void)device_file_init(&domain->min, false, "%s/%smin_freq", folder, prefix);
	(void)device_file_init(&domain->max, false, "%s/%smax_freq", folder, prefix);
	domain->gpu = gpu;
	if (r == 0 && device_file_read(&domain->governor, root, text, sizeof(text)) > 0) {
		modes->domains++;
	}
}

static void find_domains(
	struct modes_state *modes, const struct root *root, struct root_name *names)
{
	char folder[128];
	int n = root_list(root, CPUFREQ, names, ENTRIES_MAX);
	for (int i = 0; i < n; i++) {
		if (strncmp(names[i].text, "policy", 6) == 0) {
			snprintf(folder, sizeof(folder), CPUFREQ "/%.63s", names[i].text);
			add_domain(modes, root, folder, "scaling_");
		}
	}
	n = root_list(root, DEVFREQ, names, ENTRIES_MAX);
	for (int i = 0; i < n; i++) {
		/* Tegra's GPUs: 57000000.gpu, 17000000.gv11b, gpu-gpc-0 */
		const char *name = names[i].text;
		if (strstr(name, ".gpu") || strstr(name, "gpu-gpc") || strstr(name, ".gv11b") ||
			strstr(name, ".ga10b") || strstr(name, ".gp10b")) {
			snprintf(folder, sizeof(folder), DEVFREQ "/%.63s", name);
			add_domain(modes, root, folder, "");
		}
	}
}

static int modes_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct modes_state *modes = mem_zalloc(sizeof(*modes));
	struct root_name *names = mem_calloc(ENTRIES_MAX, sizeof(*names));
	char text[256];
	int r = -ENOMEM;
	if (!modes || !names) {
		goto error;
	}
	device_file_init(&modes->status, false, STATUS);
	find_domains(modes, ctx->root, names);
	bool nvpmodel = device_file_read(&modes->status, ctx->root, text, sizeof(text)) > 0;
	modes->jetson =
		nvpmodel || root_read(ctx->root, "etc/nv_tegra_release", text, sizeof(text)) > 0;
	if (!nvpmodel && modes->domains == 0) {
		snprintf(reason, SOURCE_REASON_SIZE, "no governor in /" CPUFREQ ", no /" STATUS);
		r = -ENOENT;
		goto error;
	}
	free(names);
	*state = modes;
	return 0;
error:
	free(names);
	modes_close(modes);
	return r;
}

static int modes_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)state;
	(void)reason;
	return ctx->core->modes ? 0 : -ENOENT;
}

static void fetch_text(struct device_file *file, const struct root *root, char *text, size_t size)
{
	if (device_file_read(file, root, text, size) <= 0) {
		text[0] = '\0';
	}
}

static int modes_fetch(const struct collector_context *ctx, void *state)
{
	struct modes_state *modes = state;
	const struct root *root = ctx->root;
	fetch_text(&modes->status, root, modes->status_text, sizeof(modes->status_text));
	if (modes->status_text[0] == '\0' ||
		root_read(root, CONF, modes->conf, sizeof(modes->conf)) < 0) {
		modes->conf[0] = '\0';
	}
	for (size_t i = 0; i < modes->domains; i++) {
		struct domain *domain = &modes->domain[i];
		fetch_text(&domain->governor, root, domain->governor_text,
			sizeof(domain->governor_text));
		domain->limits = device_file_read_i64(&domain->min, root, &domain->min_khz) == 0 &&
				 device_file_read_i64(&domain->max, root, &domain->max_khz) == 0;
	}
	return 0;
}

static void judge_power_mode(const struct modes_state *state, struct modes *modes)
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

static void judge_domains(const struct modes_state *state, struct modes *modes)
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

static void tell(const struct collector_context *ctx, const struct modes *before, uint64_t now_ns)
{
	const struct modes *now = ctx->core->modes;
	struct timeline *timeline = ctx->core->timeline;
	if (now->have_power_mode && before->have_power_mode &&
		now->power_mode != before->power_mode) {
		timeline_add(timeline, now_ns, TIMELINE_SOURCE, TIMELINE_INFO, ctx->source->name,
			"power mode %d %s, was %d %s", now->power_mode, now->power_mode_name,
			before->power_mode, before->power_mode_name);
	}
	if (strcmp(now->governor, before->governor) != 0) {
		timeline_add(timeline, now_ns, TIMELINE_SOURCE, TIMELINE_INFO, ctx->source->name,
			"governor %s, was %s", now->governor, before->governor);
	}
	if (now->clocks != before->clocks) {
		timeline_add(timeline, now_ns, TIMELINE_SOURCE, TIMELINE_INFO, ctx->source->name,
			"clocks %s", now->clocks == CLOCKS_PINNED ? "pinned" : "free");
	}
}

static int modes_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct modes_state *own = state;
	struct modes *modes = ctx->core->modes;
	const struct modes before = *modes;
	judge_power_mode(own, modes);
	judge_domains(own, modes);
	if (own->told) {
		tell(ctx, &before, now_ns);
	}
	own->told = true;
	return 0;
}

const struct collector_ops collector_modes = {
	.name = "modes",
	.interval_ns = UINT64_C(10000000000),
	.probe = modes_probe,
	.open = modes_open,
	.fetch = modes_fetch,
	.sample = modes_sample,
	.close = modes_close,
};

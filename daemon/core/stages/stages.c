/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c: accumulates the numbers of one stage. app_stages.c turns records into the calls here;
 * the sample tick and queries read the recent window and the histograms through stats.c.
 */
#include "daemon/core/stages/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "proto/fnv.h"

size_t stage_bytes(size_t window)
{
	return sizeof(struct stage) + window * sizeof(uint64_t) + PROTO_HISTOGRAM_BYTES;
}

/* Zeroed memory, reserved with what it may grow to, within the stage's budget. NULL: over the
 * budget, or no memory. */
static void *budget_alloc(struct stage *stage, size_t size, size_t reserved)
{
	struct stage_budget *budget = stage->budget;
	if (budget && budget->limit > 0 && budget->used + reserved > budget->limit) {
		budget->refused++;
		return NULL;
	}
	void *memory = mem_zalloc(size);
	if (memory && budget) {
		budget->used += reserved;
	}
	return memory;
}

/* What it has beyond stage_bytes. */
static size_t extra_bytes(const struct stage *stage)
{
	return (stage->cpu ? stage->window * sizeof(*stage->cpu) : 0) +
	       (stage->throttled ? PROTO_HISTOGRAM_BYTES : 0) +
	       (stage->open ? sizeof(*stage->open) : 0);
}

int stage_create(const char *name, size_t window, struct stage **ret)
{
	struct stage *stage = mem_zalloc(sizeof(*stage));
	if (!stage) {
		return -ENOMEM;
	}
	size_t first = STAGE_CAPACITY + fnv64_text(FNV64_BASIS, name) % STAGE_CAPACITY;
	stage->capacity = window < first ? window : first;
	stage->runs = mem_calloc(stage->capacity, sizeof(*stage->runs));
	stage->all = mem_zalloc(sizeof(*stage->all));
	if (!stage->runs || !stage->all) {
		stage_destroy(stage);
		return -ENOMEM;
	}
	proto_histogram_init(stage->all, mem_calloc);
	proto_name_clean(name, strlen(name), stage->name);
	memcpy(stage->base, stage->name, sizeof(stage->base));
	stage->window = window;
	stage->min_ns = UINT64_MAX;
	stage->last_frame = PROTO_NO_FRAME;
	stage->settings.rss_growth_limit = STAGE_RSS_GROWTH_LIMIT;
	*ret = stage;
	return 0;
}

void stage_destroy(struct stage *stage)
{
	if (!stage) {
		return;
	}
	if (stage->budget) {
		stage->budget->used -= stage_bytes(stage->window) + extra_bytes(stage);
	}
	free(stage->runs);
	free(stage->attributes);
	free(stage->cpu);
	proto_histogram_finish(stage->all);
	free(stage->all);
	proto_histogram_finish(stage->throttled);
	free(stage->throttled);
	free(stage->open);
	free(stage);
}

void stage_set_budget(struct stage *stage, struct stage_budget *budget)
{
	stage->budget = budget;
	budget->used += stage_bytes(stage->window) + extra_bytes(stage);
}

/* Another capacity for the window, of which nothing but its first words is in use. False: memory
 * is short, it stays as it is. */
static bool resize(struct stage *stage, size_t capacity)
{
	const size_t kept = capacity < stage->capacity ? capacity : stage->capacity;
	uint64_t *runs = mem_calloc(capacity, sizeof(*runs));
	struct stage_cpu *cpu = stage->cpu ? mem_calloc(capacity, sizeof(*cpu)) : NULL;
	if (!runs || (stage->cpu && !cpu)) {
		free(runs);
		free(cpu);
		return false;
	}
	memcpy(runs, stage->runs, kept * sizeof(*runs));
	free(stage->runs);
	stage->runs = runs;
	if (cpu) {
		memset(cpu, 0xff, capacity * sizeof(*cpu));
		memcpy(cpu, stage->cpu, kept * sizeof(*cpu));
		free(stage->cpu);
		stage->cpu = cpu;
	}
	stage->capacity = capacity;
	return true;
}

void stage_came_round(struct stage *stage)
{
	stage_fold(stage); /* while its words are next to each other */
	if (stage->capacity < stage->window) {
		size_t doubled = 2 * stage->capacity;
		if (resize(stage, doubled < stage->window ? doubled : stage->window)) {
			return;
		}
	}
	stage->next = 0;
}

size_t stage_freeze(struct stage *stage)
{
	size_t filled = stage->filled > 0 ? stage->filled : 1;
	if (stage->budget) {
		stage->budget->used -= stage_bytes(stage->window) + extra_bytes(stage);
		stage->budget = NULL;
	}
	free(stage->open);
	stage->open = NULL;
	if (filled < stage->capacity) { /* it never came round: what it holds is in front */
		resize(stage, filled);
	}
	stage->window = filled;
	return sizeof(*stage) + stage->capacity * sizeof(*stage->runs) +
	       (stage->cpu ? stage->capacity * sizeof(*stage->cpu) : 0) +
	       proto_histogram_bytes(stage->all) +
	       (stage->throttled ? proto_histogram_bytes(stage->throttled) : 0) +
	       (stage->attributes ? sizeof(struct app_attributes) : 0);
}

void stage_warm_up(struct stage *stage)
{
	stage->warmup_left = stage->settings.warmup;
}

void stage_configure(struct stage *stage, const struct stage_settings *settings)
{
	bool counted = stage->count > 0 || stage->warmup_skipped > 0;
	bool had_deadline = stage->settings.deadline_ns > 0;
	stage->settings = *settings;
	if (settings->rss_growth_limit == 0) {
		stage->settings.rss_growth_limit = STAGE_RSS_GROWTH_LIMIT;
	}
	if (settings->category[0]) {
		memcpy(stage->category, settings->category, sizeof(stage->category));
	}
	if (settings->deadline_ns > 0 || had_deadline) {
		stage->deadline_ns =
			settings->deadline_ns ? settings->deadline_ns : stage->declared_ns;
		stage->consecutive_misses = 0;
	}
	if (!counted) {
		stage_warm_up(stage);
	}
}

void stage_set_deadline(struct stage *stage, uint64_t deadline_ns)
{
	stage_fold(stage); /* by the previous one */
	stage->declared_ns = deadline_ns;
	if (stage->settings.deadline_ns == 0 && stage->deadline_ns != deadline_ns) {
		stage->deadline_ns = deadline_ns;
		stage->consecutive_misses = 0;
	}
}

void stage_set_labels(struct stage *stage, const char *category, const char *unit)
{
	if (category[0] && !stage->settings.category[0]) {
		memccpy(stage->category, category, '\0', sizeof(stage->category) - 1);
	}
	if (unit[0] && !stage->unit[0]) {
		memccpy(stage->unit, unit, '\0', sizeof(stage->unit) - 1);
	}
}

/* The part of a run's cost that is seldom measured. */
static void append_cost(struct stage *stage, const struct stage_run *run)
{
	if (run->rss_growth != INT64_MIN) {
		int64_t growth = run->rss_growth;
		if (stage->rss_measured++ == 0 || growth > stage->rss_growth_max) {
			stage->rss_growth_max = growth;
		}
		if (__builtin_add_overflow(
			    stage->rss_growth_total, growth, &stage->rss_growth_total)) {
			stage->rss_growth_total = growth; /* a peer's nonsense */
		}
	}
	bool thread = run->cpu_us != PROTO_CPU_NOT_MEASURED;
	bool process = run->process_cpu_ns != UINT64_MAX;
	if (thread && run->end_ns >= stage->interval_from_ns) {
		stage->interval.cpu_us += run->cpu_us;
		stage->interval.cpu_count++;
	}
	if (!stage->cpu && (thread || process) && !stage->cpu_refused) {
		size_t size = stage->capacity * sizeof(*stage->cpu);
		stage->cpu = budget_alloc(stage, size, stage->window * sizeof(*stage->cpu));
		stage->cpu_refused = !stage->cpu;
		if (stage->cpu) {
			memset(stage->cpu, 0xff, size);
		}
	}
	if (stage->cpu) {
		uint64_t process_us = run->process_cpu_ns / 1000;
		stage->cpu[stage->next] = (struct stage_cpu){.thread_us = run->cpu_us,
			.process_us = process_us < PROTO_CPU_NOT_MEASURED
					      ? (uint32_t)process_us
					      : PROTO_CPU_NOT_MEASURED - process};
	}
}

static void append_throttled(struct stage *stage, uint64_t duration_ns)
{
	if (!stage->throttled && !stage->throttled_refused) {
		stage->throttled =
			budget_alloc(stage, sizeof(*stage->throttled), PROTO_HISTOGRAM_BYTES);
		stage->throttled_refused = !stage->throttled;
		if (stage->throttled) {
			proto_histogram_init(stage->throttled, mem_calloc);
		}
	}
	if (stage->throttled) {
		proto_histogram_add(stage->throttled, duration_ns);
	}
}

bool stage_note(struct stage *stage, const struct stage_run *run)
{
	bool recent = run->end_ns >= stage->interval_from_ns;
	if (recent != stage->noted_recent) {
		stage_fold(stage);
		stage->noted_recent = recent;
	}
	if (stage->warmup_left > 0) {
		stage->warmup_left--;
		stage->warmup_skipped++;
		pulse_note(&stage->pulse, run->end_ns);
		if (run->end_ns > stage->last_ns) {
			stage->last_ns = run->end_ns;
		}
		return false;
	}
	append_cost(stage, run);
	stage->failed += run->failed;
	uint64_t duration_ns =
		run->duration_ns < STAGE_WORD_DURATION ? run->duration_ns : STAGE_WORD_DURATION;
	stage_note_plain(stage, run->end_ns, duration_ns, run->throttled, run->frame);
	return true;
}

/* Without branches: a stage that misses every other deadline would mispredict one each time. */
static void judge(struct stage *stage, const uint64_t *words, size_t n, uint64_t max_ns)
{
	uint64_t deadline_ns = stage->deadline_ns, misses = 0;
	uint64_t consecutive = stage->consecutive_misses, longest = stage->longest_misses;
	stage->judged += n;
	if (max_ns <= deadline_ns) {
		stage->consecutive_misses = 0;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t miss = stage_word_ns(words[i]) > deadline_ns;
		misses += miss;
		consecutive = (consecutive + 1) & (0 - miss);
		longest = consecutive > longest ? consecutive : longest;
	}
	stage->misses += misses;
	stage->interval.misses += stage->noted_recent ? misses : 0;
	stage->consecutive_misses = consecutive;
	stage->longest_misses = longest;
	stage->worst_ns = max_ns > stage->worst_ns ? max_ns : stage->worst_ns;
}

static void count_states(struct stage *stage, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum throttle_value state = stage_word_state(words[i]);
		stage->unknown_count += state == THROTTLE_UNKNOWN;
		if (state == THROTTLE_YES) {
			append_throttled(stage, stage_word_ns(words[i]));
		}
	}
}

void stage_fold(struct stage *stage)
{
	size_t n = stage->noted;
	if (n == 0) {
		return;
	}
	const uint64_t *words = stage->runs + stage->next - n;
	struct proto_histogram *all = stage->all;
	uint64_t before_ns = all->sum[0];
	uint64_t max_ns = proto_histogram_add_words(all, words, n, STAGE_WORD_DURATION);
	stage->noted = 0;
	stage->filled = stage->next > stage->filled ? stage->next : stage->filled;
	stage->count += n;
	stage->total_ns += all->sum[0] - before_ns;
	stage->min_ns = all->min;
	stage->max_ns = all->max;
	if (stage->noted_states) {
		stage->noted_states = false;
		count_states(stage, words, n);
	}
	if (stage->noted_recent) {
		uint64_t *interval_max_ns = &stage->interval.max_ns;
		stage->interval.count += n;
		stage->timely += (uint32_t)n;
		*interval_max_ns = max_ns > *interval_max_ns ? max_ns : *interval_max_ns;
	}
	if (stage->deadline_ns) {
		judge(stage, words, n, max_ns);
	}
}

void stage_event(struct stage *stage, const struct stage_run *run)
{
	stage_note(stage, run);
	stage_fold(stage);
}

bool stage_is_open(const struct stage *stage, uint64_t id)
{
	return stage->open && stage_open_find(stage->open, id);
}

void stage_abandon(struct stage *stage)
{
	if (stage->open) {
		stage->abandoned += stage->open->count;
		stage_open_init(stage->open);
	}
}

void stage_begin(struct stage *stage, uint64_t id, uint64_t start_ns, uint64_t frame)
{
	if (!stage->open) {
		stage->open = budget_alloc(stage, sizeof(*stage->open), sizeof(*stage->open));
		if (!stage->open) {
			stage->abandoned++;
			return;
		}
		stage_open_init(stage->open);
	}
	if (stage_open_find(stage->open, id)) {
		stage_open_remove(stage->open, id);
		stage->abandoned++;
	}
	stage->abandoned += stage_open_add(stage->open, id, start_ns, frame);
}

bool stage_end_run(struct stage *stage, uint64_t id, struct stage_run *run)
{
	const struct stage_open_id *open = stage->open ? stage_open_find(stage->open, id) : NULL;
	if (!open || run->end_ns < open->start_ns) {
		stage->orphan_ends++;
		return false;
	}
	run->duration_ns = run->end_ns - open->start_ns;
	run->frame = open->frame;
	stage_open_remove(stage->open, id);
	stage_event(stage, run);
	return true;
}

void stage_interval_reset(struct stage *stage)
{
	memset(&stage->interval, 0, sizeof(stage->interval));
}

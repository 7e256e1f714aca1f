/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.c: answers what ListStages, the sample tick and publishers ask about a stage. The window
 * is copied into the caller's scratch and summarised there; the lifetime comes from the
 * histograms.
 */
#include "daemon/core/stages/stats.h"

#include <math.h>

static void nothing(struct proto_summary *summary, const char **reason, const char *why)
{
	proto_summarize(NULL, 0, summary);
	*reason = why;
}

/* A split needs the state of every event, or it would count some on the wrong side. */
static void judge_split(enum window_filter filter, uint64_t events, struct stage_answer *ret)
{
	if (filter == WINDOW_UNTHROTTLED && ret->unknown > 0) {
		nothing(&ret->summary, &ret->reason,
			"the throttle state of some events is not known");
	} else if (filter == WINDOW_THROTTLED && ret->unknown > 0 && ret->unknown == events) {
		nothing(&ret->summary, &ret->reason, "the throttle state is not known");
	}
}

static void ask_cpu(const struct stage *stage, enum window_filter filter, struct stage_answer *ret)
{
	double wall = 0, process_wall = 0, thread = 0, process = 0;
	size_t threads = 0, processes = 0;
	ret->wall_ms = ret->cpu_ms = ret->process_cpu_ms = ret->cpu_ratio = (double)NAN;
	for (size_t i = 0; stage->cpu && i < stage->filled; i++) {
		const struct stage_cpu *cpu = &stage->cpu[i];
		if (!window_wants(filter, stage->runs[i])) {
			continue;
		}
		double wall_ms = (double)stage_word_ns(stage->runs[i]) / 1e6;
		if (cpu->thread_us != PROTO_CPU_NOT_MEASURED) {
			thread += cpu->thread_us / 1e3;
			wall += wall_ms;
			threads++;
		}
		if (cpu->process_us != PROTO_CPU_NOT_MEASURED) {
			process += cpu->process_us / 1e3;
			process_wall += wall_ms;
			processes++;
		}
	}
	if (threads > 0) {
		ret->wall_ms = wall / (double)threads;
		ret->cpu_ms = thread / (double)threads;
		ret->cpu_ratio = wall > 0 ? thread / wall : (double)NAN;
	}
	if (processes > 0) {
		ret->wall_ms = process_wall / (double)processes;
		ret->process_cpu_ms = process / (double)processes;
		ret->cpu_ratio = process_wall > 0 ? process / process_wall : (double)NAN;
	}
}

static void count_states(const struct stage *stage, bool lifetime, struct stage_answer *ret)
{
	if (lifetime) {
		ret->unknown = stage->unknown_count;
		ret->throttled = stage->throttled ? stage->throttled->count : 0;
		return;
	}
	_Static_assert(THROTTLE_UNKNOWN == 0 && THROTTLE_NO == 1 && THROTTLE_YES == 2, "two bits");
	uint64_t unthrottled = 0, throttled = 0, differs = 0;
	const uint64_t *words = stage->runs, first = stage->filled > 0 ? words[0] : 0;
	size_t i = 0;
	for (; i + 4 <= stage->filled; i += 4) {
		differs |= (words[i] ^ first) | (words[i + 1] ^ first) | (words[i + 2] ^ first) |
			   (words[i + 3] ^ first);
	}
	if (differs >> STAGE_WORD_SHIFT == 0) { /* all in one state, as nearly always */
		throttled = i * (first >> (STAGE_WORD_SHIFT + 1));
		unthrottled = i * (first >> STAGE_WORD_SHIFT & 1);
	} else {
		i = 0;
	}
	for (; i < stage->filled; i++) {
		throttled += stage->runs[i] >> (STAGE_WORD_SHIFT + 1);
		unthrottled += stage->runs[i] >> STAGE_WORD_SHIFT & 1;
	}
	ret->throttled = throttled;
	ret->unknown = stage->filled - throttled - unthrottled;
}

/* Every event counts, and nothing else changes a window. */
static bool is_fresh(const struct stage *stage)
{
	return stage->recent_of == stage->count + 1;
}

static void ask(const struct stage *stage, const struct window_query *query, double *scratch,
	struct proto_guess *guess, struct stage_answer *ret)
{
	const struct window_view view = {
		stage->runs, stage->filled, stage->all, stage->throttled, guess};
	*ret = (struct stage_answer){.exact = !query->lifetime};
	ask_cpu(stage, query->filter, ret);
	count_states(stage, query->lifetime, ret);
	if (query->lifetime && query->filter != WINDOW_ALL && stage->throttled_refused) {
		nothing(&ret->summary, &ret->reason, "no memory for the split ([stages] memory)");
		return;
	}
	window_ask(&view, query, scratch, &ret->summary);
	judge_split(query->filter, query->lifetime ? stage->count : stage->filled, ret);
}

void stage_ask(const struct stage *stage, const struct window_query *query, double *scratch,
	struct stage_answer *ret)
{
	if (window_is_usual(query) && is_fresh(stage)) {
		*ret = stage->recent;
		return;
	}
	ask(stage, query, scratch, NULL, ret);
}

void stage_summary(const struct stage *stage, double *scratch, struct proto_summary *ret)
{
	const struct window_query recent = {.filter = WINDOW_ALL};
	struct stage_answer answer;
	stage_ask(stage, &recent, scratch, &answer);
	*ret = answer.summary;
}

void stage_refresh(struct stage *stage, double *scratch)
{
	const struct window_query recent = {.filter = WINDOW_ALL};
	if (is_fresh(stage)) {
		return;
	}
	ask(stage, &recent, scratch, &stage->guess, &stage->recent);
	stage->recent_of = stage->count + 1;
}

static double window_mean_ms(const struct stage *stage, enum window_filter filter)
{
	uint64_t sum_ns = 0;
	size_t count = 0, unknown = 0;
	for (size_t i = 0; i < stage->filled; i++) {
		bool wanted = window_wants(filter, stage->runs[i]);
		sum_ns += wanted ? stage_word_ns(stage->runs[i]) : 0;
		count += wanted;
		unknown += stage_word_state(stage->runs[i]) == THROTTLE_UNKNOWN;
	}
	if (count == 0 || (filter == WINDOW_UNTHROTTLED && unknown > 0)) {
		return (double)NAN;
	}
	return (double)sum_ns / (double)count / 1e6;
}

double stage_mean_ms(const struct stage *stage, const struct window_query *query)
{
	if (!query->lifetime) {
		return window_mean_ms(stage, query->filter);
	}
	const struct proto_histogram *hot = stage->throttled;
	double hot_ns = hot ? (double)hot->sum[1] * 0x1p64 + (double)hot->sum[0] : 0;
	double hot_count = hot ? (double)hot->count : 0;
	double sum_ns = (double)stage->total_ns, count = (double)stage->count;
	if (query->filter == WINDOW_THROTTLED) {
		sum_ns = hot_ns;
		count = hot_count;
	} else if (query->filter == WINDOW_UNTHROTTLED) {
		bool known = stage->unknown_count == 0 && !stage->throttled_refused;
		sum_ns -= hot_ns;
		count = known ? count - hot_count : 0;
	}
	return count > 0 ? sum_ns / count / 1e6 : (double)NAN;
}

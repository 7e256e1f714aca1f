/* SPDX-License-Identifier: Apache-2.0 */
/* energy.c: integrates power/total since the start, whichever source exposes it (INA, Pi firmware,
 * tegrastats), from every one of its commits: energy/total in millijoules. Time without a reading
 * does not count and is reported as energy/gap_time in seconds. Also budget/power, in percent of
 * what the power mode (nvpmodel) allows. No own keys. A machine without power/total has no metric
 * here; one that gets it later (tegrastats) has it from then on. */
#include "daemon/collect/power/energy.h"

#include <math.h>

#include "daemon/collect/board/modes.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/collect/sched/registry.h"
#include "daemon/core/status/modes.h"

#define LONGEST_NS UINT64_C(10000000000) /* or three periods of the source */

enum { TOTAL, GAP, BUDGET, METRICS };

static const struct metric_row table[METRICS] = {
	[TOTAL] = {"energy/total", UNIT_MILLIJOULES},
	[GAP] = {"energy/gap_time", UNIT_SECONDS},
	[BUDGET] = {"budget/power", UNIT_PERCENT},
};

struct energy_state {
	struct metrics *metrics;
	const struct metric *power; /* NULL: not there (any more) */
	struct integral integral;
	struct metric *metric[METRICS]; /* NULL until there was a power/total */
};

void integral_add(struct integral *integral, uint64_t t_ns, double milliwatts, uint64_t longest_ns)
{
	bool have = isfinite(milliwatts);
	if (integral->seen && t_ns <= integral->last_ns) {
		return;
	}
	if (integral->seen) {
		uint64_t step_ns = t_ns - integral->last_ns;
		if (have && integral->have && step_ns <= longest_ns) {
			integral->millijoules += (integral->last_milliwatts + milliwatts) / 2 *
						 ((double)step_ns / 1e9);
		} else {
			integral->gap_ns += step_ns;
		}
	}
	integral->seen = true;
	integral->have = have;
	integral->known = integral->known || have;
	integral->last_ns = t_ns;
	integral->last_milliwatts = have ? milliwatts : 0;
}

static void integrate(struct energy_state *energy)
{
	uint64_t periods_ns = 3 * energy->power->source->interval_ns;
	if (energy->power->t_ns != 0) {
		integral_add(&energy->integral, energy->power->t_ns, energy->power->value,
			periods_ns > LONGEST_NS ? periods_ns : LONGEST_NS);
	}
}

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct energy_state *energy = ctx;
	(void)t_ns;
	if (energy->power && energy->power->source == source) {
		integrate(energy);
	}
}

static void on_retire(void *ctx, const struct metric *metric)
{
	struct energy_state *energy = ctx;
	if (metric == energy->power) {
		energy->power = NULL;
	}
}

static void energy_close(void *state)
{
	struct energy_state *energy = state;
	if (energy->metrics) {
		metrics_unobserve(energy->metrics, energy);
	}
}

static int energy_open(const struct collector_context *ctx, void *state)
{
	struct energy_state *energy = state;
	const struct metrics_observer observer = {on_commit, on_retire, energy};
	int r = metrics_observe(ctx->core->metrics, observer);
	energy->metrics = r == 0 ? ctx->core->metrics : NULL;
	return r;
}

static int find_power(const struct collector_context *ctx, struct energy_state *energy)
{
	energy->power = metrics_find(ctx->core->metrics, "power/total");
	if (!energy->power) {
		return 0;
	}
	int r = metric_rows_add(ctx, table, METRICS, energy->metric);
	if (r < 0) {
		energy->metric[TOTAL] = NULL;
		energy->power = NULL;
		return r;
	}
	integrate(energy);
	return 0;
}

/* power/total in percent of what the power mode allows. */
static void set_budget(const struct modes *modes, struct energy_state *energy)
{
	const double budget_mw = modes ? modes_budget_mw(modes->power_mode_name) : 0;
	const double mw = energy->power ? energy->power->value : (double)NAN;
	const char *why = isnan(mw)			    ? "power/total has no reading"
			  : budget_mw > 0		    ? NULL
			  : modes && modes->have_power_mode ? "the power mode names no budget"
							    : "this machine has no power mode";
	metric_set_or_null(energy->metric[BUDGET], why ? 0 : mw * 100 / budget_mw, why);
}

static int energy_sample(const struct collector_context *ctx, void *state)
{
	struct energy_state *energy = state;
	int r = energy->power ? 0 : find_power(ctx, energy);
	if (r < 0 || !energy->metric[TOTAL]) {
		return r;
	}
	const struct integral *integral = &energy->integral;
	energy->metric[TOTAL]->origin = integral->gap_ns > 0
						? "integral of power/total, gaps skipped"
						: "integral of power/total";
	metric_set(energy->metric[GAP], (double)integral->gap_ns / 1e9);
	set_budget(ctx->core->modes, energy);
	if (integral->known) { /* up to the last reading of the power, not up to now */
		metric_set_at(energy->metric[TOTAL], integral->millijoules, integral->last_ns);
	} else {
		metric_set_null(energy->metric[TOTAL], "power/total has no reading yet");
	}
	return 0;
}

const struct collector_ops collector_energy = {
	.name = "energy",
	.state_size = sizeof(struct energy_state),
	.open = energy_open,
	.sample = energy_sample,
	.close = energy_close,
};

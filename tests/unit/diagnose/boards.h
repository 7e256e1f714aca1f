/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boards.h: simulates boards whose future is known, for the campaign of forecasts: a die on a heat
 * sink (or the sink alone), load that starts in the window or before it, changes of load and fan,
 * noise, quantised values, uneven sampling and gaps.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/diagnose/forecast.h"

struct board {
	bool second_order;
	double die_s, sink_s, die_share; /* time constants; part of the rise that the die makes */
	double sigma, quantum, sampling_s;
	double trip;
	/* what the campaign judges by */
	double remaining_s; /* to the trip; INFINITY = never */
	double progress;    /* part of the way from the last change to the trip that was seen */
	double seen_s;	    /* since the last change */
	bool changed, fan;  /* load or fan changed after the load began */
	size_t count;
	struct forecast_point point[FORECAST_POINTS];
};

static uint64_t board_seed;

static double board_uniform(double low, double high)
{
	board_seed = board_seed * 6364136223846793005u + 1442695040888963407u;
	return low + (high - low) * (double)(board_seed >> 11) / 9007199254740992.0;
}

static double board_gauss(void)
{
	return sqrt(-2 * log(board_uniform(1e-12, 1))) * cos(2 * acos(-1) * board_uniform(0, 1));
}

/* The die's temperature above the surroundings, in units in which 1 W on 1 K/W is 1 °C. */
struct board_state {
	double sink, die;
};

static void board_step(const struct board *board, struct board_state *state, double rise,
	double resistance, double dt)
{
	const double sink_rise = rise * (board->second_order ? 1 - board->die_share : 1);
	state->sink += (sink_rise * resistance - state->sink) * dt / (board->sink_s * resistance);
	const double die_rise = board->second_order ? rise * board->die_share : 0;
	state->die = board->second_order ? state->die + (state->sink + die_rise - state->die) * dt /
								board->die_s
					 : state->sink;
}

struct board_phase {
	double from_s, rise, resistance;
};

static const struct board_phase *board_phase_at(
	const struct board_phase *phase, size_t phases, double t)
{
	size_t at = 0;
	while (at + 1 < phases && phase[at + 1].from_s <= t) {
		at++;
	}
	return &phase[at];
}

enum { BOARD_STEPS_S = 20 };

static double board_quantise(const struct board *board, double celsius)
{
	celsius += board->sigma * board_gauss();
	return board->quantum > 0 ? board->quantum * round(celsius / board->quantum) : celsius;
}

/* Samples the board up to `until`, from `from` at the earliest. */
static void board_sample(struct board *board, double ambient, const struct board_phase *phase,
	size_t phases, double from, double until)
{
	struct board_state state = {phase[0].rise * 1, phase[0].rise};
	if (board->second_order) {
		state.sink = phase[0].rise * (1 - board->die_share);
	}
	double next = fmax(from, until - board->sampling_s * 511), skip_from = -1, skip_to = -1;
	if (board_uniform(0, 1) < 0.25) {
		skip_from = board_uniform(from, until);
		skip_to = fmin(skip_from + board_uniform(2, 15) * board->sampling_s,
			until - 5 * board->sampling_s);
	}
	const double dt = 1.0 / BOARD_STEPS_S;
	board->count = 0;
	for (double t = 0; t <= until; t += dt) {
		const struct board_phase *now = board_phase_at(phase, phases, t);
		board_step(board, &state, now->rise, now->resistance, dt);
		if (t >= next) {
			next += board->sampling_s * board_uniform(0.9, 1.1);
			if ((t < skip_from || t > skip_to) && board->count < FORECAST_POINTS) {
				board->point[board->count++] = (struct forecast_point){
					t, board_quantise(board, ambient + state.die)};
			}
		}
	}
}

/* Runs the board to the trip or 12 time constants; the temperature at `from` and the time of the
 * trip, and with `level` the time at which that is reached. */
static double board_reach(const struct board *board, double ambient,
	const struct board_phase *phase, size_t phases, double level, double from, double *ret_at)
{
	struct board_state state = {phase[0].rise, phase[0].rise};
	if (board->second_order) {
		state.sink = phase[0].rise * (1 - board->die_share);
	}
	const double dt = 1.0 / BOARD_STEPS_S, end = phase[phases - 1].from_s + 15 * board->sink_s;
	for (double t = 0; t < end; t += dt) {
		const struct board_phase *now = board_phase_at(phase, phases, t);
		board_step(board, &state, now->rise, now->resistance, dt);
		if (ret_at && t <= from) {
			*ret_at = ambient + state.die;
		}
		if (ambient + state.die >= level) {
			return t;
		}
	}
	return INFINITY;
}

/* A board by its seed; its observation ends before the trip. False: it is of no use (the trip is
 * reached before the last change). */
static bool board_make(uint64_t seed, struct board *board)
{
	board_seed = seed * 2654435761u + 12345;
	for (int i = 0; i < 8; i++) {
		board_uniform(0, 1);
	}
	*board = (struct board){
		.second_order = board_uniform(0, 1) < 0.6,
		.die_s = board_uniform(1.5, 12),
		.sink_s = 60 * pow(15, board_uniform(0, 1)),
		.die_share = board_uniform(0.05, 0.4),
		.sigma = board_uniform(0.1, 0.5),
		.sampling_s = (double[]){1, 2, 5, 10}[(int)board_uniform(0, 4)],
		.quantum = (double[]){0, 0.5, 1, 1}[(int)board_uniform(0, 4)],
	};
	const double ambient = board_uniform(20, 40), idle = board_uniform(5, 15);
	const bool reaches = board_uniform(0, 1) < 0.65;
	const double load = board_uniform(15, 55);
	struct board_phase phase[3] = {{0, idle, 1}, {board_uniform(0, 400), idle + load, 1}};
	size_t phases = 2;
	const double kind = board_uniform(0, 1);
	if (kind < 0.5) {
		const double at = phase[1].from_s + board->sink_s * board_uniform(0.2, 1.5);
		board->changed = true;
		board->fan = kind < 0.2;
		phase[2] = board->fan
				   ? (struct board_phase){at, idle + load, board_uniform(0.6, 1.6)}
				   : (struct board_phase){
					     at, idle + load * board_uniform(0.5, 1.8), 1};
		phases = 3;
	}
	const struct board_phase *last = &phase[phases - 1];
	double start;
	board_reach(board, ambient, phase, phases, INFINITY, last->from_s, &start);
	const double share = board->second_order ? board->die_share : 0;
	const double end = ambient + last->rise * (share + (1 - share) * last->resistance);
	board->trip =
		reaches ? start + (end - start) / board_uniform(1.04, 2.5)
			: fmax(start, end) + fmax(1, fabs(end - start)) * board_uniform(0.04, 1);
	const double trip_s = board_reach(board, ambient, phase, phases, board->trip, 0, NULL);
	if (isfinite(trip_s) && (trip_s <= last->from_s || end < start + 4)) {
		return false;
	}
	/* A climb of fewer samples than this cannot be forecast by anyone. */
	const double climb = isfinite(trip_s) ? trip_s - last->from_s : 2 * board->sink_s;
	if (climb < 60) {
		return false;
	}
	board->sampling_s = fmin(board->sampling_s, fmax(1, floor(climb / 100)));
	double until = last->from_s + board->sink_s * board_uniform(0.2, 4);
	board->progress = NAN;
	if (isfinite(trip_s)) {
		board->progress = board_uniform(0.1, 0.9);
		until = board_reach(board, ambient, phase, phases,
			start + board->progress * (board->trip - start), 0, NULL);
		if (until <= last->from_s) {
			return false;
		}
	}
	board->remaining_s = trip_s - until;
	board->seen_s = until - last->from_s;
	const double from = board_uniform(0, 1) < 0.2
				    ? last->from_s + board_uniform(0, 0.3) * board->seen_s
				    : 0;
	board_sample(board, ambient, phase, phases, from, until);
	return true;
}

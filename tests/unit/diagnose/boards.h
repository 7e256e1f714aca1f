/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boards.h: simulates boards whose future is known, for the campaign of forecasts: a die on a heat
 * sink (or the sink alone, whose response two exponentials describe exactly), idle until the load
 * comes, in some after an earlier load or with another fan speed, noise, quantised values.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/diagnose/forecast.h"

enum { BOARD_PHASES = 3 };

struct board_phase {
	double from_s, sink, die, sink_tau_s; /* °C above the surroundings that they approach */
};

struct board {
	bool reaches;
	double ambient, trip, die_tau_s, sink_tau_s; /* the latter in the last phase */
	double sigma, quantum, sampling_s;
	double load_s, trip_s; /* beginning of the last phase; trip_s INFINITY = never */
	size_t phases;
	struct board_phase phase[BOARD_PHASES];
	uint64_t seed;
	size_t count;
	struct forecast_point point[FORECAST_POINTS];
};

static double board_uniform(struct board *board, double low, double high)
{
	board->seed = board->seed * 6364136223846793005u + 1442695040888963407u;
	return low + (high - low) * (double)(board->seed >> 11) / 9007199254740992.0;
}

static double board_gauss(struct board *board)
{
	const double radius = sqrt(-2 * log(board_uniform(board, 1e-12, 1)));
	return radius * cos(2 * acos(-1) * board_uniform(board, 0, 1));
}

/* Without noise, t seconds after the begin of the simulation. */
static double board_celsius(const struct board *board, double t)
{
	double sink = board->phase[0].sink, die = board->phase[0].die;
	for (size_t i = 0; i < board->phases && board->phase[i].from_s < t; i++) {
		const struct board_phase *phase = &board->phase[i];
		const double end = i + 1 < board->phases ? fmin(t, phase[1].from_s) : t;
		const double span = end - phase->from_s;
		sink = phase->sink + (sink - phase->sink) * exp(-span / phase->sink_tau_s);
		die = phase->die + (die - phase->die) * exp(-span / board->die_tau_s);
	}
	return board->ambient + sink + die;
}

static double board_trip_s(const struct board *board)
{
	double low = board->load_s, high = board->load_s + 30 * board->sink_tau_s;
	if (board_celsius(board, high) < board->trip) {
		return INFINITY;
	}
	for (int i = 0; i < 60; i++) {
		const double middle = (low + high) / 2;
		*(board_celsius(board, middle) < board->trip ? &low : &high) = middle;
	}
	return high;
}

static void board_phases(struct board *board)
{
	const double idle = board_uniform(board, 3, 12), load = board_uniform(board, 15, 50);
	const double die = board_uniform(board, 0, 1) < 0.6 ? board_uniform(board, 3, 12) : 0;
	const double kind = board_uniform(board, 0, 1), fan = board_uniform(board, 0.6, 1.5);
	const double earlier = board_uniform(board, 0.2, 0.7), tau = board->sink_tau_s;
	board->load_s = board_uniform(board, 0, 120);
	board->phase[0] = (struct board_phase){0, idle, 0, tau};
	board->phases = 1;
	if (kind < 0.3) {
		const double from = board->load_s;
		const bool is_fan = kind < 0.15;
		board->phase[board->phases++] =
			is_fan ? (struct board_phase){from, idle * fan, 0, tau * fan}
			       : (struct board_phase){
					 from, idle + earlier * load, earlier * die, tau};
		board->load_s += board_uniform(board, 30, 300);
		board->sink_tau_s *= is_fan ? fan : 1;
	}
	board->phase[board->phases++] =
		(struct board_phase){board->load_s, idle + load, die, board->sink_tau_s};
}

/* A board by its seed; false: of no use, because it trips as soon as the load comes. */
static bool board_make(uint64_t seed, bool reaches, struct board *board)
{
	*board = (struct board){.seed = seed * 2654435761u + 12345, .reaches = reaches};
	for (int i = 0; i < 8; i++) {
		board_uniform(board, 0, 1);
	}
	board->ambient = board_uniform(board, 20, 40);
	board->die_tau_s = board_uniform(board, 2, 15);
	board->sink_tau_s = 60 * pow(20, board_uniform(board, 0, 1));
	board->sigma = board_uniform(board, 0.05, 0.5);
	board->quantum = (double[]){0, 0.1, 0.5, 1}[(int)board_uniform(board, 0, 4)];
	const int sampling = (int)board_uniform(board, 0, 4);
	board->sampling_s = board->sink_tau_s < 300 ? 1 : (double[]){1, 2, 5, 10}[sampling];
	board_phases(board);
	const double start = board_celsius(board, board->load_s),
		     end = board_celsius(board, INFINITY), rise = end - start;
	board->trip = reaches ? start + rise / board_uniform(board, 1.04, 2.5)
			      : end + fmax(2, rise * board_uniform(board, 0.05, 1));
	board->trip_s = board_trip_s(board);
	return !reaches || board->trip_s - board->load_s > 30;
}

/* Samples the board from its beginning, or the last points of that, up to `until`. */
static void board_sample(struct board *board, double until)
{
	const double window_s = (FORECAST_POINTS - 1) * board->sampling_s;
	double t = until > window_s ? fmod(until, board->sampling_s) + until - window_s : 0;
	for (board->count = 0; t <= until && board->count < FORECAST_POINTS;
		t += board->sampling_s) {
		double celsius = board_celsius(board, t) + board->sigma * board_gauss(board);
		if (board->quantum > 0) {
			celsius = board->quantum * round(celsius / board->quantum);
		}
		board->point[board->count++] = (struct forecast_point){t, celsius};
	}
}

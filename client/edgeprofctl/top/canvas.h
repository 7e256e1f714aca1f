/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.h: draws text, bars and graphs on the terminal by way of ncurses, which sends only what
 * changed. What does not fit is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/term/style.h"
#include "client/edgeprofctl/term/plot.h"

/* The tones of style.h, then those of this screen. */
enum ink {
	INK_TITLE = TONE_BAD + 1, /* what is important and not judged */
	INK_FRAME,		  /* lines around boxes */
	INK_TRACK,		  /* the empty part of a bar */
	INK_GRAPH,
	INK_SELECTED,
	INK_NOTICE, /* the bar of a mode, such as history */
	INK_STAGE,  /* the first of the colours of stages */
	INK_STAGES = 8,
	INKS = INK_STAGE + INK_STAGES
};

struct box {
	int y, x, height, width;
};

struct canvas {
	struct style style;
	enum plot_style plot;
	bool dimmed; /* everything: what is shown is old */
	int height, width;
	int errors;	     /* stderr, which goes nowhere meanwhile */
	unsigned inks[INKS]; /* attributes of ncurses */
};

/* -ENOTTY: no terminal; -ENODEV: TERM is unknown; -ENOTSUP: it cannot move its cursor. */
int canvas_open(struct canvas *canvas, const struct style *style);
/* Restores the terminal. */
void canvas_close(struct canvas *canvas);
/* Leaves the screen, stops the process, and comes back when it is continued. */
void canvas_suspend(struct canvas *canvas);
/* Takes the terminal's size again. */
void canvas_resize(struct canvas *canvas);

/* Writes clean text, which may have marks of style.h, into at most `width` columns; how many it
 * takes. */
int canvas_text(const struct canvas *canvas, int y, int x, int width, int ink, const char *text);
/* The same to the right end of these columns. */
void canvas_right(const struct canvas *canvas, int y, int x, int width, int ink, const char *text);
/* The same of a template (template.h). */
int canvas_template(const struct canvas *canvas, int y, int x, int width, const char *template,
	const cJSON *object);
void canvas_fill(const struct canvas *canvas, struct box box, int ink);
/* Marks the line as selected, whatever it shows. */
void canvas_select(const struct canvas *canvas, int y, int x, int width);

/* A frame with a title; returns what is inside. */
struct box canvas_frame(const struct canvas *canvas, struct box box, const char *title);

/* A line of which `share` (0 to 1) is full; NAN is empty. */
void canvas_bar(const struct canvas *canvas, int y, int x, int width, double share, int ink);

/* Parts side by side, `full` being the width, each in its ink with its label if that fits, and a
 * mark in the column `mark` (-1: none). */
struct part_of_bar {
	double value;
	int ink;
	const char *label;
};
enum { BAR_PARTS = 24 };
void canvas_stack(const struct canvas *canvas, int y, int x, int width,
	const struct part_of_bar *parts, size_t count, double full, int mark, int mark_ink);

/* A filled graph: value(ctx, i) of `2 * box.width` columns between low and high. The inks are those
 * of values from the limits on (NAN: never). */
struct graph {
	double (*value)(const void *ctx, int column, int columns);
	const void *ctx;
	double low, high, warning, critical;
	int ink;
};
void canvas_graph(const struct canvas *canvas, struct box box, const struct graph *graph);

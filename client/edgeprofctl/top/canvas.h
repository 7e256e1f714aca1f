/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.h: draws text, bars and graphs on the terminal by way of ncurses, which sends only what
 * changed. What does not fit is cut.
 */
#pragma once

#include <stdbool.h>

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

/* What a graph shows: values from `low` to `high`, in inks of their own from the limits on (NAN:
 * never). */
struct scale {
	double low, high, warning, critical;
	bool bounded; /* high is a limit, not the largest value of the minute */
};
/* A filled graph of two values for each column. */
void canvas_graph(const struct canvas *canvas, struct box box, const struct scale *scale,
	const double *values);

/* SPDX-License-Identifier: Apache-2.0 */
/* canvas.c: owns ncurses. Signals are read by top.c, so the handlers of ncurses never run. */
#include "client/edgeprofctl/top/canvas.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <termcap.h>

#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/text.h"

/* Foreground and background with 256 colours, with 8, and without: then attributes distinguish. */
static const struct {
	short wide[2], narrow[2];
	unsigned extra, mono;
} palette[INKS] = {
	[TONE_NONE] = {{-1, -1}, {-1, -1}, A_NORMAL, A_NORMAL},
	[TONE_DIM] = {{245, -1}, {-1, -1}, A_NORMAL, A_DIM},
	[TONE_BOLD] = {{-1, -1}, {-1, -1}, A_BOLD, A_BOLD},
	[TONE_GOOD] = {{108, -1}, {COLOR_GREEN, -1}, A_NORMAL, A_NORMAL},
	[TONE_WARN] = {{179, -1}, {COLOR_YELLOW, -1}, A_NORMAL, A_BOLD},
	[TONE_BAD] = {{203, -1}, {COLOR_RED, -1}, A_BOLD, A_REVERSE},
	[INK_TITLE] = {{110, -1}, {COLOR_CYAN, -1}, A_BOLD, A_BOLD},
	[INK_FRAME] = {{240, -1}, {COLOR_BLUE, -1}, A_NORMAL, A_DIM},
	[INK_TRACK] = {{238, -1}, {-1, -1}, A_NORMAL, A_DIM},
	[INK_GRAPH] = {{73, -1}, {COLOR_CYAN, -1}, A_NORMAL, A_NORMAL},
	[INK_SELECTED] = {{255, 237}, {COLOR_BLACK, COLOR_CYAN}, A_NORMAL, A_REVERSE},
	[INK_NOTICE] = {{234, 179}, {COLOR_BLACK, COLOR_YELLOW}, A_NORMAL, A_REVERSE},
	[INK_STAGE] = {{234, 110}, {COLOR_BLACK, COLOR_CYAN}, A_NORMAL, A_REVERSE},
	[INK_STAGE + 1] = {{234, 150}, {COLOR_BLACK, COLOR_GREEN}, A_NORMAL, A_NORMAL},
	[INK_STAGE + 2] = {{234, 180}, {COLOR_BLACK, COLOR_YELLOW}, A_NORMAL, A_REVERSE},
	[INK_STAGE + 3] = {{234, 139}, {COLOR_BLACK, COLOR_MAGENTA}, A_NORMAL, A_NORMAL},
	[INK_STAGE + 4] = {{234, 73}, {COLOR_WHITE, COLOR_BLUE}, A_NORMAL, A_REVERSE},
	[INK_STAGE + 5] = {{234, 174}, {COLOR_BLACK, COLOR_RED}, A_NORMAL, A_NORMAL},
	[INK_STAGE + 6] = {{234, 146}, {COLOR_BLACK, COLOR_WHITE}, A_NORMAL, A_REVERSE},
	[INK_STAGE + 7] = {{234, 245}, {COLOR_BLACK, COLOR_WHITE}, A_NORMAL, A_NORMAL},
};

static void make_inks(struct canvas *canvas)
{
	bool color = canvas->style.color && has_colors() && start_color() == OK;
	int fallback = use_default_colors() == OK ? -1 : COLOR_BLACK;
	for (short ink = 0; ink < INKS; ink++) {
		const short *pair = COLORS >= 256 ? palette[ink].wide : palette[ink].narrow;
		canvas->inks[ink] = color ? palette[ink].extra : palette[ink].mono;
		if (color && COLORS < 256 && (ink == TONE_DIM || ink == INK_TRACK)) {
			canvas->inks[ink] = A_DIM;
		}
		if (!color || ink + 1 >= COLOR_PAIRS || (pair[0] < 0 && pair[1] < 0)) {
			continue;
		}
		init_pair((short)(ink + 1), pair[0] < 0 && fallback != -1 ? COLOR_WHITE : pair[0],
			pair[1] < 0 ? (short)fallback : pair[1]);
		canvas->inks[ink] |= COLOR_PAIR(ink + 1);
	}
}

/* What ssh has to say would be written over the screen. */
static void hide_errors(struct canvas *canvas)
{
	canvas->errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
}

static void never_called(int number)
{
	(void)number;
}

int canvas_open(struct canvas *canvas, const struct style *style)
{
	const char *term = getenv("TERM");
	*canvas = (struct canvas){.style = *style, .plot = PLOT_ASCII};
	if (!style->tty || isatty(STDIN_FILENO) != 1) {
		return -ENOTTY;
	}
	if (style->utf8) {
		/* the console's fonts have blocks, but no braille */
		canvas->plot = term && strcmp(term, "linux") == 0 ? PLOT_BLOCKS : PLOT_BRAILLE;
	}
	/* newterm(3) leaks when TERM is unknown, and initscr(3) ends the program */
	if (!term || tgetent(NULL, term) <= 0) {
		return -ENODEV;
	}
	if (!tgetstr("cm", NULL)) {
		return -ENOTSUP;
	}
	/* ncurses ignores SIGTSTP while it draws, which would discard one that waits to be read,
	 * unless the program has a handler. */
	sigaction(SIGTSTP, &(struct sigaction){.sa_handler = never_called}, NULL);
	if (!newterm(NULL, stdout, stdin)) {
		return -ENODEV;
	}
	hide_errors(canvas);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	make_inks(canvas);
	canvas_resize(canvas);
	return 0;
}

void canvas_close(struct canvas *canvas)
{
	endwin();
	if (canvas->errors >= 0) {
		dup2(canvas->errors, STDERR_FILENO);
		close(canvas->errors);
	}
}

void canvas_suspend(struct canvas *canvas)
{
	def_prog_mode();
	endwin();
	raise(SIGSTOP);
	reset_prog_mode();
	canvas_resize(canvas);
}

void canvas_resize(struct canvas *canvas)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
		resizeterm(size.ws_row, size.ws_col);
	}
	clearok(curscr, TRUE); /* a terminal may have moved its lines */
	getmaxyx(stdscr, canvas->height, canvas->width);
}

static void use(const struct canvas *canvas, int ink)
{
	bool keeps = ink == INK_NOTICE || ink == INK_SELECTED;
	attrset((int)(canvas->dimmed && !keeps ? canvas->inks[TONE_DIM] | A_DIM
					       : canvas->inks[ink]));
}

/* The columns of a line that are on the screen. */
static int visible(const struct canvas *canvas, int y, int x, int width)
{
	if (y < 0 || y >= canvas->height || x < 0 || x >= canvas->width) {
		return 0;
	}
	return width < canvas->width - x ? width : canvas->width - x;
}

int canvas_text(const struct canvas *canvas, int y, int x, int width, int ink, const char *text)
{
	int left = visible(canvas, y, x, width), begin = left;
	use(canvas, ink);
	while (*text != '\0' && left > 0) {
		if (*text >= STYLE_MARK && *text < STYLE_MARK + STYLE_MARKS) {
			int tone = *text++ - STYLE_MARK;
			use(canvas, tone == TONE_NONE ? ink : tone);
			continue;
		}
		char run[256];
		size_t length = 0;
		while (length < sizeof(run) - 1 && text[length] != '\0' &&
			!(text[length] >= STYLE_MARK && text[length] < STYLE_MARK + STYLE_MARKS)) {
			length++;
		}
		snprintf(run, sizeof(run), "%.*s", (int)length, text);
		size_t fits = text_fit(run, (size_t)left);
		mvaddnstr(y, x + begin - left, run, (int)fits);
		run[fits] = '\0';
		left -= (int)text_width(run);
		if (fits < length) {
			break;
		}
		text += length;
	}
	return begin - left;
}

void canvas_right(const struct canvas *canvas, int y, int x, int width, int ink, const char *text)
{
	char plain[512];
	snprintf(plain, sizeof(plain), "%s", text);
	style_take(plain, TONE_NONE);
	int columns = (int)text_width(plain), skip = columns < width ? width - columns : 0;
	canvas_text(canvas, y, x + skip, width - skip, ink, text);
}

int canvas_template(const struct canvas *canvas, int y, int x, int width, const char *template,
	const cJSON *object)
{
	char bytes[512];
	struct text text = TEXT_IN(bytes);
	template_add(&text, template, object, canvas->style.utf8);
	return canvas_text(canvas, y, x, width, TONE_NONE, bytes);
}

void canvas_fill(const struct canvas *canvas, struct box box, int ink)
{
	use(canvas, ink);
	for (int y = box.y; y < box.y + box.height; y++) {
		int width = visible(canvas, y, box.x, box.width);
		if (width > 0) {
			mvhline(y, box.x, ' ' | (chtype)(canvas->inks[ink]), width);
		}
	}
}

void canvas_select(const struct canvas *canvas, int y, int x, int width)
{
	unsigned ink = canvas->inks[INK_SELECTED];
	if (visible(canvas, y, x, width) > 0) {
		mvchgat(y, x, visible(canvas, y, x, width), ink & ~A_COLOR,
			(short)PAIR_NUMBER((int)ink), NULL);
	}
}

static void repeat(const struct canvas *canvas, int y, int x, int count, const char *character)
{
	for (int i = 0; i < visible(canvas, y, x, count); i++) {
		mvaddstr(y, x + i, character);
	}
}

struct box canvas_frame(const struct canvas *canvas, struct box box, const char *title)
{
	static const char *const lines[2][6] = {
		{"+", "+", "+", "+", "-", "|"}, {"╭", "╮", "╰", "╯", "─", "│"}};
	const char *const *line = lines[canvas->style.utf8];
	int right = box.x + box.width - 1, bottom = box.y + box.height - 1;
	if (box.height < 2 || box.width < 4) {
		return (struct box){box.y, box.x, 0, 0};
	}
	use(canvas, INK_FRAME);
	for (int y = box.y; y <= bottom; y++) {
		const char *const *ends = y == box.y ? line : line + 2;
		bool edge = y == box.y || y == bottom;
		repeat(canvas, y, box.x + 1, edge ? box.width - 2 : 0, line[4]);
		repeat(canvas, y, box.x, 1, edge ? ends[0] : line[5]);
		repeat(canvas, y, right, 1, edge ? ends[1] : line[5]);
	}
	char text[256];
	snprintf(text, sizeof(text), " %s ", title);
	canvas_text(canvas, box.y, box.x + 2, box.width - 4, INK_TITLE, text);
	return (struct box){box.y + 1, box.x + 2, box.height - 2, box.width - 4};
}

void canvas_bar(const struct canvas *canvas, int y, int x, int width, double share, int ink)
{
	bool utf8 = canvas->style.utf8;
	int full = isfinite(share) ? (int)round(fmin(fmax(share, 0), 1) * width) : 0;
	use(canvas, ink);
	repeat(canvas, y, x, full, utf8 ? "━" : "#");
	use(canvas, INK_TRACK);
	repeat(canvas, y, x + full, width - full, utf8 ? "─" : ".");
}

void canvas_graph(const struct canvas *canvas, struct box box, const struct scale *scale,
	const double *values)
{
	for (int x = 0; x < box.width; x++) {
		double left = values[2 * x], right = values[2 * x + 1];
		double peak = isnan(left) ? right : isnan(right) ? left : fmax(left, right);
		use(canvas, peak >= scale->critical  ? (int)TONE_BAD
			    : peak >= scale->warning ? (int)TONE_WARN
						     : (int)INK_GRAPH);
		for (int row = 0; row < box.height; row++) {
			char cell[PLOT_CELL];
			unsigned rows = (unsigned)box.height, at = (unsigned)row;
			unsigned a = plot_fill(left, scale->low, scale->high, at, rows);
			unsigned b = plot_fill(right, scale->low, scale->high, at, rows);
			int y = box.y + box.height - 1 - row;
			if ((a > 0 || b > 0) && visible(canvas, y, box.x + x, 1) > 0) {
				mvaddstr(y, box.x + x, plot_cell(canvas->plot, a, b, cell));
			}
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* html.c: writes escaped text, and the frames of sections, charts and tables. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "client/edgeprofctl/term/text.h"
#include "proto/utf8.h"

/* A hostile name may be long: what a cell or a tooltip can't show is cut. */
enum { TEXT_MAX = 160 };

static void escape(FILE *out, const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	for (int left = TEXT_MAX; *text != '\0'; left--) {
		const char *at = text;
		uint32_t c = text_decode(&text);
		const char *found = c < 0x80 ? strchr(special, (int)c) : NULL;
		if (left == 0) {
			fputs("…", out);
			return;
		}
		if (found) {
			fputs(entities[found - special], out);
		} else if (c == 0xfffd || (c != '\n' && proto_utf8_is_hidden(c))) {
			fputs("�", out);
		} else {
			fwrite(at, 1, (size_t)(text - at), out);
		}
	}
}

static void put_number(FILE *out, double value, int decimals)
{
	if (isfinite(value) && fabs(value) < 1e15) {
		fprintf(out, "%.*f", decimals, value);
	} else {
		fputc('-', out);
	}
}

/* One conversion; returns what follows it. */
static const char *convert(FILE *out, const char *format, va_list *ap)
{
	int decimals = 6;
	if (format[0] == '.') {
		decimals = format[1] == '*' ? va_arg(*ap, int) : format[1] - '0';
		format += 2;
	}
	if (format[0] == 'z') {
		fprintf(out, "%zu", va_arg(*ap, size_t));
		return format + 2;
	}
	switch (*format) {
	case 's':
		escape(out, va_arg(*ap, const char *));
		break;
	case 'd':
		fprintf(out, "%d", va_arg(*ap, int));
		break;
	case 'u':
		fprintf(out, "%u", va_arg(*ap, unsigned));
		break;
	case 'f':
		put_number(out, va_arg(*ap, double), decimals);
		break;
	default:
		fputc(*format, out);
	}
	return format + 1;
}

void html(FILE *out, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	while (*format != '\0') {
		size_t plain = strcspn(format, "%");
		fwrite(format, 1, plain, out);
		format += plain;
		if (*format == '%') {
			format = convert(out, format + 1, &ap);
		}
	}
	va_end(ap);
}

struct label html_ms(double ms)
{
	struct label label = {"-"};
	if (isfinite(ms) && fabs(ms) < 1e15) {
		bool seconds = ms >= 999.5;
		double value = seconds ? ms / 1000 : ms;
		int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
		snprintf(label.text, sizeof(label.text), "%.*f %s", decimals, value,
			seconds ? "s" : "ms");
	}
	return label;
}

struct label html_at(const struct page *page, double at_s)
{
	struct label label;
	if (page->span_s < 600 || !(at_s >= 0 && at_s < 1e9)) {
		snprintf(label.text, sizeof(label.text), "%.2f s", isfinite(at_s) ? at_s : 0);
	} else {
		unsigned seconds = (unsigned)at_s;
		snprintf(label.text, sizeof(label.text), "%u:%02u:%02u", seconds / 3600,
			seconds / 60 % 60, seconds % 60);
	}
	return label;
}

double html_percent(double value, double whole)
{
	double percent = whole > 0 ? value / whole * 100 : 0;
	return percent >= 0 ? fmin(percent, 100) : 0;
}

double html_step(double range, int parts)
{
	static const double steps[] = {1, 2, 5, 10};
	if (!(range > 0) || !isfinite(range)) {
		return 1;
	}
	double power = pow(10, floor(log10(range / parts)));
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (range / (power * steps[i]) <= parts) {
			return power * steps[i];
		}
	}
	return power * 10;
}

int html_decimals(double step)
{
	return step < 0.095 ? 2 : step < 0.95 ? 1 : 0;
}

void html_section(FILE *out, const char *id, const char *title, const char *about)
{
	html(out, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
	if (about[0] != '\0') {
		html(out, "<p class=\"dim\">%s</p>\n", about);
	}
}

void html_chart(FILE *out, const char *classes, double height, const char *label)
{
	html(out, "<svg class=\"%s\" height=\"%.0f\" role=\"img\" aria-label=\"%s\">", classes,
		height, label);
}

void html_vertical(FILE *out, const char *classes, double x, double from, double to)
{
	html(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.0f\" y2=\"%.0f\"/>",
		classes, x, x, from, to);
}

void html_axis(FILE *out, double y, double last, const char *unit)
{
	double step = html_step(last, 6);
	for (double at = 0; at <= last * 1.0001; at += step) {
		double x = html_percent(at, last);
		const char *anchor = x < 3 ? "s" : x > 94 ? "e" : "m";
		html_vertical(out, "tick", x, y, y + 5);
		html(out, "<text class=\"%s\" x=\"%.2f%%\" y=\"%.0f\">%.*f %s</text>", anchor, x,
			y + 18, html_decimals(step), at, unit);
	}
}

void html_table(FILE *out, const char *label, const char *heads)
{
	html(out,
		"<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>"
		"<thead><tr>",
		label);
	while (*heads != '\0') {
		bool right = *heads == '>';
		size_t length = strcspn(heads += right, "|");
		fprintf(out, "<th scope=\"col\"%s>%.*s</th>", right ? " class=\"n\"" : "",
			(int)length, heads);
		heads += length + (heads[length] == '|');
	}
	fputs("</tr></thead><tbody>\n", out);
}

void html_table_end(FILE *out, const char *things, size_t more)
{
	fputs("</tbody></table></div>\n", out);
	if (more > 0) {
		html(out, "<p class=\"dim\">%s more %s are not shown.</p>\n",
			format_count((int64_t)more).text, things);
	}
}

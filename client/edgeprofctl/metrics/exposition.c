/* SPDX-License-Identifier: Apache-2.0 */
/* exposition.c: keeps each sample as its line of text. The name of its family is the beginning of
 * that line, so sorting the lines makes families contiguous and the order deterministic. */
#include "client/edgeprofctl/metrics/exposition.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
	char *line;	  /* "edgeprof_x{a=\"b\"} 1" */
	size_t family;	  /* bytes of the family's name */
	size_t labels;	  /* bytes of name and labels */
	const char *help; /* static */
	const char *type;
};

void exposition_label(struct text *labels, const char *name, const char *value)
{
	text_add(labels, "%s%s=\"", labels->length > 0 ? "," : "", name);
	for (; *value != '\0'; value++) {
		bool escaped = *value == '\\' || *value == '"' || *value == '\n';
		text_add(labels, "%s%c", escaped ? "\\" : "", *value == '\n' ? 'n' : *value);
	}
	text_add(labels, "\"");
}

static void add_line(struct exposition *exposition, struct sample sample, const char *line)
{
	if (exposition->count == exposition->capacity) {
		size_t capacity = exposition->capacity > 0 ? 2 * exposition->capacity : 256;
		struct sample *samples =
			reallocarray(exposition->samples, capacity, sizeof(*samples));
		if (!samples) {
			exposition->out_of_memory = true;
			return;
		}
		exposition->samples = samples;
		exposition->capacity = capacity;
	}
	sample.line = strdup(line);
	if (!sample.line) {
		exposition->out_of_memory = true;
		return;
	}
	exposition->samples[exposition->count++] = sample;
}

static void add(struct exposition *exposition, struct sample sample, const char *family,
	const char *suffix, const struct text *labels, double value)
{
	char bytes[LABELS_SIZE + 256];
	struct text line = TEXT_IN(bytes);
	bool some = labels && labels->length > 0;
	if (!isfinite(value) || (some && labels->truncated)) {
		return;
	}
	/* Parts of names come from the daemon. */
	text_add(&line, "edgeprof_%s", family);
	for (char *at = bytes; *at != '\0'; at++) {
		*at = (char)(isascii(*at) && isalnum((unsigned char)*at) ? *at : '_');
	}
	sample.family = line.length;
	text_add(&line, "%s", suffix);
	text_add(&line, some ? "{%s}" : "%s", some ? labels->data : "");
	sample.labels = line.length;
	text_add(&line, " %.15g", value);
	if (!line.truncated) {
		add_line(exposition, sample, bytes);
	}
}

void exposition_add(struct exposition *exposition, const char *family, const char *help,
	const struct text *labels, double value)
{
	struct sample sample = {
		.help = help, .type = text_ends_with(family, "_total") ? "counter" : "gauge"};
	add(exposition, sample, family, "", labels, value);
}

void exposition_add_summary(struct exposition *exposition, const char *family, const char *help,
	const struct text *labels, const char *part, double value)
{
	char bytes[LABELS_SIZE];
	char suffix[16] = "";
	struct text all = TEXT_IN(bytes);
	struct sample sample = {.help = help, .type = "summary"};
	text_add(&all, "%s", labels->data);
	all.truncated = labels->truncated;
	if (isdigit((unsigned char)part[0])) {
		exposition_label(&all, "quantile", part);
	} else {
		snprintf(suffix, sizeof(suffix), "_%s", part);
	}
	add(exposition, sample, family, suffix, &all, value);
}

static int compare(const void *a, const void *b)
{
	const struct sample *left = a, *right = b;
	size_t shorter = left->family < right->family ? left->family : right->family;
	int order = memcmp(left->line, right->line, shorter);
	if (order == 0 && left->family != right->family) {
		return left->family < right->family ? -1 : 1;
	}
	return order != 0 ? order : strcmp(left->line, right->line);
}

static bool same(const struct sample *a, size_t length_a, const struct sample *b, size_t length_b)
{
	return length_a == length_b && memcmp(a->line, b->line, length_a) == 0;
}

int exposition_write(struct exposition *exposition, FILE *out)
{
	if (exposition->out_of_memory) {
		return -ENOMEM;
	}
	if (exposition->count > 0) {
		qsort(exposition->samples, exposition->count, sizeof(struct sample), compare);
	}
	const struct sample *last = NULL;
	for (size_t i = 0; i < exposition->count; i++) {
		const struct sample *sample = &exposition->samples[i];
		int family = (int)sample->family;
		if (!last || !same(last, last->family, sample, sample->family)) {
			fprintf(out, "# HELP %.*s %s\n", family, sample->line, sample->help);
			fprintf(out, "# TYPE %.*s %s\n", family, sample->line, sample->type);
		} else if (same(last, last->labels, sample, sample->labels)) {
			continue;
		}
		fprintf(out, "%s\n", sample->line);
		last = sample;
	}
	return 0;
}

void exposition_finish(struct exposition *exposition)
{
	for (size_t i = 0; i < exposition->count; i++) {
		free(exposition->samples[i].line);
	}
	free(exposition->samples);
	*exposition = (struct exposition){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* document.c: writes JUnit as Jenkins, GitLab and GitHub's actions read it, and saves output. */
#include "client/edgeprofctl/compare/document.h"

#include <errno.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/trace/trace.h"

const char *document_begin(struct ctl *ctl)
{
	if (ctl->options.output || ctl->options.format) {
		ctl->style.color = ctl->style.tty = false;
		ctl->style.width = 0;
	}
	return ctl->options.format ? ctl->options.format : "text";
}

int document_end(struct ctl *ctl, int status)
{
	const char *path = ctl->options.output;
	struct trace_file file;
	if (!path) {
		return status;
	}
	fflush(ctl->output.stream);
	int r = ferror(ctl->output.stream) ? -ENOMEM : trace_file_open(path, &file);
	if (r == 0) {
		fwrite(ctl->output.bytes, 1, ctl->output.size, file.stream);
		r = trace_file_finish(&file);
	}
	output_finish(&ctl->output);
	r = output_open(&ctl->output) < 0 && r == 0 ? -ENOMEM : r;
	return r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "cannot write '%s': %s", path, strerror(-r))
		     : status;
}

void document_escape(FILE *out, const char *text, const char *special)
{
	for (; *text != '\0'; text++) {
		const char *name = *text == '<'	  ? "&lt;"
				   : *text == '>' ? "&gt;"
				   : *text == '&' ? "&amp;"
				   : *text == '"' ? "&quot;"
						  : NULL;
		bool control = (unsigned char)*text < ' ' && *text != '\n' && *text != '\t';
		fputs(strchr(special, *text) ? "\\" : "", out);
		if (name) {
			fputs(name, out);
		} else {
			fputc(control ? '?' : *text, out);
		}
	}
}

void document_add_case(cJSON *cases, const char *name, const char *result, const char *message)
{
	cJSON *item = ctl_parameters("name", name);
	cJSON_AddStringToObject(item, "result", result);
	cJSON_AddStringToObject(item, "message", message);
	cJSON_AddItemToArray(cases, item);
}

void document_junit(FILE *out, const char *suite, const cJSON *cases)
{
	static const char *const elements[][3] = {{"failed", "failure", "failures"},
		{"unknown", "error", "errors"}, {"skipped", "skipped", "skipped"}};
	const size_t count = sizeof(elements) / sizeof(elements[0]);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"%s\" tests=\"%d\"",
		suite, cJSON_GetArraySize(cases));
	for (size_t i = 0; i < count; i++) {
		int found = 0;
		for (const cJSON *item = cases->child; item; item = item->next) {
			found += strcmp(json_word(item, "result"), elements[i][0]) == 0;
		}
		fprintf(out, " %s=\"%d\"", elements[i][2], found);
	}
	fputs(">\n", out);
	for (const cJSON *item = cases->child; item; item = item->next) {
		fprintf(out, "  <testcase classname=\"edgeprof.%s\" name=\"", suite);
		document_escape(out, json_word(item, "name"), "");
		fputs("\">", out);
		for (size_t i = 0; i < count; i++) {
			if (strcmp(json_word(item, "result"), elements[i][0]) == 0) {
				fprintf(out, "\n    <%s message=\"", elements[i][1]);
				document_escape(out, json_word(item, "message"), "");
				fputs("\"/>\n  ", out);
			}
		}
		fputs("</testcase>\n", out);
	}
	fputs("</testsuite>\n", out);
}

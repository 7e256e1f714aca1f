/* SPDX-License-Identifier: Apache-2.0 */
/* document.c: writes JUnit as Jenkins, GitLab and GitHub's actions read it, and saves output. */
#include "client/edgeprofctl/compare/document.h"

#include <errno.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/trace/trace.h"

void document_begin(struct ctl *ctl)
{
	if (ctl->options.output) {
		ctl->style.color = ctl->style.tty = false;
		ctl->style.width = 0;
	}
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

void document_xml(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		const char *name = *text == '<'	  ? "&lt;"
				   : *text == '>' ? "&gt;"
				   : *text == '&' ? "&amp;"
				   : *text == '"' ? "&quot;"
						  : NULL;
		bool control = (unsigned char)*text < ' ' && *text != '\n' && *text != '\t';
		if (name) {
			fputs(name, out);
		} else {
			fputc(control ? '?' : *text, out);
		}
	}
}

static int count(const cJSON *cases, const char *result)
{
	int found = 0;
	for (const cJSON *item = cases->child; item; item = item->next) {
		found += strcmp(json_word(item, "result"), result) == 0;
	}
	return found;
}

void document_junit(FILE *out, const char *suite, const cJSON *cases)
{
	static const struct {
		const char *result, *element;
	} elements[] = {{"failed", "failure"}, {"unknown", "error"}, {"skipped", "skipped"}};
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"%s\" tests=\"%d\" "
		"failures=\"%d\" errors=\"%d\" skipped=\"%d\">\n",
		suite, cJSON_GetArraySize(cases), count(cases, "failed"), count(cases, "unknown"),
		count(cases, "skipped"));
	for (const cJSON *item = cases->child; item; item = item->next) {
		fprintf(out, "  <testcase classname=\"edgeprof.%s\" name=\"", suite);
		document_xml(out, json_word(item, "name"));
		fputs("\">", out);
		for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
			if (strcmp(json_word(item, "result"), elements[i].result) == 0) {
				fprintf(out, "\n    <%s message=\"", elements[i].element);
				document_xml(out, json_word(item, "message"));
				fputs("\"/>\n  ", out);
			}
		}
		fputs("</testcase>\n", out);
	}
	fputs("</testsuite>\n", out);
}

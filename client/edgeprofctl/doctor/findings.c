/* Rows of doctor's report. They are JSON from the start: text and -j show the same. */
#include "client/edgeprofctl/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

const char *finding_name(enum finding state)
{
	switch (state) {
	case FINDING_OK:
		return "ok";
	case FINDING_HINT:
		return "hint";
	case FINDING_PROBLEM:
		return "problem";
	}
	return "";
}

void finding_add(cJSON *checks, enum finding state, const char *name, const char *fix,
	const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "name", name);
	cJSON_AddStringToObject(row, "state", finding_name(state));
	cJSON_AddStringToObject(row, "text", text);
	if (fix != NULL) {
		cJSON_AddStringToObject(row, "fix", fix);
	}
	if (!cJSON_AddItemToArray(checks, row)) {
		cJSON_Delete(row);
	}
}

int findings_count(const cJSON *checks, enum finding state)
{
	int count = 0;
	for (const cJSON *row = checks == NULL ? NULL : checks->child; row != NULL;
		row = row->next) {
		count += strcmp(json_word(row, "state"), finding_name(state)) == 0;
	}
	return count;
}

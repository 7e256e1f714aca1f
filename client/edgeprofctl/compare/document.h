/* SPDX-License-Identifier: Apache-2.0 */
/* document.h: writes results in the formats that CI systems read, to the output or to a file. */
#pragma once

#include <stdio.h>

#include "client/edgeprofctl/ctl.h"

/* Before text is shown: where --format or --output is given, no colours, and lines as long as they
 * need to be. Returns the format. */
const char *document_begin(struct ctl *ctl);

/* With --output, what was written so far goes there instead, to a file that appears only when it is
 * complete. Returns the status, or CTL_OUTPUT after a message. */
int document_end(struct ctl *ctl, int status);

/* Adds {"name", "result", "message"}. */
void document_add_case(cJSON *cases, const char *name, const char *result, const char *message);
/* JUnit XML of them; a result is passed, failed, unknown (an error), or skipped. */
void document_junit(FILE *out, const char *suite, const cJSON *cases);

/* A text with what XML and HTML reserve escaped, and backslashes in front of the `special`
 * characters; control characters become '?'. */
void document_escape(FILE *out, const char *text, const char *special);

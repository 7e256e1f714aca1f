/* SPDX-License-Identifier: Apache-2.0 */
/* document.h: writes test results for CI systems, and saves output to a file. */
#pragma once

#include <stdio.h>

#include "client/edgeprofctl/ctl.h"

/* Before text is shown: with --output, no colours, and lines as long as they need to be. */
void document_begin(struct ctl *ctl);

/* With --output, what was written so far goes there instead, to a file that appears only when it is
 * complete. Returns the status, or CTL_OUTPUT after a message. */
int document_end(struct ctl *ctl, int status);

/* JUnit XML of an array of {"name", "result", "message"}: passed, failed, unknown (an error), or
 * skipped. */
void document_junit(FILE *out, const char *suite, const cJSON *cases);

/* A text with what XML reserves escaped; control characters become '?'. */
void document_xml(FILE *out, const char *text);

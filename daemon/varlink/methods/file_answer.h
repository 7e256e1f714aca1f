/* SPDX-License-Identifier: Apache-2.0 */
/* file_answer.h: answers a call by the text of a file, in parts. */
#pragma once

#include "daemon/varlink/server/api.h"

/* The file DIR/NAME.jsonl; what: "recording" or "session", for NotFound. begins: it may not be
 * there yet, and is empty then. Only names of a table may come here. */
enum api_result file_answer(
	struct api_call *call, const char *what, const char *dir, const char *name, bool begins);

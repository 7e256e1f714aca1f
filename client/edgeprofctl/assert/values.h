/* SPDX-License-Identifier: Apache-2.0 */
/* values.h: looks up the values that conditions name, of the daemon or of what was recorded. */
#pragma once

#include "client/edgeprofctl/assert/expression.h"
#include "client/edgeprofctl/ctl.h"
#include "proto/mapping.h"

struct data;

struct values {
	struct ctl *ctl;
	struct data *data; /* NULL: what the daemon has now */
	cJSON *frames;	   /* the row of the app; NULL: not read yet */
	cJSON *stages;	   /* the rows of the app */
	char reason[256];  /* why there are none */
};

struct value {
	double number;		     /* in the unit that was typed; NAN: not known */
	char unit[PROTO_LABEL_SIZE]; /* its own: "ms", "celsius" …; "" = none */
	char reason[256];	     /* where it is not known */
};

/* Looks up what the term compares: of a metric that was recorded, the value that is worst for it. A
 * name that cannot be one, or a unit that does not fit, is CTL_USAGE after a message; what is not
 * known is not an error. */
int value_of(struct values *values, const struct term *term, struct value *ret);

/* Frees what was read; the next value is read again. */
void values_forget(struct values *values);

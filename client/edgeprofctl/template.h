/* SPDX-License-Identifier: Apache-2.0 */
/* template.h: expands text with members of a JSON object, for the tables that verbs show. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "proto/text.h"

/*
 * Appends the template to the text. In it
 *   {name:format}  is a member: 0, 1, 2 … decimals, +1 (with a sign), count, bytes, amount (either,
 *                  by the member "unit"), KiB, MB, MB0 (without decimals), +MB (with a sign), share
 *                  (percent), s or ms (spans), ago, time, clock, us (in milliseconds), g, g4, g6
 *                  (digits), value (in the unit that "unit" names), or a unit of format_value;
 *                  without a format text as it is or a whole number. What is absent or null is
 *                  "-", a text without a format "". An array is the number of its items; {a.b} is
 *                  the member b of the member a, {} the object itself;
 *   {?name} {!name} print nothing: the member is (not) true, a number above 0, a text, or an array
 *                  with items; {?name=word} the member is that word, {?name>=3} it is at least 3;
 *   {name:is}      prints nothing: the member is there;
 *   {~warn}        prints a mark of style.h: what follows has that tone; {~:name} the tone of the
 *                  state that the member names;
 *   {, }           is ", ", unless nothing has been printed yet;
 *   {*name,-}…{/}  is the part up to {/} for each item of the array, with "-" (what follows the
 *                  comma, which may be absent) between them; absent when that is nothing;
 *   {>}            is an arrow between blanks;
 *   [first|second] is the first, unless something in it is absent or not so; then the second, if
 *                  there is one. Groups may contain groups;
 *   \[ \] \|       are those characters.
 */
void template_add(struct text *text, const char *template, const cJSON *object, bool utf8);

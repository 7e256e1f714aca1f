/* SPDX-License-Identifier: Apache-2.0 */
/* template.h: expands text with members of a JSON object, for the tables that verbs show. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "proto/text.h"

/*
 * Appends the template to the text. In it
 *   {name:format}  is a member: 0, 1, 2 … decimals, count, bytes, amount (either, by the member
 *                  "unit"), KiB, MB, MB0 (without decimals), +MB (with a sign), share (percent),
 *                  s or ms (spans), ago, time, clock, us (in milliseconds), g, g4, g6 (digits),
 *                  value (in the unit that "unit" names), or a unit of format_value; without a
 *                  format text as it is or a whole number. What is absent or null is "-", a text
 *                  without a format "";
 *   {?name} {!name} print nothing: the member is (not) true, a number above 0, or a text;
 *   {name:is}      prints nothing: the member is there;
 *   [first|second] is the first, unless something in it is absent or not so; then the second, if
 *                  there is one. Groups may contain groups.
 */
void template_add(struct text *text, const char *template, const cJSON *object, bool utf8);

/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h: reads the texts that say how a board is set: nvpmodel's status and configuration,
 * governors. Pure, so that every odd file is a line in a test. */
#pragma once

#include <stddef.h>

/* "pmode:0002": the mode's number, or -EBADMSG. */
int modes_parse_status(const char *text);

/* The name of mode id in nvpmodel.conf ("< POWER_MODEL ID=2 NAME=MAXN >"). 0, or -ENOENT (name
 * untouched). */
int modes_find_name(const char *conf, int id, char *name, size_t size);

/* The budget that a mode's name states ("15W", "MODE_30W_ALL"), in milliwatts; 0 = none (MAXN). */
double modes_budget_mw(const char *name);

/* Adds a word to a list with commas, once; what does not fit is skipped. */
void modes_add_word(char *list, size_t size, const char *word);

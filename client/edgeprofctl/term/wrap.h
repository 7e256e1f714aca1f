/* SPDX-License-Identifier: Apache-2.0 */
/* wrap.h: breaks lines that are longer than the terminal is wide. */
#pragma once

#include <stdio.h>

/* Writes the text, of clean UTF-8 and the escape sequences of style_on. A long line is broken at
 * blanks; it continues below the last column that begins in its left part, else indented by 4. A
 * word is never broken. */
void wrap_write(const char *text, unsigned width, FILE *out);

/* The process's names: of stages, marks and gauges together. */
#pragma once

#include <stdint.h>

/* Finds or adds. The number, or -1: the table is full, the name NULL or empty, or the call comes
 * from a signal handler inside another and the name is new. */
int names_declare(const char *name, const char *category, const char *unit, uint64_t deadline_ns);
/* The same of a stage, which is another one on each compute unit. */
int names_declare_stage(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns);

/* The same for the text of a mark, which people read: kept as it is, as far as it fits. */
int names_declare_label(const char *label);

/* Writes the whole table into a new mapping. Under process.lock. */
void names_copy(void *map);

/* The name of a declared stage. */
const char *names_label(uint32_t stage);

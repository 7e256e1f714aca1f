/*
 * Small files of the machine, below a directory that stands for "/" (tests), and the drop-ins and
 * boot parameters that doctor proposes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads at most size - 1 bytes of root/path and ends them with NUL, without the last newline. The
 * length, or the negative errno of open or read; -ENAMETOOLONG. */
ssize_t machine_read(const char *root, const char *path, char *ret, size_t size);
bool machine_has(const char *root, const char *path);

/* True when the text has the word, delimited by blanks or newlines. */
bool machine_word(const char *text, const char *word);

/* The command that adds a parameter to the kernel's command line, by the boot loader that is
 * there; without one that is known, the advice in words. */
void machine_fix_boot(const char *root, const char *parameter, char *ret, size_t size);

/* Where the drop-ins of systemd/dropins/ are installed; no slash in front. */
extern const char *const machine_dropins;

/* The command that gives edgeprofd.service the drop-in NAME.conf and restarts it: the shipped file
 * when it is installed, else one with these lines (\n escaped for printf). */
void machine_fix_service(
	const char *root, const char *name, const char *lines, char *ret, size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.h: answers clients of a daemon that cannot start because of its configuration. */
#pragma once

/* Accepts all who wait on the listening socket of Varlink that the service manager passed, replies
 * to each with the error ConfigurationInvalid, and closes the socket. The text, which may quote the
 * files, is for root and the daemon's own user. Left waiting they would make the service manager
 * start the daemon again and again. Takes 1 s at most. fd < 0: does nothing. */
void refusal_answer(int fd, const char *text);

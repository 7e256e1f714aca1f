/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h: runs the one thread that talks to brokers, for as long as the daemon runs. It runs one
 * link (link.c) after another: after a reload the next one begins when the previous one has ended,
 * also when that hangs in a call that cannot be interrupted (name resolution, a connection into a
 * black hole). So no reload ever adds a thread.
 */
#pragma once

#include <stdbool.h>

struct mqtt_thread;

/* -ENOMEM, -EAGAIN: the thread cannot be started. */
int mqtt_thread_create(struct mqtt_thread **ret);

/* After all that was given to it was taken back, has ended or was abandoned: in the last case the
 * thread frees everything when its call returns. NULL is fine. */
void mqtt_thread_destroy(struct mqtt_thread *thread);

/* Runs run(ctx) when the previous one has ended; at most one waits. False: it has to wait. */
bool mqtt_thread_run(struct mqtt_thread *thread, void (*run)(void *ctx), void *ctx);

/* Cancels run(ctx). True: it had not started, and will not. */
bool mqtt_thread_take_back(struct mqtt_thread *thread, const void *ctx);

/* Stops waiting for the end of what runs, because it hangs. */
void mqtt_thread_abandon(struct mqtt_thread *thread);

/* Alerts after a reboot ([history] persist): what the boot before left in DIR/alerts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct alerts_load;

/* Fills the memories of alerts (those of alerts_remember and alerts_remember_holds) from DIR/alerts
 * unless they are of this boot already. A thread reads. True: done, or there is nothing to wait
 * for; *ret is NULL. False: the medium takes its time; begin is called on the loop when it has
 * answered, or without an answer after 5 s: the rules are to be judged then, not before. */
typedef void alerts_begin(void *ctx);
bool alerts_load_open(uv_loop_t *loop, const char *dir, void *memory, void *holds,
	const uint8_t boot_id[16], alerts_begin *begin, void *ctx, struct alerts_load **ret);

/* No longer waited for: begin is called now. NULL is fine. */
void alerts_load_give_up(struct alerts_load *load);

/* begin is not called; finishes while the loop runs empty. NULL is fine. */
void alerts_load_close(struct alerts_load *load);

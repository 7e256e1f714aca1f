/*
 * run_merge.h: declares the sum of all kept runs of an app, as an app that queries read like any
 * other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct app;
struct app_run_sum;

/* NULL: no memory. Points into the runs: dead when one of them changes. */
struct app_run_sum *app_run_sum_create(const struct app *app, uint64_t now_ns);
void app_run_sum_destroy(struct app_run_sum *sum);
const struct app *app_run_sum_app(const struct app_run_sum *sum);
/* It is the sum of this app at this time. */
bool app_run_sum_is_of(const struct app_run_sum *sum, const struct app *app, uint64_t now_ns);

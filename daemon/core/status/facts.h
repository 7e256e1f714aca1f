/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h: describes this machine and this run; plain data, written once at the start by host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct machine_facts {
	char version[32];
	char hostname[65];
	char model[128]; /* device tree model, DMI product, or "" */
	char os[128];	 /* PRETTY_NAME of os-release, or "" */
	char kernel[128];
	char arch[32];
	char boot_id[37];
	char boot_reason[16];	     /* how the previous boot ended: orderly, unclean, unknown */
	char boot_reason_detail[96]; /* what that rests on, or why it is unknown */
	char reset_reason[64];	     /* of the firmware; "" = it reports none */
	char config_hash[17];	     /* of the current configuration */
	uint64_t started_ns;
	uint32_t cpus;
	uint64_t page_size;
	bool virtual_machine; /* as far as the processor or the firmware reports it */
	char run_dir[108];
	char history_reason[128]; /* why history is only in memory; "" = it is in the run directory
				   */
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one line of tegrastats costs the daemon: a short one of an old board, a full one of a new
 * one, and a line of some other program. Median of many rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/tegrastats/tegrastats.h"
#include "tests/bench/bench.h"

enum { ROUNDS = 101, LINES = 1000 };

static const char *const lines[][2] = {
	{"nano", "RAM 905/3956MB (lfb 12x2MB) SWAP 3/1978MB (cached 0MB) IRAM 0/252kB(lfb 252kB) "
		 "CPU "
		 "[7%@518,4%@518,2%@518,1%@518] EMC_FREQ 1%@1600 GR3D_FREQ 33%@230 APE 25 "
		 "PLL@26.5C CPU@29C PMIC@50C GPU@27C AO@33.5C thermal@28C POM_5V_IN 2210/1984 "
		 "POM_5V_GPU 163/81 POM_5V_CPU 245/226"},
	{"orin",
		"05-09-2026 18:42:06 RAM 7120/62840MB (lfb 20x4MB) SWAP 9/31420MB (cached 2MB) CPU "
		"[14%@2188,5%@2112,8%@2035,14%@2201,46%@1267,47%@1267,2%@1267,10%@1267,4%@1036,"
		"5%@1036,off,off] EMC_FREQ 3%@2133 GR3D_FREQ 5%@[306,306] NVENC 79%@166 NVDEC off "
		"NVJPG off NVJPG1 off VIC 36%@115 OFA off NVDLA0 off NVDLA1 off PVA0_FREQ off APE "
		"174 cpu@48.5C soc2@45C soc0@46.25C gpu@44.5C tj@49.125C soc1@46C VDD_GPU_SOC "
		"2800mW/2750mW VDD_CPU_CV 1607mW/1607mW VIN_SYS_5V0 4100mW/4090mW"},
	{"other", "bash: tegrastats: command not found"},
};

int main(void)
{
	static struct tegrastats stats;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		double rounds[ROUNDS];
		size_t length = strlen(lines[i][1]);
		for (int round = 0; round < ROUNDS; round++) {
			double start = now_ns();
			for (int k = 0; k < LINES; k++) {
				tegrastats_parse(lines[i][1], length, &stats);
			}
			rounds[round] = (now_ns() - start) / LINES;
		}
		qsort(rounds, ROUNDS, sizeof(rounds[0]), by_value);
		printf("%s, %zu bytes: %.0f ns/line (p95 %.0f), %.0f lines/s\n", lines[i][0],
			length, rounds[ROUNDS / 2], rounds[ROUNDS * 95 / 100],
			1e9 / rounds[ROUNDS / 2]);
	}
	return 0;
}

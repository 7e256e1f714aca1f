/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h: reads the texts in which drivers report how busy a GPU or NPU is. Shown for its test; the
 * rest of gpu.c is a collector. */
#pragma once

enum gpu_scale {
	GPU_PERMILLE, /* Tegra: 0 … 1000 */
	GPU_PERCENT,  /* amdgpu: 0 … 100 */
};

/* "630", "12@300000000Hz" (Rockchip, always percent), "N% …". Percent in *ret: 0; -ENODATA for an
 * empty text, -EBADMSG, -ERANGE beyond 100 %. */
int gpu_load_parse(const char *text, enum gpu_scale scale, double *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* demo_pixels.h: renders moving frames, and converts them into a network's input. */
#pragma once

#include <stdint.h>

enum { FRAME_WIDTH = 320, FRAME_HEIGHT = 240, INPUT_WIDTH = 80, INPUT_HEIGHT = 60 };

struct frame {
	uint64_t id;
	uint8_t rgb[FRAME_HEIGHT][FRAME_WIDTH][3];
};

/* Renders what a camera would see at frame id: bright discs that wander over a noisy gradient. */
void frame_render(struct frame *frame, uint64_t id);

/* Box-filters down to the input size and normalises each channel to mean 0, deviation 1.
 * input: 3 planes of INPUT_HEIGHT x INPUT_WIDTH. */
void frame_preprocess(const struct frame *frame, float *input);

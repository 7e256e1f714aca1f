/* SPDX-License-Identifier: Apache-2.0 */
/* demo_vision.h: renders moving frames, converts them into a network's input, and computes the
 * network: 3x3 convolutions with ReLU, and boxes read from its heat map. */
#pragma once

#include <stddef.h>
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

struct network;

/* load >= 1 multiplies the hidden channels. free(3) it; NULL: no memory. The weights are the same
 * every time. */
struct network *network_create(int load);

/* input as of frame_preprocess. The heat map (INPUT_HEIGHT x INPUT_WIDTH) stays the network's. */
const float *network_infer(struct network *network, const float *input);

struct box {
	int x, y, width, height; /* in pixels of the frame */
	float score;
};

/* The strongest local maxima, at most max. Returns how many. */
size_t network_boxes(const float *heat, struct box *boxes, size_t max);

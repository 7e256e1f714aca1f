/* SPDX-License-Identifier: Apache-2.0 */
/* demo_network.h: computes the demo's network: 3x3 convolutions with ReLU, and boxes read from its
 * heat map. */
#pragma once

#include <stddef.h>

#include "client/examples/demo_pixels.h"

struct network;

/* load >= 1 multiplies the hidden channels. NULL: no memory. The weights are the same every time.
 */
struct network *network_create(int load);
void network_destroy(struct network *network);

/* input as of frame_preprocess. The heat map (INPUT_HEIGHT x INPUT_WIDTH) stays the network's. */
const float *network_infer(struct network *network, const float *input);

struct box {
	int x, y, width, height; /* in pixels of the frame */
	float score;
};

/* The strongest local maxima, at most max. Returns how many. */
size_t network_boxes(const float *heat, struct box *boxes, size_t max);

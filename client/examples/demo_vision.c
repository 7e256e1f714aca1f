/* SPDX-License-Identifier: Apache-2.0 */
/* demo_vision.c: generates camera frames, does the preprocessing of any vision pipeline (it resizes
 * and normalises), and runs a small fully convolutional network with fixed pseudo-random weights:
 * its detections mean little, its cost is real. The last layer is averaged into a heat map. */
#include "client/examples/demo_vision.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	DISCS = 3,
	BOX = FRAME_WIDTH / INPUT_WIDTH,
	LAYERS = 3,
	CHANNELS = 4,
	PLANE = INPUT_WIDTH * INPUT_HEIGHT
};

static void draw_disc(struct frame *frame, int cx, int cy, int radius, const uint8_t rgb[3])
{
	for (int y = cy - radius; y <= cy + radius; y++) {
		for (int x = cx - radius; x <= cx + radius; x++) {
			int dx = x - cx, dy = y - cy;
			if (y >= 0 && y < FRAME_HEIGHT && x >= 0 && x < FRAME_WIDTH &&
				dx * dx + dy * dy <= radius * radius) {
				memcpy(frame->rgb[y][x], rgb, 3);
			}
		}
	}
}

void frame_render(struct frame *frame, uint64_t id)
{
	static const uint8_t colours[DISCS][3] = {{250, 80, 60}, {90, 240, 90}, {80, 120, 255}};
	uint32_t noise = (uint32_t)id * 2654435761u + 1;
	frame->id = id;
	for (int y = 0; y < FRAME_HEIGHT; y++) {
		for (int x = 0; x < FRAME_WIDTH; x++) {
			noise ^= noise << 13;
			noise ^= noise >> 17;
			noise ^= noise << 5;
			uint8_t grey = (uint8_t)(x / 8 + y / 8 + (noise & 15));
			memset(frame->rgb[y][x], grey, 3);
		}
	}
	for (int i = 0; i < DISCS; i++) {
		double angle = (double)id * (0.021 + 0.013 * i) + 2.1 * i;
		int cx = (int)(FRAME_WIDTH / 2 + cos(angle) * (60 + 30 * i));
		int cy = (int)(FRAME_HEIGHT / 2 + sin(angle * 1.3) * (40 + 20 * i));
		draw_disc(frame, cx, cy, 10 + 4 * i, colours[i]);
	}
}

static void normalise(float *plane)
{
	const int count = INPUT_WIDTH * INPUT_HEIGHT;
	double sum = 0, squares = 0;
	for (int i = 0; i < count; i++) {
		sum += (double)plane[i];
		squares += (double)plane[i] * (double)plane[i];
	}
	double mean = sum / count;
	double deviation = sqrt(fmax(squares / count - mean * mean, 1e-6));
	for (int i = 0; i < count; i++) {
		plane[i] = (float)(((double)plane[i] - mean) / deviation);
	}
}

void frame_preprocess(const struct frame *frame, float *input)
{
	for (int c = 0; c < 3; c++) {
		float *plane = input + c * INPUT_WIDTH * INPUT_HEIGHT;
		for (int y = 0; y < INPUT_HEIGHT; y++) {
			for (int x = 0; x < INPUT_WIDTH; x++) {
				int sum = 0;
				for (int i = 0; i < BOX * BOX; i++) {
					sum += frame->rgb[y * BOX + i / BOX][x * BOX + i % BOX][c];
				}
				plane[y * INPUT_WIDTH + x] = (float)sum / (255.0f * BOX * BOX);
			}
		}
		normalise(plane);
	}
}

struct network {
	int channels;
	float *weights[LAYERS]; /* [out][in][9] */
	float *planes[2];
	float heat[PLANE];
	float numbers[]; /* of weights and planes */
};

static int inputs_of(const struct network *network, int layer)
{
	return layer == 0 ? 3 : network->channels;
}

struct network *network_create(int load)
{
	size_t channels = CHANNELS * (size_t)load;
	size_t weights = channels * (3 + (LAYERS - 1) * channels) * 9;
	struct network *network =
		calloc(1, sizeof(*network) + (weights + 2 * channels * PLANE) * sizeof(float));
	if (!network) {
		return NULL;
	}
	float *next = network->numbers;
	network->channels = (int)channels;
	uint32_t random = 20240229;
	for (int i = 0; i < LAYERS; i++) {
		size_t count = channels * (size_t)inputs_of(network, i) * 9;
		network->weights[i] = next;
		float scale = 1.0f / (float)(9 * inputs_of(network, i));
		for (size_t k = 0; k < count; k++) {
			random = random * 1664525u + 1013904223u;
			*next++ = ((float)(random >> 8) / 8388608.0f - 0.7f) * scale;
		}
	}
	network->planes[0] = next;
	network->planes[1] = next + channels * PLANE;
	return network;
}

/* Adds one plane's 3x3 convolution; the border of one pixel stays zero. */
static void convolve(const float *in, const float *w, float *out)
{
	for (int y = 1; y < INPUT_HEIGHT - 1; y++) {
		const float *a = in + (y - 1) * INPUT_WIDTH, *b = a + INPUT_WIDTH;
		const float *c = b + INPUT_WIDTH;
		float *o = out + y * INPUT_WIDTH;
		for (int x = 1; x < INPUT_WIDTH - 1; x++) {
			o[x] += a[x - 1] * w[0] + a[x] * w[1] + a[x + 1] * w[2] + b[x - 1] * w[3] +
				b[x] * w[4] + b[x + 1] * w[5] + c[x - 1] * w[6] + c[x] * w[7] +
				c[x + 1] * w[8];
		}
	}
}

const float *network_infer(struct network *network, const float *input)
{
	const float *in = input;
	for (int layer = 0; layer < LAYERS; layer++) {
		float *out = network->planes[layer % 2];
		int inputs = inputs_of(network, layer);
		memset(out, 0, (size_t)network->channels * PLANE * sizeof(float));
		for (int o = 0; o < network->channels; o++) {
			float *plane = out + (size_t)o * PLANE;
			for (int i = 0; i < inputs; i++) {
				convolve(in + (size_t)i * PLANE,
					network->weights[layer] + (size_t)(o * inputs + i) * 9,
					plane);
			}
			for (int k = 0; k < PLANE; k++) {
				plane[k] = plane[k] > 0 ? plane[k] : 0;
			}
		}
		in = out;
	}
	memset(network->heat, 0, sizeof(network->heat));
	for (int o = 0; o < network->channels; o++) {
		for (int k = 0; k < PLANE; k++) {
			network->heat[k] += in[(size_t)o * PLANE + (size_t)k];
		}
	}
	return network->heat;
}

static int is_peak(const float *heat, int x, int y)
{
	float value = heat[y * INPUT_WIDTH + x];
	for (int dy = -2; dy <= 2; dy++) {
		for (int dx = -2; dx <= 2; dx++) {
			if (heat[(y + dy) * INPUT_WIDTH + x + dx] > value) {
				return 0;
			}
		}
	}
	return value > 0;
}

/* How far the heat stays above half of the peak, in one direction. */
static int reach(const float *heat, int at, int step, int limit)
{
	int n = 0;
	while (n < limit && heat[at + (n + 1) * step] > heat[at] / 2) {
		n++;
	}
	return n;
}

size_t network_boxes(const float *heat, struct box *boxes, size_t max)
{
	const int scale = FRAME_WIDTH / INPUT_WIDTH;
	size_t count = 0;
	for (int y = 2; y < INPUT_HEIGHT - 2; y++) {
		for (int x = 2; x < INPUT_WIDTH - 2; x++) {
			if (!is_peak(heat, x, y)) {
				continue;
			}
			int at = y * INPUT_WIDTH + x;
			int left = reach(heat, at, -1, x), up = reach(heat, at, -INPUT_WIDTH, y);
			int right = reach(heat, at, 1, INPUT_WIDTH - 1 - x);
			int down = reach(heat, at, INPUT_WIDTH, INPUT_HEIGHT - 1 - y);
			struct box box = {(x - left) * scale, (y - up) * scale,
				(left + right + 1) * scale, (up + down + 1) * scale, heat[at]};
			/* kept in order of score; the weakest falls out */
			size_t place = count;
			while (place > 0 && boxes[place - 1].score < box.score) {
				place--;
			}
			if (place >= max) {
				continue;
			}
			count = count < max ? count + 1 : max;
			memmove(&boxes[place + 1], &boxes[place],
				(count - 1 - place) * sizeof(boxes[0]));
			boxes[place] = box;
		}
	}
	return count;
}

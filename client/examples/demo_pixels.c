/* SPDX-License-Identifier: Apache-2.0 */
/* demo_pixels.c: generates camera frames and does the preprocessing of any vision pipeline: it
 * resizes and normalises. */
#include "client/examples/demo_pixels.h"

#include <math.h>
#include <string.h>

enum { DISCS = 3, BOX = FRAME_WIDTH / INPUT_WIDTH };

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

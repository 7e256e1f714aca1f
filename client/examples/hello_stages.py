#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pipeline of three stages, profiled. Run it beside a daemon and look at it with
`edgeprofctl watch`, or alone: with EDGEPROF_PRINT=1 it prints every stage.

usage: hello_stages.py [FRAMES]"""
import sys
import time

import edgeprof


def capture(number):
    time.sleep(0.002)
    return [(number * 31 + i * 17) % 256 for i in range(4096)]


@edgeprof.timed("preprocess")
def preprocess(image):
    return [value / 255.0 for value in image]


def infer(image):
    return sum(value * value for value in image)


def main():
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    edgeprof.connect("hello")
    edgeprof.deadline("infer", 10)  # a run over 10 ms is a miss
    with edgeprof.memory_scope("load model") as memory:
        weights = bytearray(4 << 20)
    edgeprof.mark("model loaded", delta_mb=memory.delta_bytes / 2**20)
    for number in range(frames):
        with edgeprof.frame(number):
            with edgeprof.stage("capture"):
                image = capture(number)
            image = preprocess(image)
            with edgeprof.stage("infer", unit="cpu"):
                score = infer(image)
        edgeprof.gauge("score", score)
    print("%d frames, %d MiB of weights" % (frames, len(weights) >> 20))


if __name__ == "__main__":
    main()

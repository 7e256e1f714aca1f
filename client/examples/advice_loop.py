#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A loop that works less while the machine is hot, throttles or its frames come late, and as before
when that is over. It says each second what it was advised and what it did: `reduced 20 of 30`.

usage: advice_loop.py [FPS [WORK_MS [SECONDS]]]"""
import sys
import time

import edgeprof


def infer(advice, work_s):
    small = advice is not None and advice.level == "minimal"  # the model of half the size
    time.sleep(work_s / 2 if small else work_s)


def main():
    fps, work_ms, seconds = [int(word) for word in sys.argv[1:4]] + [30, 5, 10][len(sys.argv) - 1 :]
    edgeprof.connect("advice-loop-py")
    edgeprof.deadline(None, 1000 / fps)
    camera, worked = time.monotonic(), 0
    for number in range(seconds * fps):
        camera += 1 / fps
        time.sleep(max(0.0, camera - time.monotonic()))
        advice = edgeprof.advice()
        if not edgeprof.should_skip():
            with edgeprof.frame(number), edgeprof.stage("infer"):
                infer(advice, work_ms / 1000)
            worked += 1
        if (number + 1) % fps == 0:
            print("%s %d of %d" % (advice.level if advice else "none", worked, fps), flush=True)
            worked = 0


if __name__ == "__main__":
    main()

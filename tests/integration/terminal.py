# SPDX-License-Identifier: Apache-2.0
"""A terminal for tests: a program in a pty, and what its screen shows. It knows the control sequences of
the terminals xterm, screen, linux and vt100 that ncurses uses; any other one is an error."""
import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

PATIENCE = 30
TOKEN = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z@])|\x1b([()][0AB]|[78=>cM]|\]104\x07)|([\x00-\x1f])|(.)", re.S)


class Screen:
    """The cells that the bytes of a program leave. scroll is the region that line feeds move."""

    def __init__(self, columns, rows):
        self.alternate = self.ended = False
        self.colors = set()
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0
        self.scroll = (0, rows - 1)
        self.wrap = False
        self.last = " "

    def text(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, text):
        self.fed = text
        for private, numbers, final, escape, control, plain in TOKEN.findall(text):
            if plain:
                self.put(plain)
            elif control:
                self.control(control)
            elif escape:
                self.move(escape)
            else:
                self.sequence(private, [int(n or 0) for n in numbers.split(";")], final)

    def put(self, character):
        assert unicodedata.category(character) not in ("Cc", "Cf"), f"{character!r} reached the terminal"
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if self.wrap or self.x + width > self.columns:
            self.x, self.wrap = 0, False
            self.feed_line()
        self.cells[self.y][self.x] = self.last = character
        if width == 2:
            self.cells[self.y][self.x + 1] = ""
        self.x += width
        if self.x >= self.columns:
            self.x, self.wrap = self.columns - 1, True

    def feed_line(self):
        if self.y == self.scroll[1]:
            self.shift(self.scroll[0], 1)
        else:
            self.y = min(self.y + 1, self.rows - 1)

    def shift(self, top, count):
        """Lines from top to the end of the region move up; down when count is below 0."""
        bottom = self.scroll[1]
        for _ in range(abs(count)):
            self.cells.insert(bottom + 1 if count > 0 else top, [" "] * self.columns)
            del self.cells[top if count > 0 else bottom + 1]

    def control(self, character):
        self.wrap = False
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.feed_line()
        elif character == "\b":
            self.x = max(0, self.x - 1)
        else:
            assert character in "\x0e\x0f\x00", f"{character!r} reached the terminal: {self.fed!r}"

    def move(self, escape):
        if escape == "M" and self.y == self.scroll[0]:
            self.shift(self.y, -1)
        elif escape == "M":
            self.y -= 1

    def sequence(self, private, numbers, final):
        n = max(numbers[0], 1)
        self.wrap = self.wrap and final == "m"
        if private or final in "hlt":
            if numbers[0] in (1049, 47):
                self.alternate, self.ended = final == "h", final == "l"
        elif final in "Hf":
            self.y, self.x = n - 1, max((numbers + [1])[1], 1) - 1
        elif final in "ABCD":
            self.y += {"A": -n, "B": n}.get(final, 0)
            self.x += {"C": n, "D": -n}.get(final, 0)
        elif final == "G":
            self.x = n - 1
        elif final == "d":
            self.y = n - 1
        elif final == "m":
            self.colors |= {v for v in numbers if 30 <= v < 50 and v not in (39, 49)}
        elif final == "r":
            self.scroll = (n - 1, min((numbers + [self.rows])[1], self.rows) - 1)  # may be of an older size
            self.x = self.y = 0
        else:
            self.change(n, numbers[0], final)
        self.x, self.y = min(max(self.x, 0), self.columns - 1), min(max(self.y, 0), self.rows - 1)

    def change(self, n, number, final):
        row = self.cells[self.y]
        if final == "K":
            row[0 if number else self.x:self.x + 1 if number == 1 else None] = \
                [" "] * (self.x + 1 if number == 1 else self.columns - (0 if number else self.x))
        elif final == "J":
            for y in range(0 if number == 2 else self.y, self.rows):
                start = self.x if y == self.y and number == 0 else 0
                self.cells[y][start:] = [" "] * (self.columns - start)
        elif final == "X":
            row[self.x:self.x + n] = [" "] * min(n, self.columns - self.x)
        elif final == "b":
            for _ in range(n):
                self.put(self.last)
        elif final == "@":
            row[self.x:self.x] = [" "] * n
            del row[self.columns:]
        elif final == "P":
            del row[self.x:self.x + n]
            row.extend([" "] * (self.columns - len(row)))
        elif final in "LM":
            self.shift(self.y, n if final == "M" else -n)
        elif final in "ST":
            self.shift(self.scroll[0], n if final == "S" else -n)
        else:
            raise AssertionError(f"unknown sequence {final!r}")


class Terminal:
    """A program that runs in a terminal of that size."""

    def __init__(self, command, columns, rows, **environment):
        self.main, side = pty.openpty()
        self.side = side  # open until the end: what the terminal is left as can be read
        self.before = termios.tcgetattr(side)
        self.screen, self.raw = Screen(columns, rows), b""
        self.pending, self.decoder = "", codecs.getincrementaldecoder("utf-8")("replace")
        self.size(columns, rows)
        self.child = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, start_new_session=True,
                                      env=dict(os.environ, **environment),
                                      preexec_fn=lambda: fcntl.ioctl(side, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self.main)
        os.close(self.side)

    def size(self, columns, rows):
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.main, text.encode())

    def read(self, seconds):
        ready, _, _ = select.select([self.main], [], [], seconds)
        data = os.read(self.main, 65536) if ready else b""
        self.raw += data
        text = self.pending + self.decoder.decode(data)
        cut = re.search(r"\x1b(\[[?0-9;]*|[()]|\]\d*)?$", text)
        end = cut.start() if cut else len(text)
        self.screen.feed(text[:end])
        self.pending = text[end:]
        return bool(data)

    def until(self, what, condition):
        """Waits until the lines of the screen are so that condition(lines) is true; returns them."""
        end = time.monotonic() + PATIENCE
        while not condition(self.screen.text()):
            assert time.monotonic() < end, f"it never came true: {what}\n" + "\n".join(self.screen.text())
            self.read(0.1)
        return self.screen.text()

    def shows(self, text):
        return self.until(f"the screen shows {text!r}", lambda lines: any(text in line for line in lines))

    def lacks(self, text):
        return self.until(f"the screen lacks {text!r}", lambda lines: not any(text in line for line in lines))

    def ends(self):
        """Waits for the end of the program; its status."""
        end = time.monotonic() + PATIENCE
        while self.child.poll() is None or self.read(0):
            assert time.monotonic() < end, "the program does not end"
            self.read(0.1)
        return self.child.returncode

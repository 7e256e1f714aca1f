# SPDX-License-Identifier: Apache-2.0
"""A disk that fails when a test says so: a FUSE file system with one file, for a loop device. What is
written while `error` is set is refused with it. Needs root."""
import struct

from fuse_files import DIRECT_IO, FuseFiles, GETATTR, LOOKUP, OPEN, READ

SETATTR, WRITE, FSYNC = 4, 16, 20


class FuseImage(FuseFiles):
    """with FuseImage(folder, "image", bytes) as image: … image.error = errno.EIO"""

    def __init__(self, folder, name, content):
        self.content = bytearray(content)
        self.error = 0
        self.refused = 0
        super().__init__(folder, {name: ""})

    def attributes(self, node):
        if node == 1:
            return super().attributes(node)
        size = len(self.content)
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, size // 512, 0, 0, 0, 0, 0, 0, 0o100600, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node, body):
        if node < 2 or opcode in (LOOKUP, GETATTR):
            return super().answer(opcode, node, body)
        if opcode == SETATTR:
            return 0, struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == OPEN:
            return 0, struct.pack("<QII", 0, DIRECT_IO, 0)
        if opcode == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            return 0, bytes(self.content[offset:offset + size])
        if opcode == WRITE:
            offset, size = struct.unpack_from("<QI", body, 8)
            if self.error:
                self.refused += 1
                return self.error, b""
            self.content[offset:offset + size] = body[40:40 + size]
            return 0, struct.pack("<II", size, 0)
        if opcode == FSYNC:
            return 0, b""
        return super().answer(opcode, node, body)

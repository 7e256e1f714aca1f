# SPDX-License-Identifier: Apache-2.0
"""A folder of files that misbehave: a FUSE file system that speaks /dev/fuse itself. Each file can
hang in open or in read, fail, or take its time; everything that hangs can be let go. Needs root."""
import ctypes
import errno
import os
import stat
import struct
import threading

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT = (
    1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 36)
BATCH_FORGET = 42
DIRECT_IO = 1
MNT_DETACH = 2
MOUNT_FLAGS = 2 | 4  # nosuid, nodev


class File:
    def __init__(self, text):
        self.text = text
        self.hangs_in = ""  # "open" or "read"
        self.error = 0
        self.seconds = 0.0  # that open and read take


def mount(folder):
    """The descriptor of the mounted file system; OSError where that is not possible."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode=40755,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"edgeprof-test", str(folder).encode(), b"fuse", MOUNT_FLAGS, options) < 0:
        error = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(error, os.strerror(error))
    return descriptor


class FuseFiles:
    """with FuseFiles(folder, {"type": "cpu\\n"}) as fuse: fuse.file["type"].hangs_in = "open" …"""

    def __init__(self, folder, texts):
        self.folder = folder
        self.file = {name: File(text) for name, text in texts.items()}
        self.names = list(self.file)
        self.held = {}  # unique -> what to answer once it is let go
        self.frozen = False  # nothing at all is answered
        self.asked = 0  # requests that were not answered at once
        self.lock = threading.Lock()
        self.device = mount(folder)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.frozen = False
        self.let_go()
        ctypes.CDLL(None).umount2(str(self.folder).encode(), MNT_DETACH)
        self.thread.join(10)
        os.close(self.device)

    def let_go(self):
        """Nothing hangs any more, and what hung is answered."""
        for file in self.file.values():
            file.hangs_in, file.error, file.seconds = "", 0, 0.0
        self.frozen = False
        with self.lock:
            held, self.held = self.held, {}
        for unique, answer in held.items():
            self.reply(unique, *answer)

    def hanging(self):
        with self.lock:
            return len(self.held)

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 256 * 1024)
            except OSError as error:
                if error.errno == errno.ENODEV:  # unmounted
                    return
                continue
            length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            self.handle(opcode, unique, node, request[40:length])

    def reply(self, unique, error=0, data=b""):
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        except OSError:
            pass  # it was interrupted

    def handle(self, opcode, unique, node, body):
        if opcode in (FORGET, BATCH_FORGET):
            return
        if opcode == INTERRUPT:
            (waiting,) = struct.unpack_from("<Q", body)
            with self.lock:
                known = self.held.pop(waiting, None)
            if known:
                self.reply(waiting, errno.EINTR)
            return
        error, data = self.answer(opcode, node, body)
        file = self.file[self.names[node - 2]] if node >= 2 else None
        what = {OPEN: "open", READ: "read"}.get(opcode)
        if self.frozen or (file and what and file.hangs_in == what):
            with self.lock:
                self.held[unique] = (error, data)
                self.asked += 1
        elif file and what and file.seconds:
            timer = threading.Timer(file.seconds, self.reply, (unique, error, data))
            timer.daemon = True
            timer.start()
        else:
            self.reply(unique, error, data)

    def attributes(self, node):
        mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o444
        size = 0 if node == 1 else 4096  # as sysfs tells
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node, body):
        if opcode == INIT:
            return 0, struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 12, 10, 65536, 1, 1, 0, 0) + bytes(28)
        if opcode == LOOKUP:
            name = body.split(b"\0", 1)[0].decode()
            if name not in self.file:
                return errno.ENOENT, b""
            child = self.names.index(name) + 2
            return 0, struct.pack("<QQQQII", child, 0, 0, 0, 0, 0) + self.attributes(child)
        if opcode == GETATTR:
            return 0, struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return 0, struct.pack("<QII", 0, DIRECT_IO if opcode == OPEN else 0, 0)
        if opcode == READ:
            file = self.file[self.names[node - 2]]
            offset, size = struct.unpack_from("<QI", body, 8)
            return (file.error, b"") if file.error else (0, file.text.encode()[offset:offset + size])
        if opcode == READDIR:
            (offset,) = struct.unpack_from("<Q", body, 8)
            return 0, self.entries() if offset == 0 else b""
        if opcode in (RELEASE, RELEASEDIR, FLUSH):
            return 0, b""
        if opcode == STATFS:
            return 0, bytes(80)
        return errno.ENOSYS, b""

    def entries(self):
        data = b""
        for i, name in enumerate(self.names):
            raw = name.encode()
            data += struct.pack("<QQII", i + 2, i + 1, len(raw), stat.S_IFREG >> 12) + raw
            data += bytes(-len(raw) % 8)
        return data

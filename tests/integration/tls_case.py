# SPDX-License-Identifier: Apache-2.0
"""What tests of encrypted brokers share: authorities, certificates and secrets of their own."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading

import mosquitto

PASSWORD = "gEheim-Wort-4711"
CA_CONF = """\
[ca]
default_ca = any
[any]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = names
unique_subject = no
[names]
commonName = supplied
"""


def openssl(*words, folder):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


class Certificates:
    """An authority and what it signs: PEM files in a folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="edgeprof-tls-")
        pathlib.Path(self.path("ca.conf")).write_text(CA_CONF)
        pathlib.Path(self.path("index")).touch()
        self.authority("ca")

    def path(self, name):
        return os.path.join(self.folder, name)

    def key(self, name):
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key", folder=self.folder)

    def authority(self, name):
        self.key(name)
        openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN=authority {name}", "-days", "30",
                "-addext", "basicConstraints=critical,CA:TRUE", "-out", f"{name}.crt", folder=self.folder)

    def self_signed(self, name):
        self.key(name)
        openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", "/CN=127.0.0.1", "-days", "30",
                "-addext", "subjectAltName=IP:127.0.0.1", "-out", f"{name}.crt", folder=self.folder)

    def signed(self, name, names="IP:127.0.0.1", common="127.0.0.1", ca="ca", expired=False):
        """names may be "": none but the common one."""
        self.key(name)
        openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={common}", "-out", f"{name}.csr", folder=self.folder)
        pathlib.Path(self.path(name + ".ext")).write_text(f"subjectAltName={names}\n" if names else "basicConstraints=CA:FALSE\n")
        # "x509 -req" takes no days in the past from OpenSSL 3.5 on, and no dates before 3.4.
        dates = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"] if expired else ["-days", "30"]
        openssl("ca", "-batch", "-notext", "-config", "ca.conf", "-in", f"{name}.csr", "-cert", f"{ca}.crt", "-keyfile", f"{ca}.key",
                *dates, "-extfile", f"{name}.ext", "-out", f"{name}.crt", folder=self.folder)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def certificates():
    made = Certificates()
    try:
        yield made
    finally:
        made.close()


def server(certs, name="server", more=()):
    return [f"cafile {certs.path('ca.crt')}", f"certfile {certs.path(name + '.crt')}",
            f"keyfile {certs.path(name + '.key')}", *more]


def secret_file(certs, text=PASSWORD + "\n", mode=0o600, name="password"):
    path = certs.path(name)
    pathlib.Path(path).write_text(text)
    os.chmod(path, mode)
    return path


def password_broker(certs, more=()):
    path = certs.path("passwd")
    subprocess.run(["mosquitto_passwd", "-c", "-b", path, "edge", PASSWORD], check=True, capture_output=True)
    return mosquitto.Broker(access="allow_anonymous false", more=[f"password_file {path}", *more])


class Listener:
    """A TCP server that notes every byte it gets and may answer nothing."""

    def __init__(self, answer=b""):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.got = b""
        self.connections = 0
        self.answer = answer
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                self.connections += 1
                connection.settimeout(3)
                with contextlib.suppress(OSError), connection:
                    first = connection.recv(65536)
                    self.got += first
                    connection.sendall(self.answer)
                    while data := connection.recv(65536):
                        self.got += data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MQTT with TLS and passwords against a real mosquitto: who is trusted and who is not, and that a
credential never goes to somebody else, into a log, an answer or a command line."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

from harness import Daemon, run_tests_with_broker, skip, until
from tls_case import PASSWORD, Listener, certificates, password_broker, secret_file, server

import mosquitto

DEVICE = "edge-1"


def settings(port, *more, host="127.0.0.1"):
    return "\n".join(["[sampling]", "interval = 1s", "[mqtt]", f"host = {host}", f"port = {port}",
                      f"device_id = {DEVICE}", *more, ""])


def status(daemon):
    return daemon.call("GetStatus")["broker"]


def connects(daemon):
    until("connected", lambda: status(daemon)["state"] == "connected")
    assert not status(daemon).get("reason"), status(daemon)


def refused(daemon, pattern):
    """It says why, was never connected, and the daemon works."""
    reason = until("it is away and says why", lambda: status(daemon)["state"] == "away" and status(daemon).get("reason"))
    assert re.search(pattern, reason), reason
    assert status(daemon)["connects"] == 0, status(daemon)
    assert daemon.call("GetStatus")["version"]
    return reason


def test_trusted_authority_is_enough():
    with certificates() as certs:
        certs.signed("server")
        with mosquitto.Broker(more=server(certs)) as broker:
            with Daemon(settings(broker.port, f"ca_file = {certs.path('ca.crt')}")) as daemon:
                connects(daemon)


def test_a_fifo_in_the_place_of_a_file_is_refused_until_the_file_is_back():
    with certificates() as certs:
        certs.signed("server")
        with mosquitto.Broker(more=server(certs)) as broker:
            os.mkfifo(certs.path("ours"))
            with Daemon(settings(broker.port, f"ca_file = {certs.path('ours')}")) as daemon:
                refused(daemon, "ca_file.* can't be read")
                shutil.copy(certs.path("ca.crt"), certs.path("new"))
                os.rename(certs.path("new"), certs.path("ours"))
                connects(daemon)


def test_the_system_s_authorities_count_without_a_ca_file():
    with certificates() as certs:
        certs.signed("server")
        more = ["tls = yes", "username = edge", f"password_file = {secret_file(certs)}"]
        with password_broker(certs, server(certs)) as broker:
            with Daemon(settings(broker.port, *more), env={"SSL_CERT_FILE": certs.path("ca.crt")}) as daemon:
                connects(daemon)
            with Daemon(settings(broker.port, *more), env={"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": certs.folder}) as daemon:
                print(refused(daemon, "TLS: .*(issuer|self.signed|verify)"))


def starts_with(config):
    """The exit status and the log of a daemon that does not come up; both also of --check-config."""
    daemon = Daemon(config)
    try:
        daemon.start(wait=False)
        status = daemon.process.wait(60)
        checked = subprocess.run([*daemon.program, str(daemon.config_path), "--check-config"], env=daemon.env,
                                 capture_output=True, text=True, timeout=60)
        assert checked.returncode == status, (checked, status)
        return status, daemon.log(), checked.stderr.replace(str(daemon.config_path), "FILE")
    finally:
        daemon.clean()


CLEAR = "[mqtt]\nhost = {}\n{}username = edge\npassword_file = {}\n"


def test_a_credential_in_clear_text_is_an_error_of_the_configuration():
    with certificates() as certs:
        path = secret_file(certs)
        for more, line in (("", 4), ("port = 1883\n", 5), ("tls = auto\n", 5)):
            status, log, checked = starts_with(CLEAR.format("192.0.2.1", more, path))
            assert status == 78, log
            assert checked.startswith(f"FILE:{line}: [mqtt] password_file: ") and "tls = no" in checked, checked
        status, log, checked = starts_with("[mqtt]\nhost = broker.invalid\nusername = edge\n")
        assert status == 78 and checked.startswith("FILE:3: [mqtt] username: "), checked
        status, log, checked = starts_with("[mqtt]\ntls = maybe\n")
        assert status == 78 and "FILE:2: [mqtt] tls = maybe: expected yes, no or auto" in checked, checked
        for host, more in (("192.0.2.1", "tls = no\n"), ("192.0.2.1", "port = 8883\n"), ("192.0.2.1", "tls = yes\n"),
                           ("192.0.2.1", "enabled = no\n"), ("localhost", ""), ("127.1.2.3", ""), ("::1", "")):
            daemon = Daemon(CLEAR.format(host, more, path))
            checked = subprocess.run([*daemon.program, str(daemon.config_path), "--check-config"],
                                     capture_output=True, text=True, timeout=60)
            daemon.clean()
            assert checked.returncode == 0, (host, more, checked)


def test_a_reload_that_would_expose_a_credential_changes_nothing():
    with certificates() as certs, Listener() as listener:
        path = secret_file(certs)
        with Daemon(settings(listener.port, "username = edge", f"password_file = {path}")) as daemon:
            until("it connects", lambda: listener.connections >= 1)
            daemon.config_path.write_text(settings(1883, "username = edge", f"password_file = {path}", host="192.0.2.1"))
            done = daemon.ctl("reload")
            assert done.returncode != 0 and "clear text" in done.stdout + done.stderr, done
            assert status(daemon)["host"] == "127.0.0.1"


def test_tls_yes_encrypts_on_any_port():
    with certificates() as certs, Listener() as listener:
        more = ["tls = yes", "username = edge", f"password_file = {secret_file(certs)}"]
        with Daemon(settings(listener.port, *more)):
            until("it connects", lambda: listener.got)
        assert listener.got.startswith(b"\x16\x03") and PASSWORD.encode() not in listener.got, listener.got[:16]


def test_the_port_follows_the_encryption():
    for more, port in (("", 1883), ("tls = yes\n", 8883), ("tls = no\nca_file = /dev/null\n", 1883), ("cert_file = /dev/null\nkey_file = /dev/null\n", 8883)):
        with Daemon(f"[mqtt]\nhost = 127.0.0.9\n{more}") as daemon:
            assert status(daemon)["port"] == port, (more, status(daemon))


def test_host_name_may_be_in_the_certificate():
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo("localhost", 1, type=socket.SOCK_STREAM)}
    except OSError:
        addresses = set()
    if "127.0.0.1" not in addresses:  # the broker listens there only
        return "this machine has no localhost at 127.0.0.1"
    with certificates() as certs:
        certs.signed("server", names="DNS:localhost", common="whatever")
        with mosquitto.Broker(more=server(certs)) as broker:
            with Daemon(settings(broker.port, f"ca_file = {certs.path('ca.crt')}", host="localhost")) as daemon:
                connects(daemon)


def test_client_certificate_is_given_when_required():
    with certificates() as certs:
        certs.signed("server")
        certs.signed("client", names="DNS:edge-1", common="edge-1")
        with mosquitto.Broker(more=server(certs, more=["require_certificate true"])) as broker:
            with Daemon(settings(broker.port, f"ca_file = {certs.path('ca.crt')}", f"cert_file = {certs.path('client.crt')}",
                                 f"key_file = {certs.path('client.key')}")) as daemon:
                connects(daemon)
            with Daemon(settings(broker.port, f"ca_file = {certs.path('ca.crt')}")) as daemon:
                print(refused(daemon, "TLS.*(client certificate|certificate required)"))


def refuses_server(names, common, pattern, name="server", expired=False, self_signed=False, foreign=False, host="127.0.0.1"):
    with certificates() as certs:
        certs.authority("foreign")
        if self_signed:
            certs.self_signed("server")
        else:
            certs.signed("server", names=names, common=common, expired=expired, ca="foreign" if foreign else "ca")
        more = ["username = edge", f"password_file = {secret_file(certs)}", f"ca_file = {certs.path('ca.crt')}"]
        with password_broker(certs, server(certs)) as broker, Daemon(settings(broker.port, *more, host=host)) as daemon:
            return refused(daemon, pattern)


def test_wrong_name_is_refused():
    print(refuses_server("DNS:other.example", "other.example", "not for the host 127.0.0.1"))


def test_wrong_address_is_refused():
    print(refuses_server("IP:127.0.0.2", "127.0.0.2", "not for the host 127.0.0.1"))


def test_the_common_name_is_no_name():
    """libmosquitto alone would take each of these: the right common name beside no or other names."""
    print(refuses_server("", "127.0.0.1", "not for the host 127.0.0.1"))
    print(refuses_server("IP:127.0.0.2", "127.0.0.1", "not for the host 127.0.0.1"))
    print(refuses_server("email:a@b.example", "127.0.0.1", "not for the host 127.0.0.1"))
    print(refuses_server("DNS:127.0.0.1", "127.0.0.1", "not for the host 127.0.0.1"))  # an address is no DNS name


def test_the_common_name_is_no_name_of_a_host_either():
    """Where a certificate has no DNS names, OpenSSL alone takes the common name."""
    try:
        socket.gethostbyname("localhost")
    except OSError as error:
        return f"localhost: {error}"
    for names in ("", "email:a@b.example", "IP:127.0.0.1"):
        print(refuses_server(names, "localhost", "not for the host localhost", host="localhost"))
    return None


def test_expired_certificate_is_refused():
    print(refuses_server("IP:127.0.0.1", "127.0.0.1", "expired", expired=True))


def test_self_signed_certificate_is_refused():
    print(refuses_server("", "", "self.signed", self_signed=True))


def test_certificate_of_a_foreign_authority_is_refused():
    print(refuses_server("IP:127.0.0.1", "127.0.0.1", "issuer|verify", foreign=True))


def test_tls_against_a_plain_port_is_refused():
    with certificates() as certs, mosquitto.Broker() as broker:
        more = ["username = edge", f"password_file = {secret_file(certs)}", f"ca_file = {certs.path('ca.crt')}"]
        with Daemon(settings(broker.port, *more)) as daemon:
            print(refused(daemon, "TLS: .*without TLS"))


def test_plain_against_a_tls_port_is_refused():
    with certificates() as certs:
        certs.signed("server")
        with mosquitto.Broker(more=server(certs)) as broker, Daemon(settings(broker.port)) as daemon:
            print(refused(daemon, "does the port expect TLS"))


def test_no_credential_is_sent_before_the_server_is_verified():
    with certificates() as certs, Listener() as silent, Listener(b"HTTP/1.1 400 Bad Request\r\n\r\n") as talking:
        path = secret_file(certs)
        for listener in (silent, talking):
            more = ["username = edge", f"password_file = {path}", f"ca_file = {certs.path('ca.crt')}"]
            with Daemon(settings(listener.port, *more)) as daemon:
                until("it tries twice", lambda: listener.connections >= 2, patience=60)
                assert status(daemon)["connects"] == 0
            assert listener.got.startswith(b"\x16\x03"), listener.got[:16]
            for word in (PASSWORD.encode(), b"MQTT", b"edgeprof-"):
                assert word not in listener.got, word


def test_a_server_with_a_wrong_certificate_gets_no_credential():
    """openssl's own server shows in clear what came through: nothing."""
    with certificates() as certs:
        certs.signed("server", names="DNS:other.example", common="other.example")
        certs.signed("common", names="", common="127.0.0.1")
        certs.signed("good")
        for name, comes in (("server", False), ("common", False), ("good", True)):
            port = mosquitto.free_port()
            log = open(certs.path("log"), "wb+")
            child = subprocess.Popen(
                ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", certs.path(name + ".crt"),
                 "-key", certs.path(name + ".key"), "-quiet"], stdout=log, stderr=subprocess.DEVNULL,
                stdin=subprocess.PIPE, preexec_fn=mosquitto.die_with_parent)
            try:
                more = ["username = edge", f"password_file = {secret_file(certs)}", f"ca_file = {certs.path('ca.crt')}"]
                with Daemon(settings(port, *more)) as daemon:
                    read = pathlib.Path(certs.path("log")).read_bytes
                    if comes:  # the check can fail: to a verified server the password does go
                        until("it arrives", lambda: PASSWORD.encode() in read())
                    else:
                        until("it says why", lambda: "not for the host" in (status(daemon).get("reason") or ""))
                        assert read() == b"", read()
            finally:
                child.kill()
                child.wait()
                log.close()


def everything_said(daemon):
    """What others can see of a daemon."""
    words = daemon.log()
    for method in ("GetStatus", "GetSelf", "ListSources", "ListEvents"):
        words += json.dumps(daemon.call(method, **({"from_serial": 0, "limit": 100} if method == "ListEvents" else {})))
    words += pathlib.Path(f"/proc/{daemon.pid}/cmdline").read_bytes().decode(errors="replace")
    words += pathlib.Path(f"/proc/{daemon.pid}/environ").read_bytes().decode(errors="replace")
    for arguments in (("status", "-j"), ("self",), ("snapshot",)):
        done = daemon.ctl(*arguments)
        words += done.stdout + done.stderr
    for path in daemon.run_dir.rglob("*"):
        if path.is_file():
            words += path.read_bytes().decode("latin-1")
    return words


def test_password_of_a_file_is_used_and_told_to_nobody():
    with certificates() as certs, password_broker(certs) as broker:
        path = secret_file(certs)
        more = ["username = edge", f"password_file = {path}"]
        with Daemon("[daemon]\nlog_level = debug\n" + settings(broker.port, *more)) as daemon:
            connects(daemon)
            assert PASSWORD not in everything_said(daemon)
        secret_file(certs, "wrong-" + PASSWORD)
        with Daemon("[daemon]\nlog_level = debug\n" + settings(broker.port, *more)) as daemon:
            refused(daemon, "not authorised")
            assert PASSWORD not in everything_said(daemon)
            secret_file(certs)  # read anew for each connection
            connects(daemon)


def test_password_of_a_credential_is_used():
    with certificates() as certs, password_broker(certs) as broker:
        folder = certs.path("credentials")
        os.mkdir(folder, 0o700)
        path = secret_file(certs, mode=0o440, name="credentials/mqtt-password")  # as systemd shows an access list
        more = ["username = edge", f"password_file = {path}"]
        with Daemon(settings(broker.port, *more), env={"CREDENTIALS_DIRECTORY": folder}) as daemon:
            connects(daemon)
            assert PASSWORD not in everything_said(daemon)
        with Daemon(settings(broker.port, *more)) as daemon:  # the same file is no credential without
            until("off", lambda: status(daemon)["state"] == "off")
            assert "others may read" in status(daemon)["reason"], status(daemon)


def test_password_file_that_others_may_read_is_refused():
    with certificates() as certs, Listener() as listener:
        path = secret_file(certs, mode=0o644)
        more = ["username = edge", f"password_file = {path}"]
        with Daemon(settings(listener.port, *more)) as daemon:
            until("off", lambda: status(daemon)["state"] == "off")
            assert "others may read" in status(daemon)["reason"], status(daemon)
            assert PASSWORD not in everything_said(daemon)
            assert listener.connections == 0
    # made readable later: refused at the next connection
    with certificates() as certs, password_broker(certs) as broker:
        path = secret_file(certs)
        with Daemon(settings(broker.port, "username = edge", f"password_file = {path}")) as daemon:
            connects(daemon)
            os.chmod(path, 0o644)
            broker.restart()
            until("away", lambda: "others may read" in (status(daemon).get("reason") or ""))
            os.chmod(path, 0o600)
            connects(daemon)


def test_a_message_that_the_access_list_forbids_was_not_delivered():
    """MQTT 5 acknowledges it with a refusal; before, only the broker knows."""
    with certificates() as certs:
        rules = certs.path("acl")
        pathlib.Path(rules).write_text("".join(
            f"topic write edgeprof/{DEVICE}/{name}\n" for name in ("status", "info", "summary", "alert/#"))
            + "topic write homeassistant/#\ntopic read homeassistant/status\n")
        os.chmod(certs.folder, 0o755)
        with mosquitto.Broker(more=[f"acl_file {rules}"]) as broker:
            with Daemon(settings(broker.port, "home_assistant = yes")) as daemon:
                connects(daemon)
                until("what is allowed is delivered", lambda: (s := status(daemon))["delivered"] > 0 and not s["queued"])
                assert status(daemon)["dropped_alerts"] == 0
                daemon.ctl("test-alert", check=False)
                until("refused", lambda: status(daemon)["dropped_alerts"] > 0)
                # mosquitto 2.0.11 closes the connection then; that is no sign of a second client
                until("why", lambda: "refuses messages: " in everything_said(daemon))
                # what is on its way behind it is lost with its answer; the next connections get further
                until("the rest is delivered", lambda: (s := status(daemon))["state"] == "connected" and not s["queued"])
                assert status(daemon)["connects"] <= 2 * status(daemon)["dropped_alerts"] + 2, status(daemon)


if __name__ == "__main__":
    if not shutil.which("openssl") or not shutil.which("mosquitto_passwd"):
        skip("openssl or mosquitto_passwd is not installed")
    run_tests_with_broker(dict(globals()))

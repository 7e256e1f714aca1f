# SPDX-License-Identifier: Apache-2.0
"""A small Debian tree with systemd, made once and kept, and booting a copy of it in a container.

Everything that is mounted lives in a mount namespace of this process, so nothing of it outlives a
test, however it ends. What cannot be had on this machine is a Missing with the reason."""
import ctypes
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

CLONE_NEWNS = 0x00020000
CACHE = pathlib.Path("/var/tmp")
BOOT_PATIENCE = 440  # seconds
MAKE_PATIENCE = 900
BASE = ["systemd", "systemd-sysv", "dbus", "python3", "mosquitto", "mosquitto-clients"]
RESULT = pathlib.PurePath("edgeprof-tests/result")
CHECK_UNIT = """\
[Unit]
Description=Checks of edgeprofd
SuccessAction={action}
FailureAction={action}

[Service]
Type=oneshot
{scripts}
StandardOutput=append:/{result}
StandardError=inherit
TimeoutStartSec={patience}
"""
CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Missing(Exception):
    """The machine lacks something; the text says what."""


def require():
    if os.geteuid() != 0:
        raise Missing("needs root (systemd-nspawn)")
    for tool, package in {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}.items():
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed (package {package})")


def own_mount_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise Missing(f"no mount namespace of our own: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def packages_of(programs):
    """The packages of the shared libraries that the programs need, whatever this release calls them."""
    text = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True).stdout
    names = sorted(set(re.findall(r"^\s*(lib\S+) => /(?:usr/)?lib", text, re.M)))
    found = subprocess.run(
        ["dpkg-query", "-S", *(f"*/{name}" for name in names)], capture_output=True, text=True
    ).stdout
    native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True).stdout
    return sorted(set(re.findall(rf"^([^:,\s]+):{native.strip()}: ", found, re.M)))


def tree(programs):
    """The cached tree in which the programs run; made when it is not there."""
    release = platform.freedesktop_os_release()
    suite = os.environ.get("EDGEPROF_SUITE") or release.get("VERSION_CODENAME")
    if not suite:
        raise Missing("this is not a release with a code name that mmdebstrap knows")
    options = ["--components=main,universe"] if release.get("ID") == "ubuntu" else []
    return cached_tree("system", suite, BASE + packages_of(programs), *options)


def cached_tree(kind, suite, packages, *options):
    """The tree of the suite with these packages, for which mmdebstrap gets the options."""
    key = hashlib.sha256(" ".join([*packages, *map(str, options)]).encode()).hexdigest()[:12]
    place = CACHE / f"edgeprof-{kind}-{suite}-{key}"
    if not (place / "etc" / "hosts").exists():
        make_tree(suite, packages, place, options)
    return place


def make_tree(suite, packages, place, options):
    sites = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)"], capture_output=True, text=True
    ).stdout.split()
    sites = [site for site in sites if "security" not in site]
    if not sites:
        raise Missing("apt knows no mirror (apt-get update has not been run)")
    print(f"making {place}", flush=True)
    begun = pathlib.Path(tempfile.mkdtemp(prefix=place.name + ".", dir=CACHE))
    try:
        made = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", *options,
             "--include=" + ",".join(packages), suite, begun / "tree", sites[0]],
            capture_output=True, text=True, timeout=MAKE_PATIENCE,
        )
        if made.returncode != 0:
            raise Missing(f"mmdebstrap could not make the tree: {made.stderr.strip()[-600:]}")
        (begun / "tree" / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        if not place.exists():
            (begun / "tree").rename(place)
    except subprocess.TimeoutExpired:
        raise Missing("mmdebstrap did not finish (is there a network?)") from None
    finally:
        shutil.rmtree(begun, ignore_errors=True)


def writable_copy(lower, scratch, size="256M"):
    """An overlay over the tree. Its upper half is memory: overlay on overlay is refused."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=0755,size={size}", "tmpfs", scratch], check=True)
    for name in ("upper", "work", "tree"):
        (scratch / name).mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o",
         f"lowerdir={lower},upperdir={scratch}/upper,workdir={scratch}/work", scratch / "tree"],
        capture_output=True, text=True,
    )
    if mounted.returncode != 0:
        raise Missing(f"no overlay here: {mounted.stderr.strip()}")
    return scratch / "tree"


def groups_of_nspawn():
    found = []
    for top in (CGROUPS, *CGROUPS.glob("*/")):
        found += [top / name for name in ("payload", "supervisor") if (top / name).is_dir()]
    return set(found)


def remove_groups(groups):
    """Without a service manager nobody else tidies up the control groups that nspawn made."""
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass


def boot(root, name, options=()):
    """Boots the tree, nspawn with these options, and waits until it powers itself off. Returns what it said on its
    console."""
    managed = pathlib.Path("/run/systemd/system").is_dir()
    state = pathlib.Path("/run/systemd/nspawn")
    made_state = not state.exists()
    state.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", state], check=True)
    before = groups_of_nspawn()
    command = ["systemd-nspawn", "-q", "-D", str(root), "--boot", "--register=no", "--private-network",
               "--console=pipe", "--link-journal=no", "-M", name, *options]
    if not managed:
        command.append("--keep-unit")  # nobody is there who could make a scope for it
    # Told to terminate, also by our own death, nspawn shuts the container down and waits for it.
    container = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *command],
        env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    try:
        return container.communicate(timeout=BOOT_PATIENCE)[0]
    except subprocess.TimeoutExpired:
        container.terminate()
        return f"it did not power off within {BOOT_PATIENCE} s\n{container.communicate()[0]}"
    finally:
        if container.poll() is None:
            container.terminate()
            container.communicate()
        subprocess.run(["umount", "-l", state], check=False)
        if made_state:
            state.rmdir()
        if not managed:
            remove_groups(groups_of_nspawn() - before)


def add_check(root, source, scripts, files=(), wanted=(), action="poweroff-force", patience=400):
    """Makes scripts of the source, which may need these files of it, the only task of a boot of the tree, which ends
    by the action."""
    inside = root / RESULT.parent
    for file in (*scripts, *files, "tests/system/service.py", "tests/integration/harness.py"):
        (inside / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / file, inside / file)
    starts = [f"ExecStart=-/usr/bin/python3 /edgeprof-tests/{script} {' '.join(wanted)}" for script in scripts]
    units = root / "etc" / "systemd" / "system"
    (units / "edgeprof-check.service").write_text(
        CHECK_UNIT.format(scripts="\n".join(starts), result=RESULT, action=action, patience=patience))
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "edgeprof-check.service").symlink_to("../edgeprof-check.service")


def check(root, source, scripts, files=(), options=(), wanted=()):
    """Boots the tree, nspawn with these options, for the scripts of add_check. The exit status for the test."""
    add_check(root, source, scripts, files, wanted)
    console = boot(root, f"edgeprof-test-{os.getpid()}", options)
    result = root / RESULT
    said = result.read_text(errors="replace") if result.exists() else ""
    if not said:
        raise Missing(f"a container could not be booted here: {console.strip()[-600:]}")
    print(said, end="")
    if re.findall(r"^\d+ ok, (\d+) failed, \d+ skipped$", said, re.M) == ["0"] * len(scripts):
        return 0
    print(console)
    return 1

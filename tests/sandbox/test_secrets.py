"""Hostile programs: each must end as a program's failure or success, and leave nothing."""

from __future__ import annotations

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox

LIMITS = Limits(cpu_s=0.5, wall_s=2.0, memory_mib=128)

ATTACKS = {
    "fork bomb": """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "memory bomb in many processes": """
import os
try: open('/proc/self/oom_score_adj', 'w').write('-1000')
except OSError: pass
for i in range(20):
    if os.fork() == 0: break
x = [b'x' * 10 ** 6 for i in range(60)]
""",
    "all signals ignored": """
import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
    "stops itself": "import os; os.kill(os.getpid(), 19)",
    "daemon": """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(1000)
    os._exit(0)
""",
    "child that holds stdout": """
import os, time
if os.fork() == 0: time.sleep(1000)
print('parent')
""",
    "stdout closed": "import os, sys\nfor fd in range(3): os.close(fd)",
    "a gigabyte of output": "import os\nfor i in range(1 << 14): os.write(1, b'x' * (1 << 16))",
    "full disk": """
try:
    with open('/tmp/big', 'wb') as f:
        while True: f.write(b'x' * (1 << 20))
except OSError as e: print(e)
""",
    "many files, links, no permissions": """
import os
os.symlink('/', '/tmp/root'); os.symlink('/tmp', '/tmp/self')
os.makedirs('/tmp/a/b/c'); open('/tmp/a/b/c/f', 'w').close()
for i in range(2000): open(f'/tmp/a/f{i}', 'w').close()
os.chmod('/tmp/a/b/c', 0); os.chmod('/tmp/a/b', 0); os.chmod('/tmp/a', 0)
""",
    "deep folders": """
import os
for i in range(1500):
    os.mkdir('d'); os.chdir('d')
""",
    "kill process 1": "import os\nfor s in (9, 15, 19, 2, 1): os.kill(1, s)",
    "kill everybody": "import os; os.kill(-1, 9)",
    "limits of process 1": """
import resource
for r in range(16):
    try: resource.prlimit(1, r, (0, 0))
    except OSError: pass
""",
    "priority of process 1": "import os; os.setpriority(os.PRIO_PROCESS, 1, 19)",
    "memory of process 1": "open('/proc/1/mem', 'rb').read(10)",
    "environment of process 1": "open('/proc/1/environ', 'rb').read(10)",
    "a result forged on every descriptor": """
import os, struct, json
reply = json.dumps({'id': 1, 'end': 'exit', 'exits': [0]}).encode()
for fd in list(range(64)):
    try: os.write(fd, struct.pack('>I', len(reply)) + reply)
    except OSError: pass
for fd in range(16):
    try: open(f'/proc/1/fd/{fd}', 'wb').write(reply)
    except OSError: pass
raise ValueError
""",
    "network": "import socket; socket.create_connection(('1.1.1.1', 53), 2)",
    "ptrace": "import ctypes\nassert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
    "namespaces": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "shared memory": "import ctypes\nassert ctypes.CDLL(None).shmget(1, 4096, 0o1666) != -1",
    "mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, 0) == 0",
    "become root": "import os; os.setuid(0)",
    "write the system": "open('/usr/bin/python3', 'w')",
    "files for the next": """
import os
for p in ('/tmp', '/dev/shm', '/dev/mqueue', '/var/tmp', '/run'):
    try: open(p + '/left', 'w').write('x')
    except OSError: pass
""",
    "threads": """
import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError: pass
""",
    "crash": "import ctypes; ctypes.string_at(0)",
    "recursion": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()",
    "hooks": "import sys\nsys.excepthook = None\nsys.stderr = None\nsys.stdout = 3\n1 / 0",
}

HELLO = """
import os
left = [n for p in ('/tmp', '/dev/shm') if os.path.isdir(p) for n in os.listdir(p)]
others = [n for n in os.listdir('/proc') if n.isdigit() and int(n) not in (1, os.getpid())]
print(left, others)
"""


FAILS = {
    "memory bomb in many processes": {"memory", "ok", "timeout"},
    "all signals ignored": {"timeout"},
    "daemon": {"ok"},
    "a gigabyte of output": {"output_limit"},
    "kill process 1": {"ok", "runtime_error"},
    "memory of process 1": {"runtime_error"},
    "a result forged on every descriptor": {"runtime_error"},
    "network": {"runtime_error"},
    "ptrace": {"runtime_error"},
    "namespaces": {"runtime_error"},
    "shared memory": {"runtime_error"},
    "mount": {"runtime_error"},
    "become root": {"runtime_error"},
    "write the system": {"runtime_error"},
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_its_own_failure(box: Sandbox, name: str) -> None:
    result = box.run(ATTACKS[name], limits=LIMITS)
    assert result.status not in (RunStatus.SANDBOX_ERROR, RunStatus.BROKE_SANDBOX), result
    assert result.status in FAILS.get(name, RunStatus), result
    assert result.attempts == 1
    after = box.run(HELLO)
    assert (after.status, after.stdout) == (RunStatus.OK, "[] []\n"), (result, after)


def test_a_daemon_is_counted_and_killed(box: Sandbox) -> None:
    assert box.run(ATTACKS["daemon"], limits=LIMITS).strays in (1, 2)


def test_nothing_of_an_earlier_program_is_in_memory(box: Sandbox) -> None:
    secret = "open-" + "sesame"
    box.run(f"secret = '{secret}'\nprint(secret, input())", secret)
    search = """
import re
planted = 'pla' + 'nted'
found = {b'open-[s]esame': 0, b'p[l]anted': 0}
for line in open('/proc/self/maps'):
    start, end = (int(n, 16) for n in line.split()[0].split('-'))
    if ' r' not in line or '[v' in line: continue
    with open('/proc/self/mem', 'rb', 0) as memory:
        try:
            memory.seek(start)
            content = memory.read(end - start)
        except (OSError, ValueError, OverflowError): continue
    for pattern in found: found[pattern] += len(re.findall(pattern, content))
print(*found.values())
"""
    result = box.run(search, limits=Limits(cpu_s=5.0, memory_mib=128))
    secrets, planted = map(int, result.stdout.split())
    assert secrets == 0
    assert planted > 0  # the search does find what is there


def test_a_program_cannot_see_the_users_environment(
    make_box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TEST_SECRET", "open-sesame")
    with make_box(slots=1) as own:
        result = own.run(
            "import os\nprint(dict(os.environ))\n"
            "print(b'open-sesame' in open('/proc/self/environ', 'rb').read())"
        )
    assert "open-sesame" not in result.stdout
    assert result.stdout.endswith("False\n")

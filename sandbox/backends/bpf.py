"""The filter of system calls under bubblewrap, which takes it as the kernel does: as BPF code.

It forbids what :mod:`seccomp` leaves out and lets the rest pass: numbers of system calls differ
with the machine, and a list of all that are harmless would have to be kept for each.
"""

from __future__ import annotations

import platform
import re
import struct

from .seccomp import (
    ALLOWED_IF,
    ENOSYS,
    ENOTSUP,
    EPERM,
    NOT_SUPPORTED,
    PRETENDED,
    SPARE_INIT,
    Condition,
)


def _table(text: str) -> dict[str, tuple[int | None, int | None]]:
    """Read rows of a call's name, its number on x86_64 and on aarch64; ``-`` if it has none."""
    words = re.sub("#.*", "", text).split()
    numbers = [None if word == "-" else int(word) for word in words if not word[0].isalpha()]
    names = [word for word in words if word[0].isalpha()]
    return dict(zip(names, zip(numbers[::2], numbers[1::2], strict=True), strict=True))


_FORBIDDEN = _table("""
# other processes
ptrace 101 117   process_vm_readv 310 270   process_vm_writev 311 271   kcmp 312 272
# what outlives a run
shmget 29 194   shmat 30 196   shmctl 31 195   semget 64 190   semctl 66 191   msgget 68 186
msgctl 71 187   mq_open 240 180   mq_unlink 241 181   add_key 248 217   request_key 249 218
keyctl 250 219
# new namespaces and file systems
unshare 272 97   setns 308 268   mount 165 40   umount2 166 39   pivot_root 155 41
chroot 161 51   name_to_handle_at 303 264   open_by_handle_at 304 265
# what all of the machine shares: where memory lies, the turn at a disk, a count of requests
migrate_pages 256 238   move_pages 279 239   mbind 237 235   set_mempolicy 238 237
get_mempolicy 239 236   ioprio_set 251 30   ioprio_get 252 31   io_setup 206 0
# parts of the kernel that programs do not need
seccomp 317 277   bpf 321 280   userfaultfd 323 282   perf_event_open 298 241
fanotify_init 300 262   personality 135 92   modify_ldt 154 -   iopl 172 -   ioperm 173 -
vhangup 153 58   syslog 103 116   acct 163 89   quotactl 179 60   swapon 167 224
swapoff 168 225   reboot 169 142   sethostname 170 161   setdomainname 171 162
settimeofday 164 170   clock_settime 227 112   clock_adjtime 305 266   adjtimex 159 171
init_module 175 105   finit_module 313 273   delete_module 176 106   kexec_load 246 104
kexec_file_load 320 294
""")
# Calls that pass with some arguments only, or never, as the list for Docker says.
_NUMBERS = _table("""
clone 56 220   fcntl 72 25   fcntl64 - -   socket 41 198   setsockopt 54 208   prctl 157 167
socketpair 53 199   setrlimit 160 164   prlimit64 302 261   sync 162 81   syncfs 306 267
madvise 28 233
mmap 9 222   mmap2 - -   memfd_create 319 279   setxattr 188 5   lsetxattr 189 6
fsetxattr 190 7
""")
_SPARING = _table("""
setpriority 141 140   sched_setaffinity 203 122   sched_setattr 314 274   sched_setparam 142 118
sched_setscheduler 144 119
""")
# Column above, the kernel's name for the machine.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# From here on numbers are alike on all machines, so those of harmless calls can be kept, and all
# that a later kernel adds is left out.
_NEWER = 424
_HARMLESS = _table("""
pidfd_send_signal 424 424   pidfd_open 434 434   close_range 436 436   openat2 437 437
faccessat2 439 439   epoll_pwait2 441 441   futex_waitv 449 449   fchmodat2 452 452
map_shadow_stack 453 453   futex_wake 454 454   futex_wait 455 455   futex_requeue 456 456
mseal 462 462
""")
_X32 = 0x40000000  # bit of a second set of numbers on x86_64

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets in the kernel's seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def filter_program(machine: str | None = None, *, spare_init: bool = False) -> bytes | None:
    """Return a machine's filter (default: this one's), or ``None`` if its numbers are unknown.

    Args:
        machine: as ``platform.machine()`` has it.
        spare_init: as for :func:`seccomp.docker_profile`.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    column, name = known
    code = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, name, 1, 0),
        _step(_RETURN, _ERRNO | ENOSYS),  # 32-bit calls have numbers of their own
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _ERRNO | ENOSYS),
        # clone3 too ends here, whose flags lie in memory; libc falls back to clone.
        _step(_AT_LEAST, _NEWER, 0, 2 * len(_HARMLESS) + 1),
    ]
    for numbers in _HARMLESS.values():
        code += _where(numbers[column], [_step(_RETURN, _ALLOW)])
    code += [_step(_RETURN, _ERRNO | ENOSYS)]
    for numbers in _FORBIDDEN.values():
        code += _where(numbers[column], [_step(_RETURN, _ERRNO | EPERM)])
    for call, numbers in (_SPARING if spare_init else {}).items():
        body = [*_choices(SPARE_INIT[call], _ALLOW), _step(_RETURN, _ERRNO | EPERM)]
        code += _where(numbers[column], body)
    for call, numbers in _NUMBERS.items():
        answer = ENOTSUP if call in NOT_SUPPORTED else EPERM
        body = [
            *_choices(ALLOWED_IF.get(call, []), _ALLOW),
            *_choices(PRETENDED.get(call, []), _ERRNO),
            _step(_RETURN, _ERRNO | answer),
        ]
        code += _where(numbers[column], body)
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _where(number: int | None, body: list[bytes]) -> list[bytes]:
    """Return the instructions for one call."""
    return [] if number is None else [_step(_EQUAL, number, 0, len(body)), *body]


def _choices(choices: list[list[Condition]], answer: int) -> list[bytes]:
    """Return the answer if all conditions of one choice hold; else go on."""
    code = []
    for conditions in choices:
        steps = [_step(_RETURN, answer)]
        for index, mask, value in reversed(conditions):
            if value is None:  # where it is zero, a choice that allows the call came before
                continue
            for half in (4, 0) if mask >> 32 else (0,):  # of the register, the upper one first
                load = [_step(_LOAD, _ARGUMENTS + 8 * index + half)]
                load.append(_step(_AND, mask >> 8 * half & 0xFFFFFFFF))
                steps = [*load, _step(_EQUAL, value >> 8 * half, 0, len(steps)), *steps]
        code += steps
    return code


def _step(operation: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one instruction; the jumps count the instructions to skip."""
    return struct.pack("=HBBI", operation, if_true, if_false, value)

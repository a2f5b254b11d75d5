"""The system calls that programs may make, and with what arguments.

Under Docker what is not named here fails with EPERM. Left out, beyond what Docker's own profile
leaves out without capabilities: debugging and reading other processes (ptrace, process_vm_*),
io_uring, System V IPC and message queues (both outlive a run), keyrings, bpf, userfaultfd,
handles to files, new namespaces, and calls by the numbers of another machine (32-bit and x32 on
x86_64, ARM on aarch64), since a filter sees other arguments there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

EPERM, ENOSYS, ENOTSUP = 1, 38, 95

Condition = tuple[int, int, int | None]
"""Index of an argument, bits of it that count, and what they must be; ``None``: not all zero."""

_WHOLE = 0xFFFFFFFF  # of an int: the kernel does not read the upper half of the register
_POINTER = 0xFFFFFFFFFFFFFFFF
# Streams and datagrams, kinds of socket, with their protocols.
_INTERNET: list[list[Condition]] = [
    [(0, _WHOLE, family), (1, 0xF, kind), (2, _WHOLE, protocol)]
    for family in (2, 10)
    for kind, protocol in ((1, 0), (1, 6), (2, 0), (2, 17))
]
# Of the options of any socket, those that cost no memory and run no code.
_SOCKET_OPTIONS = (2, 5, 6, 9, 10, 12, 13, 15, 16, 20, 21, 29, 35, 66, 67)

_NEW_NAMESPACES, _FILES, _THREAD = 0x7E020000, 0x400, 0x10000  # flags of clone
_CORE = 4  # RLIMIT_CORE
_SET_PTRACER = 0x59616D61


def _ranges(index: int, *ranges: tuple[int, int]) -> list[list[Condition]]:
    """Return choices that an argument lies in a range, both ends included: one for each block."""
    choices: list[list[Condition]] = []
    for start, end in ranges:
        while start <= end:
            most = 1 << (end - start + 1).bit_length() - 1
            size = min(most, start & -start or most)  # a power of two that divides the start
            choices.append([(index, _WHOLE ^ (size - 1), start)])
            start += size
    return choices


def _options(level: int, *ranges: tuple[int, int]) -> list[list[Condition]]:
    """Return choices that an option of this level lies in a range."""
    return [[(1, _WHOLE, level), *choice] for choice in _ranges(2, *ranges)]


ALLOWED_IF: dict[str, list[list[Condition]]] = {
    # Only threads share their files: locks of a process that is gone are in no /proc/locks.
    "clone": [[(0, _NEW_NAMESPACES | _FILES, 0)], [(0, _NEW_NAMESPACES | _THREAD, _THREAD)]],
    # No locks of open files (36 to 38), which /proc/locks shows to everybody.
    "fcntl": _ranges(1, (0, 31), (1024, 1055)),
    "fcntl64": _ranges(1, (0, 31), (1024, 1055)),
    # Unix, the two internets (which lead nowhere) and routes, which tell what interfaces there
    # are. AF_ALG, AF_VSOCK, ping, SCTP, MPTCP, ... are kernel code that no program needs, and
    # other netlinks keep what a program sends itself in memory that nobody counts.
    "socket": [[(0, _WHOLE, 1)], [(0, _WHOLE, 16), (2, _WHOLE, 0)], *_INTERNET],
    # For other families too the kernel makes sockets, before it says that it has no pairs of them.
    "socketpair": [[(0, _WHOLE, 1)]],
    "setsockopt": [
        *_ranges(1, (0, 0), (17, 17), (270, 270)),  # IP, UDP, netlink
        *_options(6, (0, 30), (32, 63)),  # no other protocol on top of TCP
        # No flow labels: those of programs that are gone stay for minutes, for all to read.
        *_options(41, (0, 31), (33, 33), (40, 79)),
        *_options(1, *[(option, option) for option in _SOCKET_OPTIONS]),
    ],
    # Neither 22, a filter of system calls, nor names of areas: the kernel does not count either.
    # 62 keeps other programs off the other half of a core, 67 shares pages with them.
    "prctl": _ranges(0, (0, 21), (23, 61), (63, 66), (_SET_PTRACER, _SET_PTRACER)),
    "setrlimit": _ranges(0, (0, 3), (5, 15)),
    "prlimit64": [*_ranges(1, (0, 3), (5, 15)), [(1, _WHOLE, _CORE), (2, _POINTER, 0)]],
    # Huge pages are the machine's, and no control group of memory counts them.
    "mmap": [[(3, 0x40000, 0)]],
    "mmap2": [[(3, 0x40000, 0)]],
    "madvise": _ranges(2, (0, 11), (14, 31), (100, 103)),  # 12 shares pages with other programs
    "memfd_create": [[(1, 4, 0)]],
}
"""Calls that pass where all conditions of any one list hold."""

PRETENDED: dict[str, list[list[Condition]]] = {
    # Buffers as large as the program likes. Libraries ask for them, and manage without.
    "setsockopt": _options(1, (7, 8)),
    # The limit on core files is 1: only then does a crash not start the machine's crash handler,
    # as root and outside of every limit.
    "setrlimit": [[(0, _WHOLE, _CORE)]],
    "prlimit64": [[(0, _WHOLE, 0), (1, _WHOLE, _CORE), (2, _POINTER, None)]],
    # Writes back the disks of the whole machine, and cannot be killed meanwhile.
    "sync": [[]],
    "syncfs": [[]],
}
"""Calls that do nothing and say that they did."""

NOT_SUPPORTED = ("setxattr", "lsetxattr", "fsetxattr")
"""Calls that the file system does not seem to have: access lists are memory nobody counts."""

# Where process 1 is of the same user as what runs beside it, nothing may slow it down. Of 32
# choices, each for one bit, one holds for every number but 1.
_NOT_1 = [(1 << bit, 0 if bit == 0 else 1 << bit) for bit in range(32)]
SPARE_INIT: dict[str, list[list[Condition]]] = {
    **{
        name: [[(0, mask, value)] for mask, value in _NOT_1]
        for name in ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
    },
    # Of one process, and not of a group or a user.
    "setpriority": [[(1, mask, value), (0, _WHOLE, 0)] for mask, value in _NOT_1],
}
"""Calls that pass, for sessions, where all conditions of any one list hold."""

_ALLOWED = """
_llseek _newselect accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown
chown32 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit
exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2
fchown fchown32 fchownat fdatasync fgetxattr flistxattr flock fork fremovexattr fstat fstat64
fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait
futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64
getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer getpeername
getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32
getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl kill lchown lchown32 lgetxattr
link linkat listen listxattr llistxattr lremovexattr lseek lstat lstat64 map_shadow_stack membarrier
mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mprotect mremap mseal msync munlock
munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe
pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 pread64 preadv preadv2 pselect6
pselect6_time64 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recv recvfrom
recvmmsg recvmmsg_time64 recvmsg removexattr rename renameat renameat2 restart_syscall
riscv_flush_icache riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield select send sendfile sendfile64 sendmmsg sendmsg sendto
set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgid32 setgroups
setgroups32 setitimer setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid
setresuid32 setreuid setreuid32 setsid setuid setuid32 shutdown sigaltstack signalfd signalfd4
sigprocmask sigreturn splice stat stat64 statfs statfs64 statx symlink symlinkat sync_file_range
sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64
timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink unlinkat utime
utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev
"""


@functools.cache
def docker_profile(*, spare_init: bool = False) -> dict[str, Any]:
    """Return the profile in the JSON that Docker reads.

    Args:
        spare_init: nothing may change the priority, the policy or the cores of process 1.
    """
    conditional = {**ALLOWED_IF, **(SPARE_INIT if spare_init else {})}
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "archMap": [
            {"architecture": architecture, "subArchitectures": []}
            for architecture in ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")
        ],
        "syscalls": [
            {
                "names": [name for name in _ALLOWED.split() if name not in conditional],
                "action": "SCMP_ACT_ALLOW",
            },
            *_conditional(conditional, {"action": "SCMP_ACT_ALLOW"}),
            *_conditional(PRETENDED, {"action": "SCMP_ACT_ERRNO", "errnoRet": 0}),
            {"names": list(NOT_SUPPORTED), "action": "SCMP_ACT_ERRNO", "errnoRet": ENOTSUP},
            # Its flags lie in memory, where no filter can see them; libc falls back to clone.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
        ],
    }


def _conditional(
    calls: dict[str, list[list[Condition]]], action: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for name, choices in calls.items():
        for conditions in choices:
            arguments = [
                {"index": index, "value": 0, "op": "SCMP_CMP_NE"}
                if value is None
                else {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
                for index, mask, value in conditions
            ]
            yield {"names": [name], "args": arguments, **action}

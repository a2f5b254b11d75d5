"""The system calls that programs may make.

Under Docker what is not named here fails with EPERM. Left out, beyond what Docker's own profile
leaves out without capabilities: debugging and reading other processes (ptrace, process_vm_*),
io_uring, System V IPC and message queues (both outlive a run), keyrings, bpf, userfaultfd,
handles to files and new namespaces.
"""

from __future__ import annotations

import functools
from typing import Any

_EPERM = 1
_ENOSYS = 38
_NEW_NAMESPACES = 0x7E020000  # the CLONE_NEW* flags of clone

_ALLOWED = """
_llseek _newselect accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown
chown32 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit
exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2
fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr
fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex futex_requeue
futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu
getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups
getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid
getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname getsockopt gettid
gettimeofday getuid getuid32 getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
ioctl kill lchown lchown32 lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek
lsetxattr lstat lstat64 madvise map_shadow_stack membarrier memfd_create mincore mkdir mkdirat
mknod mknodat mlock mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall
munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2
pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64
pselect6 pselect6_time64 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recv
recvfrom recvmmsg recvmmsg_time64 recvmsg removexattr rename renameat renameat2 restart_syscall
riscv_flush_icache riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield select send sendfile sendfile64 sendmmsg sendmsg sendto
set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgid32 setgroups
setgroups32 setitimer setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid
setresuid32 setreuid setreuid32 setrlimit setsid setsockopt setuid setuid32 setxattr shutdown
sigaltstack signalfd signalfd4 sigprocmask sigreturn socketpair splice stat stat64 statfs statfs64
statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create
timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64
timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill
truncate truncate64 ugetrlimit umask uname unlink unlinkat utime utimensat utimensat_time64 utimes
vfork vmsplice wait4 waitid waitpid write writev
"""


@functools.cache
def docker_profile() -> dict[str, Any]:
    """The profile in the JSON that Docker reads."""
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": _EPERM,
        "archMap": [
            {
                "architecture": "SCMP_ARCH_X86_64",
                "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            },
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
        ],
        "syscalls": [
            {"names": _ALLOWED.split(), "action": "SCMP_ACT_ALLOW"},
            # Sockets of the network families lead nowhere, but AF_ALG, AF_VSOCK, ... are kernel
            # code that no program needs.
            *[_allow_socket(family) for family in (1, 2, 10, 16)],
            {
                "names": ["clone"],
                "action": "SCMP_ACT_ALLOW",
                "args": [
                    {
                        "index": 0,
                        "value": _NEW_NAMESPACES,
                        "valueTwo": 0,
                        "op": "SCMP_CMP_MASKED_EQ",
                    }
                ],
            },
            # Its flags lie in memory, where no filter can see them; libc falls back to clone.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
        ],
    }


def _allow_socket(family: int) -> dict[str, Any]:
    return {
        "names": ["socket"],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": family, "op": "SCMP_CMP_EQ"}],
    }

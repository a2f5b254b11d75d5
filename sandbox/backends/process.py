"""The unsafe backend: the same guest as a plain process of this machine, isolated from nothing.

It is for programs that one trusts and for machines where nothing else works. A program sees the
host's files and network, and may do whatever its user may. What is left of a sandbox: limits on
each process, a clean environment, and an end to all that a program started. Started by root,
every run has a user of its own, as under Docker; started by anybody else, programs are that user.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings

from ..limits import Limits
from ..trees import remove_tree
from .child_process import ChildProcess
from .guest_source import ENVIRONMENT, foreign_uid, guest_command
from .slot import Origin, Slot, SlotBroken

_END_S = 10.0


class ProcessBackend:
    """Starts guests as processes of this machine, with a warning."""

    name = "process (UNSAFE)"
    image = ""
    tools = True

    def __init__(self, limits: Limits, preload: tuple[str, ...] = ()) -> None:
        self.limits = limits
        self.preload = preload
        warnings.warn(
            "UNSAFE: programs run as processes of this machine, with its files and its network; "
            "only backend='docker' and backend='bwrap' isolate them",
            RuntimeWarning,
            stacklevel=2,
        )

    def start(self) -> Slot:
        """Start one slot.

        Raises:
            SlotBroken: it did not come up.
        """
        root = os.geteuid() == 0
        try:
            folder = tempfile.mkdtemp(prefix="assay-unsafe-", dir="/tmp" if root else None)  # noqa: S108 - where other users get in
        except OSError as error:
            raise SlotBroken(f"cannot make a folder for programs: {error}") from error
        if root:
            os.chmod(folder, 0o1777)  # noqa: S103 - programs run as other users
        config = {
            "uid_base": foreign_uid(),
            "memory_cgroup": False,
            "process_limit": True,
            "preload": list(self.preload),
            "site": False,
            "unsafe_folder": folder,
        }
        environment = {**ENVIRONMENT, "PATH": "/usr/bin:/bin"}
        command = guest_command(os.path.realpath(sys.executable), config)
        try:
            child = ChildProcess(command, environment, own_session=True)
        except SlotBroken:
            os.rmdir(folder)
            raise

        def end() -> None:
            child.wait(_END_S)  # it ends what programs started, and empties their folder
            child.kill()
            remove_tree(folder)

        return child.slot(Origin(self.name), end)

    def close(self) -> None:
        """Do nothing: nothing outlives the slots."""

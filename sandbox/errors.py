"""What can go wrong with a sandbox itself. What goes wrong with a program is a Result.

SandboxError
├── SandboxUnavailable     no backend answers, or too many slots broke: nothing was judged
├── ImageUnavailable       the image is neither here nor to be had
└── LanguageUnavailable    the image, or the host under bwrap, lacks a language's tools
"""

from __future__ import annotations


class SandboxError(RuntimeError):
    """The sandbox failed, and not because of the program: no verdict may be drawn from it."""


class SandboxUnavailable(SandboxError):
    """No sandbox can be had now. The message names the cause and the remedy."""


class ImageUnavailable(SandboxError):
    """The container image is missing. The message names the command that makes it."""


class LanguageUnavailable(SandboxError):
    """What runs or compiles a language is not in the image. The message names the remedy."""


class BadTests(ValueError):
    """The tests, not the program, are at fault: they do not compile, or fail by themselves."""

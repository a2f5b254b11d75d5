"""Importing this imports every plug-in, which puts its ids into Gymnasium's registry.

So ``gymnasium.make("assay.plugins:capitals/Capitals-v0")`` finds an environment of any installed
package. ``import assay`` alone imports no plug-in: it stays quick, and ``assay.make`` imports the
one that it needs.
"""

from __future__ import annotations

from .envs import plugins

plugins()

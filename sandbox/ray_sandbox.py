"""One sandbox on each node of a Ray cluster, used as if they were one."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec

from .backends.registry import checked_preload
from .errors import SandboxUnavailable
from .extras import missing_package
from .languages.language import PYTHON, ProgrammingLanguage
from .limits import Limits
from .pool.batch import BatchMixin, awaitable
from .result import Check, Result
from .sandbox import Sandbox

ATTEMPTS = 6
"""Nodes that a program is tried on where they are lost under it."""

REST_S = 30.0
"""How long a node whose sandbox cannot be used is left out."""

LOOK_S = 5.0
"""How often new nodes are looked for."""

_THREADS = 256  # calls that an actor takes at one time: more than a node has slots


class NodeSandbox:
    """A node's sandbox, in a process of its own there: what the actor runs."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._box = Sandbox(**arguments)

    def look(self) -> tuple[int, str]:
        """Return slots of the sandbox, and the backend and image in use. Fail if there are none."""
        return self._box.slots, f"{self._box.backend} {self._box.image}".strip()

    def call(self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a method of the sandbox."""
        return getattr(self._box, method)(*arguments, **options)

    def close(self) -> None:
        """End the slots."""
        self._box.close()


class _Node:
    """What the driver knows of a node."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.id: str = facts["NodeID"]
        self.name = f"{facts.get('NodeManagerHostname') or 'node'}/{self.id[:8]}"
        self.actor: Any = None
        self.slots = 0
        self.in_flight = 0
        self.starting = True
        self.rests_until = 0.0
        self.cause = ""

    def rest(self, cause: str) -> None:
        self.cause = cause
        self.rests_until = time.monotonic() + REST_S


_P = ParamSpec("_P")


def _on_a_node(
    method: Callable[Concatenate[Sandbox, _P], Check],
) -> Callable[Concatenate[RaySandbox, _P], Check]:
    """Return a method that calls that of some node's sandbox."""

    @functools.wraps(method)
    def call(sandbox: RaySandbox, /, *args: _P.args, **kwargs: _P.kwargs) -> Check:
        found: Check = sandbox._call(method.__name__, *args, **kwargs)[0]
        return found

    return call


class RaySandbox(BatchMixin):
    r"""A sandbox spread over a Ray cluster: one sandbox on each node that is alive.

    Each program goes to the node with the fewest in flight for its slots, and waits where all
    are busy. Those that were on a node that is lost run again on the others; new nodes are
    found within seconds. It is used from the driver, by many threads; pickled, it becomes
    one with sandboxes of its own. Batches are those of :class:`Sandbox`.

    Every node needs Assay, and Docker with the same image (or bubblewrap, as in
    :class:`Sandbox`). The actors ask Ray for no CPUs: leave the cores that programs should have
    out of the node's ``num_cpus``.

    Args:
        image, limits, backend, preload, runtime: as :class:`Sandbox` takes them, on each node.
        slots: programs at one time on each node. Default: its cores.

    Raises:
        ImportError: Ray is not installed.
        ValueError: an argument makes no sense.

    Example:
        >>> sandbox = RaySandbox(slots=4)  # doctest: +SKIP
        >>> [r.stdout for r in sandbox.run_many(["print(1)", "print(2)"])]  # doctest: +SKIP
        ['1\n', '2\n']
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        slots: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        backend: str | None = None,
        preload: Sequence[str] = (),
        runtime: str | None = None,
    ) -> None:
        super().__init__()
        try:
            import ray  # noqa: F401
        except ImportError as error:
            raise missing_package("RaySandbox", "ray", error) from error
        if slots is not None and not 1 <= slots < _THREADS:
            raise ValueError(f"slots must be from 1 to {_THREADS - 1} on each node, got {slots}")
        self._arguments: dict[str, Any] = {
            "image": image,
            "slots": slots,
            "limits": limits,
            "backend": backend,
            "preload": checked_preload(preload),
            "runtime": runtime,
        }
        Sandbox(**self._arguments)  # starts nothing, but refuses what makes no sense at once
        self.limits = limits
        self._changed = threading.Condition()
        self._looking = threading.Lock()
        self._looked = float("-inf")
        self._nodes: dict[str, _Node] = {}
        self._image: tuple[str, str] | None = None
        self._closed = False

    @property
    def slots(self) -> int:
        """Programs at one time, over all nodes there are now.

        Raises:
            SandboxUnavailable: no node can be used.
        """
        self._look()
        with self._changed:
            while True:
                self._check_usable()
                if not any(node.starting for node in self._nodes.values()):
                    return sum(node.slots for node in self._usable())
                self._changed.wait(1.0)

    def run(
        self,
        code: str,
        stdin: str = "",
        *,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Result:
        """Run one program on some node: see :meth:`Sandbox.run`. ``Result.host`` is the node.

        Raises:
            SandboxUnavailable: no node can be used, or none lasts; nothing was judged.
            ValueError: as :meth:`Sandbox.run` does.
        """
        found, node, attempts = self._call("run", code, stdin, language=language, limits=limits)
        result: Result = found
        return replace(result, host=result.host or node, attempts=result.attempts + attempts - 1)

    arun = awaitable(run)

    check_stdio = _on_a_node(Sandbox.check_stdio)
    acheck_stdio = awaitable(check_stdio)
    check_calls = _on_a_node(Sandbox.check_calls)
    acheck_calls = awaitable(check_calls)
    check_tests = _on_a_node(Sandbox.check_tests)
    acheck_tests = awaitable(check_tests)
    check_problem = _on_a_node(Sandbox.check_problem)
    acheck_problem = awaitable(check_problem)

    def close(self) -> None:
        """End the sandboxes on all nodes. Calling it twice does no harm."""
        import ray

        with self._changed:
            nodes, self._nodes, self._closed = list(self._nodes.values()), {}, True
            self._changed.notify_all()
        self._end_threads()
        actors = [node.actor for node in nodes if node.actor is not None]
        if not actors or not ray.is_initialized():
            return
        with contextlib.suppress(Exception):  # those that do not close in time are killed
            ray.wait([actor.close.remote() for actor in actors], num_returns=len(actors), timeout=5)
        for actor in actors:
            _kill(actor)

    def __repr__(self) -> str:
        slots = sum(node.slots for node in self._nodes.values())
        return f"RaySandbox({len(self._nodes)} nodes, slots={slots})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments: the copy has sandboxes of its own."""
        return functools.partial(RaySandbox, **self._arguments), ()

    def _call(self, method: str, *arguments: Any, **options: Any) -> tuple[Any, str, int]:
        """Call a method of a node's sandbox; return result, node name and number of nodes tried."""
        import ray
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError, TaskCancelledError

        cause = ""
        for attempt in range(1, ATTEMPTS + 1):
            node = self._take()
            try:
                found = ray.get(node.actor.call.remote(method, arguments, options))
                return found, node.name, attempt
            except (GetTimeoutError, TaskCancelledError):
                raise  # somebody's wish
            except RayTaskError as error:  # raised by the sandbox itself
                if not isinstance(error.cause, SandboxUnavailable):
                    raise error.cause from None
                cause = f"{node.name}: {error.cause}"
                node.rest(str(error.cause))
            except RayError as error:  # the node or the actor is gone, and the result with it
                cause = f"{node.name}: {_first_line(error)}"
                self._lose(node)
            finally:
                with self._changed:
                    node.in_flight -= 1
                    self._changed.notify()
        raise SandboxUnavailable(
            f"{ATTEMPTS} nodes in a row were lost under a program: {cause} (It was not judged.)"
        )

    def _take(self) -> _Node:
        """Return the node with the fewest in flight for its slots, once one has a slot free."""
        while True:
            self._look()
            with self._changed:
                self._check_usable()
                free = [node for node in self._usable() if node.in_flight < node.slots]
                if free:
                    node = min(free, key=lambda node: node.in_flight / node.slots)
                    node.in_flight += 1
                    return node
                self._changed.wait(1.0)

    def _usable(self) -> list[_Node]:
        now = time.monotonic()
        return [
            node for node in self._nodes.values() if not node.starting and now >= node.rests_until
        ]

    def _check_usable(self) -> None:
        if self._closed:
            raise SandboxUnavailable("the sandbox is closed: make a new one")
        if any(node.starting for node in self._nodes.values()) or self._usable():
            return
        causes = "; ".join(f"{node.name}: {node.cause}" for node in self._nodes.values())
        raise SandboxUnavailable(
            f"no node of the Ray cluster has a sandbox: {causes or 'none is alive'} "
            "(No program was judged.)"
        )

    def _look(self) -> None:
        """Start sandboxes on nodes that are new, and forget those that are gone, now and then."""
        import ray

        if time.monotonic() - self._looked < LOOK_S or not self._looking.acquire(blocking=False):
            return
        try:
            nodes: Any = ray.nodes
            alive = {facts["NodeID"]: facts for facts in nodes() if facts["Alive"]}
            with self._changed:
                if self._closed:
                    return
                new = [_Node(facts) for id_, facts in alive.items() if id_ not in self._nodes]
                self._nodes = {id_: node for id_, node in self._nodes.items() if id_ in alive}
                now = time.monotonic()
                again = [
                    node
                    for node in self._nodes.values()
                    if not node.starting and node.actor is None and now >= node.rests_until
                ]
                for node in [*new, *again]:
                    node.starting = True
                    self._nodes[node.id] = node
                self._looked = now
                self._changed.notify_all()
        finally:
            self._looking.release()
        for node in [*new, *again]:
            threading.Thread(target=self._start, args=(node,), daemon=True).start()

    def _start(self, node: _Node) -> None:
        """Bring up a node's sandbox; where that fails, leave the node out for a while."""
        import ray
        from ray.exceptions import RayError, RayTaskError
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor, slots, cause = None, 0, ""
        try:
            place = NodeAffinitySchedulingStrategy(node.id, soft=False)
            made: Any = ray.remote(NodeSandbox)
            actor = made.options(
                num_cpus=0, max_restarts=0, max_concurrency=_THREADS, scheduling_strategy=place
            ).remote(self._arguments)
            slots, image = ray.get(actor.look.remote(), timeout=120)
            cause = self._differs(node, image)
        except RayTaskError as error:
            cause = str(error.cause)
        except (RayError, RuntimeError, ValueError) as error:  # gone again, or Ray shut down
            cause = _first_line(error)
        with self._changed:
            node.starting = False
            if cause or self._closed:
                node.rest(cause)
            else:
                node.actor, node.slots = actor, min(slots, _THREADS - 1)
                actor = None
            self._changed.notify_all()
        if actor is not None:
            _kill(actor)

    def _differs(self, node: _Node, image: str) -> str:
        """Return why programs would be paid differently on a node, or an empty string."""
        with self._changed:
            if self._image is None:
                self._image = (node.name, image)
            first, known = self._image
        if known == image:
            return ""
        cause = (
            f"programs on {first} run in {known!r} and on {node.name} in {image!r}, which may pay "
            "them differently: bring the image over with `docker save` and `docker load`"
        )
        warnings.warn(f"a node is left out: {cause}", RuntimeWarning, stacklevel=2)
        return cause

    def _lose(self, node: _Node) -> None:
        """Forget a node whose actor is gone; the next look finds out whether it is there."""
        with self._changed:
            if self._nodes.get(node.id) is node:
                del self._nodes[node.id]
            self._looked = float("-inf")
            self._changed.notify_all()


def _kill(actor: Any) -> None:
    import ray

    with contextlib.suppress(Exception):  # already gone, or Ray is
        ray.kill(actor)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__

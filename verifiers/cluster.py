"""Any verifier over the nodes of a Ray cluster, with the verdicts it would give here.

Ray (the extra ``ray``) schedules, moves data and finds out which nodes died; this file
cuts batches into pieces and asks again if a piece was lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from .verdict import Status, Verdict
from .verifier import Verifier, isolated_verdicts, same_length


class RayVerifier(Verifier):
    """Distribute batches over actors: one for each core of each node, each with its own copy.

    The current Ray session is used, or one is started by ``ray.init()``. A piece that is lost
    with its node is judged by another, in halves: a reply that ends its judge is the only one
    without a verdict. A lone reply that is lost too often gives ``verifier_error``.

    Args:
        verifier: the verifier, which must be picklable.
        piece: pairs that an actor gets at a time.
        per_node: actors on each node; by default one for each of its cores.
        attempts: how often a lone reply is tried.

    Raises:
        ValueError: a number is less than 1.

    Example:
        >>> from assay.verifiers import Math
        >>> verifier = RayVerifier(Math())  # doctest: +SKIP
        >>> verifier.verify("#### 18", 18).score  # doctest: +SKIP
        1.0
    """

    def __init__(
        self,
        verifier: Verifier,
        *,
        piece: int = 256,
        per_node: int | None = None,
        attempts: int = 3,
    ) -> None:
        for name, value in (("piece", piece), ("per_node", per_node), ("attempts", attempts)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        self.verifier = verifier
        self.piece, self.per_node, self.attempts = piece, per_node, attempts
        self._actors: dict[Any, str] = {}  # handle to node

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge ``replies[i]`` against ``references[i]``; the order is kept.

        Raises:
            ValueError: there are not as many references as replies.
            ImportError: Ray is not installed.
        """
        same_length(replies, references)
        found = self._judged(replies, references)
        return [found[k] for k in range(len(replies))]

    def check_reference(self, reference: Any) -> str | None:
        """Delegate to the verifier, in this process."""
        return self.verifier.check_reference(reference)

    def oracle_reply(self, reference: Any) -> str | None:
        """Delegate to the verifier."""
        return self.verifier.oracle_reply(reference)

    def to_json(self) -> dict[str, Any]:
        """Return the verifier's own options: where it runs changes no score."""
        return {"name": "RayVerifier", "verifier": self.verifier.to_json()}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        inner: Mapping[str, Any] = options["verifier"]
        return cls(Verifier.from_json(inner))

    def close(self) -> None:
        """End the actors; the next batch starts others."""
        actors, self._actors = self._actors, {}
        if actors:
            import ray

            for actor in actors:
                ray.kill(actor)
        self.verifier.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_actors": {}}

    def _judged(self, replies: Sequence[str], references: Sequence[Any]) -> dict[int, Verdict]:
        import ray

        found: dict[int, Verdict] = {}
        everything = range(len(replies))
        pieces = [everything[k : k + self.piece] for k in everything[:: self.piece]]
        waiting = deque((piece, 1) for piece in pieces)
        running: dict[Any, tuple[range, int, Any]] = {}
        if waiting:
            self._staff()
        while waiting or running:
            busy = {actor for _, _, actor in running.values()}
            for actor in [actor for actor in self._actors if actor not in busy]:
                if waiting:
                    piece, attempt = waiting.popleft()
                    pairs = [replies[k] for k in piece], [references[k] for k in piece]
                    running[actor.judge.remote(*pairs)] = (piece, attempt, actor)
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            piece, attempt, actor = running.pop(done)
            try:
                found |= zip(piece, ray.get(done), strict=True)
            except ray.exceptions.RayError as error:
                self._actors.pop(actor, None)  # with its node, or by itself
                if not self._actors:
                    self._staff()
                half = len(piece) // 2
                if half:
                    waiting.extendleft(((piece[half:], 1), (piece[:half], 1)))
                elif attempt < self.attempts:
                    waiting.appendleft((piece, attempt + 1))
                else:
                    lost = f"lost {attempt} times: {type(error).__name__}"
                    found[piece[0]] = Verdict.fault(Status.VERIFIER_ERROR, lost)
        return found

    def _staff(self) -> None:
        """See that every node that is alive has its actors."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]  # Ray's own lack
        alive = {node["NodeID"]: node["Resources"] for node in nodes if node["Alive"]}
        self._actors = {a: node for a, node in self._actors.items() if node in alive}
        remote = ray.remote(num_cpus=0, max_restarts=0)(_Judge)
        for node, resources in alive.items():
            if node in self._actors.values():
                continue
            for _ in range(self.per_node or max(1, int(resources.get("CPU", 1)))):
                place = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
                actor = remote.options(scheduling_strategy=place).remote(self.verifier)
                self._actors[actor] = node


class _Judge:
    """One actor: the verifier's copy on a node."""

    def __init__(self, verifier: Verifier) -> None:
        from .maths.pool import one_worker

        one_worker()  # there are as many actors as cores
        self.verifier = verifier

    def judge(self, replies: list[str], references: list[Any]) -> list[Verdict]:
        """Judge one piece of a batch."""
        return isolated_verdicts(self.verifier, replies, references)

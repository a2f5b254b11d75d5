"""A box on each node of a Ray cluster: three nodes on this machine, one of them killed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import pytest

from assay.sandbox import Limits, RaySandbox, RunStatus, SandboxUnavailable

pytest.importorskip("ray", reason="RaySandbox needs the extra ray")

pytestmark = [
    pytest.mark.bwrap,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.slow,
]

# A node that is gone is noticed in seconds instead of half a minute.
WATCH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 4,
}
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture(scope="module")
def cluster():
    before = dict(os.environ)
    os.environ |= {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": WATCH})
    for _ in range(2):
        made.add_node(**NODE)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def box(cluster):
    with RaySandbox(backend="bwrap", slots=1) as found:
        yield found


def test_programs_are_spread_and_in_order(box: RaySandbox) -> None:
    assert box.slots == 3
    programs = [("import time; time.sleep(0.1); print(input())", str(i)) for i in range(30)]
    found = box.run_many(programs)
    assert [r.stdout for r in found] == [f"{i}\n" for i in range(30)]
    assert len({r.host for r in found}) == 3


def test_checks_answer_as_a_box_does(box: RaySandbox) -> None:
    right, wrong = "def double(x): return 2 * x", "def double(x): return x"
    assert box.check_calls(right, "double", [((2,), 4)]).solved
    assert not box.check_calls(wrong, "double", [((2,), 4)]).solved
    assert box.check_tests(right, "assert double(2) == 4").solved
    assert box.check_stdio("print(input())", [("a", "a"), ("b", "c")]).passed == 1
    loop = box.run("while True: pass", limits=Limits(cpu_s=0.2))
    assert loop.status is RunStatus.TIMEOUT


def test_bad_arguments_are_the_callers(box: RaySandbox) -> None:
    with pytest.raises(ValueError, match="memory_mib=9999"):
        box.run("", limits=Limits(memory_mib=9999))
    with pytest.raises(ValueError, match="slots must be from 1"):
        RaySandbox(slots=0)
    with pytest.raises(ValueError, match="no image"):
        RaySandbox("an-image:1", backend="bwrap")


def test_it_can_be_pickled(box: RaySandbox) -> None:
    copy = pickle.loads(pickle.dumps(box))
    assert repr(copy) == "RaySandbox(0 nodes, slots=0)"
    copy.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        copy.run("")


def test_nodes_without_a_sandbox_are_named(cluster, box: RaySandbox) -> None:
    with (
        RaySandbox("assay-no-such-image:1") as other,
        pytest.raises(SandboxUnavailable, match=r"no node of the Ray cluster has a sandbox: .*/"),
    ):
        other.run("")
    assert box.run("print(1)").stdout == "1\n"


def test_a_node_that_is_lost_costs_no_result(cluster, box: RaySandbox) -> None:
    lost = cluster.list_all_nodes()[-1]
    programs = [f"import time; time.sleep(0.05); print({i})" for i in range(200)]
    killer = threading.Timer(1.0, cluster.remove_node, [lost], {"allow_graceful": False})
    killer.start()
    found = box.run_many(programs)
    killer.join()
    assert [r.status for r in found] == [RunStatus.OK] * 200
    assert [r.stdout for r in found] == [f"{i}\n" for i in range(200)]
    assert any(r.attempts > 1 for r in found)
    cluster.add_node(**NODE)
    box._looked = 0.0  # look now, not within seconds
    assert box.slots == 3


def test_without_ray_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from assay.sandbox import RaySandbox\n"
        "try: RaySandbox()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "RaySandbox needs ray, which is not installed: "
        "run pip install '.[ray]' in a checkout of Assay\n"
    )

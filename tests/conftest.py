"""What holds for every test: one thread a process, drawn examples without a deadline, data sets where there are any,
and remarks of a run that are no errors, as other warnings are.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything loads torch or numpy: workers share the cores
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell starts in the background ignores Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

gc.disable()  # until all tests are collected: nothing of what that makes is garbage

NO_HASTE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
THE_SAME_EACH_TIME = {"derandomize": True, "database": None} if os.environ.get("CI") else {}
settings.register_profile("short", max_examples=25, **NO_HASTE, **THE_SAME_EACH_TIME)
settings.register_profile("long", max_examples=100, **NO_HASTE, **THE_SAME_EACH_TIME)
settings.load_profile("short")  # `make test-long` asks for the other one


def pytest_configure(config: pytest.Config) -> None:
    """Small worlds give rise to remarks; tests on remarks ask for these warnings with `pytest.warns`."""
    config.addinivalue_line("filterwarnings", "ignore::fedsim.errors.Remark")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the cache of whoever runs it; the workers of one test run have one in common."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDSIM_CACHE", str(folder / "cache"))
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What hypothesis draws for is tried with more examples by `make test-long`."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.drawn)


def pytest_collection_finish() -> None:
    what_has_been_loaded_stays()
    gc.enable()


MANY_MODULES = 20
"""About as many objects as one look at all of them is worth."""
_modules = [0]


def what_has_been_loaded_stays() -> None:
    """So the collector need not look at it again and again."""
    from fedsim.experiment.gc_policy import set_aside_for_good

    if len(sys.modules) >= _modules[0] + MANY_MODULES:
        gc.collect()  # no garbage stays with it
        set_aside_for_good()
        _modules[0] = len(sys.modules)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a data set that is not here; undo what an earlier test did to torch's threads."""
    what_has_been_loaded_stays()
    if item.get_closest_marker("data") and not os.environ.get("FEDSIM_DATA"):
        pytest.skip("FEDSIM_DATA names no folder with data sets")
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)

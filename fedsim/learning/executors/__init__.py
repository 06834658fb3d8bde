"""How the graph's operations are computed on this machine.

To read in this order: ``executor.py``, the contract; ``torch_executor.py``, the operations; ``waves.py`` and
``wave.py``, what is computed together; ``trainer.py``, who trains: ``plain.py`` is the reference, ``batched/`` the fast
one; ``worker_pool.py``, where: in this process, or in ``workers.py``.
"""

REGISTRY = {
    "serial": "fedsim.learning.executors.serial:Serial",
    "processes": "fedsim.learning.executors.processes:Processes",
    "batched": "fedsim.learning.executors.batched.executor:Batched",
}

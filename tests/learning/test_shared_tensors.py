"""Blocks of shared memory: whose they are, where they are, and when they are free."""

from __future__ import annotations

import gc
import os
import weakref

import pytest
import torch
from safetensors.torch import load, save

from fedsim.errors import UserError
from fedsim.learning.executors.shared_tensors import Block, SharedTensors

SHAPES = {
    "extractor": {"conv.weight": (2, 1, 3, 3), "bn.running_mean": (2,), "scale": ()},
    "classifier": {"fc.bias": (3,), "fc.weight": (3, 700)},
    "nothing": {},
    "empty": {"weight": (0, 4)},
}
BLOCKS = 3


def shared(dtype: torch.dtype = torch.float32) -> SharedTensors:
    return SharedTensors(SHAPES, dtype, BLOCKS)


def test_no_tensor_overlaps_another_and_all_are_aligned() -> None:
    some = shared()
    blocks = [some.take(part) for part in ("extractor", "classifier") for _ in range(BLOCKS)]
    tensors = [tensor for block in blocks for tensor in block.tensors.values()]
    assert len(tensors) == BLOCKS * (3 + 2)
    for number, tensor in enumerate(tensors):
        tensor.fill_(number)
        assert tensor.data_ptr() % 64 == 0
    assert all((tensor == number).all() for number, tensor in enumerate(tensors))
    assert [{name: tuple(tensor.shape) for name, tensor in block.tensors.items()} for block in blocks[::BLOCKS]] == [
        SHAPES["extractor"],
        SHAPES["classifier"],
    ]


def test_a_block_is_taken_for_as_long_as_anybody_holds_anything_of_it() -> None:
    some = shared()
    block = some.take("classifier")
    view = block.tensors["fc.weight"].t()[5:9]
    assert some.free("classifier") == BLOCKS - 1
    del block
    assert some.free("classifier") == BLOCKS - 1
    del view
    assert some.free("classifier") == BLOCKS


def test_the_block_given_back_last_is_handed_out_first() -> None:
    some = shared()
    first, second, third = (some.take("extractor") for _ in range(BLOCKS))
    assert some.take("extractor") is None
    addresses = [third.address, first.address]
    del third
    del first
    again = [some.take("extractor"), some.take("extractor")]
    assert [block.address for block in again] == addresses[::-1]
    assert second.address not in addresses


def test_parts_without_a_number_have_no_blocks() -> None:
    some = shared()
    for part in ("nothing", "empty", "of another model"):
        assert some.free(part) == 0
        assert some.take(part) is None
        assert not some.fits(part, {})


def test_a_value_is_located_only_if_it_is_exactly_a_block() -> None:
    some, other = shared(), shared()
    block, second = some.take("classifier"), some.take("classifier")
    value = block.tensors
    assert some.locate(value) == block.address
    assert some.locate(dict(reversed(value.items()))) == block.address
    assert some.locate(second.tensors) == second.address != block.address
    assert other.locate(value) is None
    assert some.locate({name: tensor.clone() for name, tensor in value.items()}) is None
    assert some.locate({"fc.weight": value["fc.weight"]}) is None
    assert some.locate(value | {"fc.bias": second.tensors["fc.bias"]}) is None
    assert some.locate(value | {"fc.weight": value["fc.weight"].flatten()}) is None
    assert some.locate(value | {"fc.weight": value["fc.weight"].view(700, 3).t()}) is None
    assert some.locate({name: tensor.view(torch.int32) for name, tensor in value.items()}) is None
    assert some.locate({}) is None


def test_what_one_process_fills_in_another_one_reads() -> None:
    some = shared(torch.float64)
    block = some.take("extractor")
    value = {name: torch.randn(shape, dtype=torch.float64) for name, shape in SHAPES["extractor"].items()}
    process = os.fork()
    if process == 0:
        some.fill(block.address, dict(reversed(value.items())))
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    assert all(torch.equal(block.tensors[name], tensor) for name, tensor in value.items())


def test_the_memory_goes_with_the_last_who_holds_something_of_it() -> None:
    some = shared()
    mapping = weakref.ref(some._mapping)
    tensor = some.take("classifier").tensors["fc.bias"]
    del some
    gc.collect()
    assert mapping() is not None
    tensor.fill_(1)
    del tensor
    assert mapping() is None


def test_a_block_is_dumped_like_any_other_tensors() -> None:
    some = shared()
    block = some.take("extractor")
    value = {name: torch.randn(shape) for name, shape in SHAPES["extractor"].items()}
    some.fill(block.address, value)
    content = save(block.tensors)
    assert content == save(value)
    assert all(torch.equal(load(content)[name], tensor) for name, tensor in value.items())
    assert block.tensors["scale"].untyped_storage().nbytes() == 4


def test_too_much_memory_is_the_users_to_change() -> None:
    with pytest.raises(UserError, match=r"workers need 4,000,000,000 MB .*--workers 1"):
        SharedTensors({"classifier": {"weight": (10**15,)}}, torch.float32, 1)


def test_large_free_blocks_keep_their_memory_until_another_part_needs_some() -> None:
    """A block whose memory has gone back to the machine is found full of zeros."""
    some = SharedTensors({"large": {"weight": (2**22,)}, "other": {"weight": (2**22,)}}, torch.float32, BLOCKS)

    def filled(part: str, number: int) -> list[Block]:
        blocks = [some.take(part) for _ in range(number)]
        for block in blocks:
            block.tensors["weight"].fill_(7.0)
        return blocks

    def found(part: str, number: int) -> list[float]:
        return [float(block.tensors["weight"][0]) for block in [some.take(part) for _ in range(number)]]

    filled("large", 2)
    assert found("large", 2) == [7, 7]
    held, other = filled("large", 1), filled("other", 1)
    assert found("large", 2) == [0, 0], "one has never been used, and the other part has got the memory of one"
    assert held[0].tensors["weight"][0] == 7, "what is taken stays as it is"
    del held, other
    assert found("other", 1) == [7]


@pytest.mark.parametrize(("used", "needed", "found"), [("whole", "half", [0, 7, 7]), ("half", "whole", [0, 0, 7])])
def test_as_much_memory_goes_back_as_is_needed_of_what_is_free_for_longest(
    used: str, needed: str, found: list[float]
) -> None:
    some = SharedTensors({"whole": {"weight": (2**23,)}, "half": {"weight": (2**22,)}}, torch.float32, BLOCKS)
    taken = [some.take(used) for _ in range(BLOCKS)]
    for block in taken:
        block.tensors["weight"].fill_(7.0)
    del block
    for number in (1, 1, 0):
        del taken[number]
    held = some.take(needed)
    again = [some.take(used) for _ in range(BLOCKS)]  # the one given back last comes first
    assert [float(block.tensors["weight"][0]) for block in reversed(again)] == found
    assert held.tensors["weight"][0] == 0


def test_small_free_blocks_keep_their_memory() -> None:
    some = SharedTensors({"large": {"weight": (2**22,)}, "small": {"weight": (2**10,)}}, torch.float32, BLOCKS)
    some.take("small").tensors["weight"].fill_(7.0)
    some.take("large")
    assert some.take("small").tensors["weight"][0] == 7

"""How many groups there are in each block: the papers' formulas, in exact numbers."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim import registry
from fedsim.grouping.growth import Constant, Exponential, Linear, Logarithmic

MANY = 10**6
blocks = st.integers(1, 10**9)
clients = st.integers(1, 10**6)
alphas = st.floats(1e-18, 1e18)
betas = st.integers(1, 10**9)
forms = st.sampled_from(["paper", "code"])
GROWTHS = {
    "constant": st.builds(Constant, beta=betas),
    "linear": st.builds(Linear, alpha=alphas, beta=betas, form=forms),
    "logarithmic": st.builds(Logarithmic, alpha=alphas, beta=betas),
    "exponential": st.builds(Exponential, alpha=alphas, beta=betas)
    | st.builds(Exponential, alpha=st.floats(1, 1e18), beta=betas, form=st.just("code")),
}


def first(growth, blocks=6):
    return [growth.groups(block, MANY) for block in range(1, blocks + 1)]


def test_logarithmic_as_in_hfedms():
    """alpha = 2, beta = 10: the blocks at which there are ten more, and those just before."""
    steps = {1: 10, 2: 20, 3: 30, 5: 40, 8: 50, 13: 60, 21: 70, 34: 80, 55: 90, 91: 100, 149: 110, 245: 120, 404: 130}
    growth = Logarithmic()
    assert (growth.alpha, growth.beta) == (2.0, 10)
    for block, groups in steps.items():
        assert growth.groups(block, 368) == groups
        if block > 1:
            assert growth.groups(block - 1, 368) == groups - 10


def test_linear_by_hand():
    assert first(Linear(alpha=1.0)) == [10, 20, 30, 40, 50, 60]
    assert first(Linear(alpha=0.5, beta=4)) == [4, 4, 8, 8, 12, 12]
    assert first(Linear(alpha=0.5, beta=4, form="code")) == [4, 8, 8, 12, 12, 16]


def test_exponential_by_hand():
    assert first(Exponential(alpha=1.0)) == [10, 20, 40, 80, 160, 320]
    assert first(Exponential(alpha=0.5, beta=2)) == [2, 2, 4, 6, 10, 14]  # 1, 1.5, 2.25, 3.375, 5.06, 7.59
    assert first(Exponential(alpha=2.0, form="code")) == [20, 40, 80, 160, 320, 640]
    assert first(Exponential(alpha=1.0, form="code")) == [10] * 6


def test_constant_by_hand():
    assert first(Constant(beta=7)) == [7] * 6
    assert Constant().groups(1, 368) == 10


@given(st.integers(1, 3000).map(lambda thousandths: thousandths / 1000), st.integers(1, 10**6))
def test_linear_steps_are_exact_for_decimal_alphas(alpha, block):
    assert Linear(alpha=alpha, beta=1).groups(block, 10**9) == math.floor(Decimal(repr(alpha)) * (block - 1) + 1)


@given(st.integers(1, 50), st.integers(1, 60))
def test_exponential_steps_are_exact_for_whole_alphas(alpha, block):
    assert Exponential(alpha=float(alpha), beta=1).groups(block, 10**6) == min((1 + alpha) ** (block - 1), 10**6)
    assert Exponential(alpha=float(alpha), beta=1, form="code").groups(block, 10**6) == min(alpha**block, 10**6)


@pytest.mark.parametrize("name", registry.names("growths"))
@given(data=st.data())
def test_there_are_never_fewer_groups_than_before_nor_more_than_clients(name, data):
    growth, block, number = data.draw(GROWTHS[name]), data.draw(blocks), data.draw(clients)
    groups = growth.groups(block, number)
    assert type(groups) is int
    assert 1 <= groups <= growth.groups(block + 1, number) <= number
    assert groups == number or groups % growth.beta == 0
    assert growth.groups(block, number + 1) >= groups


def test_keys_are_checked():
    assert Exponential.model_validate({"name": "exponential", "alpha": 0.1}).form == "paper"
    assert Linear.model_validate({"name": "linear", "alpha": 0.1}).beta == 10
    assert Logarithmic.model_validate({"name": "logarithmic"}) == Logarithmic()
    assert Constant.model_validate({"name": "constant", "beta": 5}).beta == 5
    with pytest.raises(ValidationError, match="alpha=0.5 must be at least 1 in form=code"):
        Exponential(alpha=0.5, form="code")
    for growth, keys in ((Linear, {}), (Exponential, {}), (Logarithmic, {"alpha": 0.0}), (Constant, {"beta": 0})):
        with pytest.raises(ValidationError):
            growth.model_validate(keys)

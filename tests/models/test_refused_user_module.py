"""A user's own torch module that cannot be trained, sent or averaged is refused, with the user's own line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from user_nets import CLASSES, HEAD, SHAPE, module

from fedsim.errors import UserError
from fedsim.models.torch_module import build


def odd(folder: Path, *, made: str = "pass", called: str = "pass", scores: str = "self.head(x.flatten(1))") -> str:
    """What is said of a linear classifier with one oddity."""
    with pytest.raises(UserError) as refused:
        module(folder, HEAD.format(made=made, called=called, scores=scores)).table(SHAPE, CLASSES)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_users_own_line_is_named_when_the_forward_pass_fails(tmp_path: Path) -> None:
    said = odd(tmp_path, scores="self.head(x)")
    assert f"{tmp_path / 'net.py'}:13: RuntimeError: mat1 and mat2" in said
    assert "its forward pass fails on samples of shape (2, 1, 8, 8) (a batch of 2): " in said


@pytest.mark.parametrize(("shape", "saved"), [((8, 8), "x[:, None]"), ((8, 8, 1), "np.moveaxis(x, -1, 1)")])
def test_a_module_that_takes_the_samples_with_channels_first_is_told_so(
    tmp_path: Path, shape: tuple[int, ...], saved: str
) -> None:
    with pytest.raises(UserError) as refused:
        module(tmp_path).table(shape, CLASSES)
    fails = f"its forward pass fails on samples of shape {(2, *shape)} (a batch of 2), and takes (2, 1, 8, 8): save "
    assert f"{fails}{saved}, channels first: " in str(refused.value)


def test_the_users_own_line_is_named_when_the_constructor_fails(tmp_path: Path) -> None:
    assert f"{tmp_path / 'net.py'}:9: ZeroDivisionError: division by zero" in odd(tmp_path, made="1 / 0")
    assert "SystemExit" in odd(tmp_path, made="raise SystemExit(3)")
    with pytest.raises(UserError, match=r"making it fails: .*TypeError.*unexpected keyword argument 'witdh'"):
        module(tmp_path, options={"witdh": 3}).table(SHAPE, CLASSES)


def test_what_makes_no_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="what it returns is of type int"):
        module(tmp_path, "def net():\n    return 3\n", of="net").table(SHAPE, CLASSES)
    with pytest.raises(UserError, match="what it returns is the class Flatten; write its brackets"):
        module(tmp_path, "from torch import nn\n\ndef net():\n    return nn.Flatten\n", of="net").table(SHAPE, CLASSES)


@pytest.mark.parametrize(
    ("made", "scores", "said"),
    [
        ("pass", "self.head(x.flatten(1))[:, :4]", "the shape (2, 4) of 2 samples, and (2, 10) is needed: a score for"),
        ("pass", "self.head(x.flatten(1))[0]", "the shape (10,) of 2 samples, and (2, 10) is needed"),
        ("pass", "self.head(x.flatten(1)).squeeze(0)", "the shape (10,) of 1 sample, and (1, 10) is needed"),
        ("pass", "self.head(x.flatten(1)), x", "must return one tensor of scores, and it returns of type tuple"),
        ("pass", "self.head(x.flatten(1)).half()", "returns float16, and float32 is needed"),
        ("pass", "self.head(x.flatten(1)).detach()", "the scores do not depend on any parameter"),
        (
            "self.late = nn.LazyLinear(10)",
            "self.late(x.flatten(1))",
            "'late.weight' has no shape before",
        ),
        (
            "self.other = nn.Linear(3, 3)",
            "self.head(x.flatten(1))",
            "'other.weight' has no part in the scores",
        ),
        ("self.half()", "self.head(x.flatten(1).half())", "'head.weight' is float16, and parameters must be float32"),
        ("self.head.bias.requires_grad_(False)", "self.head(x.flatten(1))", "parameter 'head.bias' is frozen"),
        ("self.twin = self.head", "self.head(x.flatten(1))", "'twin.weight' is the same parameter as another one"),
        (
            "self.register_buffer('seen', torch.zeros(1, dtype=torch.long))",
            "self.head(x.flatten(1))",
            "'seen' is int64, and what is sent and averaged must be float32",
        ),
        (
            "self.norm = nn.BatchNorm1d(64, momentum=None)",
            "self.head(self.norm(x.flatten(1)))",
            "'norm.num_batches_tracked' is int64, and the mean of whole numbers is none; give the batch normalisation",
        ),
        (
            "import numpy; self.head.bias.data += float(numpy.random.default_rng().random())",
            "self.head(x.flatten(1))",
            "'head.bias' does not start alike when the module is made twice",
        ),
        (
            "self.both = torch.zeros(2); self.a = nn.Parameter(self.both[0]); self.b = nn.Parameter(self.both[1])",
            "self.head(x.flatten(1)) + self.a + self.b",
            "'b' shares its memory with 'a'",
        ),
    ],
)
def test_what_training_would_trip_over_is_refused(tmp_path: Path, made: str, scores: str, said: str) -> None:
    assert said in odd(tmp_path, made=made, scores=scores)


def test_a_state_that_would_pass_from_device_to_device_is_refused(tmp_path: Path) -> None:
    said = odd(
        tmp_path,
        made="self.register_buffer('count', torch.zeros(1), persistent=False)",
        called="self.count += 1",
    )
    assert "buffer 'count' is changed by a forward pass and is not persistent" in said


def test_a_parameter_that_a_forward_pass_makes_is_refused(tmp_path: Path) -> None:
    said = odd(tmp_path, called="self.late = nn.Parameter(torch.zeros(1))")
    assert "'late' is made by the first forward pass" in said


def test_a_module_without_parameters_is_refused(tmp_path: Path) -> None:
    text = "from torch import nn\n\ndef net():\n    return nn.Flatten()\n"
    with pytest.raises(UserError, match="no parameters, so there is nothing to train"):
        module(tmp_path, text, of="net").table(SHAPE, CLASSES)


def test_more_scores_than_classes_are_allowed_but_for_one_number(tmp_path: Path) -> None:
    settings = module(tmp_path, HEAD.format(made="pass", called="pass", scores="self.head(x.flatten(1))"))
    assert settings.table(SHAPE, 7).outputs == 10
    with pytest.raises(UserError, match=r"the shape \(2, 10\) of 2 samples, and \(2, 1\) is needed: one number each"):
        settings.table(SHAPE, 1)


def test_code_that_fails_in_training_is_told_of_by_its_line(tmp_path: Path) -> None:
    text = HEAD.format(made="pass", called="assert len(x) < 3, 'too many'", scores="self.head(x.flatten(1))")
    built = build(module(tmp_path, text).table(SHAPE, CLASSES))
    said = r"the forward pass of '.*net\.py:Net' fails on samples of shape \(3, 1, 8, 8\): .*net\.py:12: Asser"
    with pytest.raises(UserError, match=said):
        built(torch.zeros(3, *SHAPE))

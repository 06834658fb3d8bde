"""Faults in layers that the plain loop has machine code for, and in what puts them into models."""

from __future__ import annotations

from mutants.fault import EXECUTORS, Fault

FUSED = EXECUTORS + "fused/"
TEST_NORMALISATION = "tests/learning/test_fused_normalisation.py"
TEST_LAYERS = "tests/learning/test_fused_layers.py"
TEST_FUNCTIONS = "tests/learning/test_fused_functions.py"
TEST_DENSE = "tests/learning/test_fused_dense.py"
TEST_MODELS = "tests/learning/test_fused_models.py"

FAULTS = (
    Fault(
        "fused: the last row of an odd number gets no gradient",
        FUSED + "normalisation_backward.py",
        "    if about.pooled:\n        made = rows_made(e, about)",
        "    if False:\n        made = rows_made(e, about)",
        (f"{TEST_NORMALISATION}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: of two equal rows the second one is kept",
        FUSED + "normalisation.py",
        'fcmp_ordered(">", second, first)',
        'fcmp_ordered(">=", second, first)',
        (f"{TEST_NORMALISATION}::test_of_equal_values_the_first_one_gets_the_gradient",),
    ),
    Fault(
        "fused: running variances are not those of a sample",
        FUSED + "normalisation_forward.py",
        "e.build.fmul(variance, e.broadcast(unbiased_share))",
        "variance",
        (f"{TEST_NORMALISATION}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: normalisation is tested by the batch",
        FUSED + "normalised.py",
        "if about.groups is not None or self.training:",
        "if True:",
        (f"{TEST_NORMALISATION}::test_tests_use_running_statistics_and_leave_them",),
    ),
    Fault(
        "fused: groups that share a vector are one",
        FUSED + "normalisation.py",
        "while step < min(size, LANES):",
        "while step < LANES:",
        (f"{TEST_NORMALISATION}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: long sums are in float32 alone",
        FUSED + "normalisation.py",
        "IN_FLOAT32 = 8",
        "IN_FLOAT32 = 80",
        (f"{TEST_NORMALISATION}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: what has no number becomes one in a gate",
        FUSED + "functions.py",
        "e.build.fmul(near_one, e.build.bitcast(power, e.vector_type))",
        "e.build.bitcast(e.build.add(e.build.bitcast(near_one, _INTEGERS), e.build.sub(power, "
        "ir.Constant(_INTEGERS, [127 << 23] * LANES))), e.vector_type)",
        (f"{TEST_FUNCTIONS}::test_what_is_no_number_stays_none_whatever_its_bits",),
    ),
    Fault(
        "fused: the tangent of negative numbers loses digits",
        FUSED + "functions.py",
        "e.build.bitcast(e.build.and_(bits, _OTHER_BITS), e.vector_type)",
        "x",
        (TEST_FUNCTIONS,),
    ),
    Fault(
        "fused: the gate n does not see r backwards",
        FUSED + "cells.py",
        "(d_r, d_z, build.fmul(d_n, r))",
        "(d_r, d_z, d_n)",
        (f"{TEST_LAYERS}::test_errors_of_recurrent_layers_are_pytorchs",),
    ),
    Fault(
        "fused: gradients come back through the first gate alone",
        FUSED + "recurrent_kernels.py",
        "with e.loop(cell.gates) as gate:",
        "with e.loop(1) as gate:",
        (f"{TEST_LAYERS}::test_errors_of_recurrent_layers_are_pytorchs",),
    ),
    Fault(
        "fused: later windows take the place of the first ones",
        FUSED + "series_kernels.py",
        "e.build.select(is_first, e.zeros, total.load_vector(number, place))",
        "e.zeros",
        (f"{TEST_LAYERS}::test_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: gradients of series are mirrored",
        FUSED + "series.py",
        "weight.flip(2).permute(2, 0, 1)",
        "weight.permute(2, 0, 1)",
        (f"{TEST_LAYERS}::test_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: a layer with momentum steps by itself too",
        EXECUTORS + "plain.py",
        "return not (asks or about.training.momentum or about.training.weight_decay)",
        "return not (asks or about.training.weight_decay)",
        (f"{TEST_DENSE}::test_training_is_that_of_the_loop_without_such_layers",),
    ),
    Fault(
        "fused: gradients are those of the weights after the step",
        FUSED + "dense.py",
        "        d_x = d @ factor if ctx.needs_input_grad[0] else None\n",
        "        weight.addmm_(d.t(), x, alpha=-ctx.rate)\n"
        "        d_x = d @ factor if ctx.needs_input_grad[0] else None\n"
        "        weight.addmm_(d.t(), x, alpha=ctx.rate)\n",
        (f"{TEST_DENSE}::test_it_takes_the_step_of_sgd_by_itself",),
    ),
    Fault(
        "fused: layers of all parts step",
        FUSED + "dense.py",
        "layer.rate = rate if id(layer.weight) in trained else None",
        "layer.rate = rate",
        (f"{TEST_DENSE}::test_only_layers_of_parts_that_are_trained_step",),
    ),
    Fault(
        "fused: a rectifier writes over a view",
        FUSED + "module.py",
        "nn.ReLU(inplace=isinstance(made, free))",
        "nn.ReLU(inplace=True)",
        (f"{TEST_MODELS}::test_rectifiers_write_over_images_and_never_over_views",),
    ),
    Fault(
        "fused: the gradient of a shortcut goes to the first pixels",
        FUSED + "images.py",
        "dx[:, :, :: ctx.stride, :: ctx.stride] = dy[:, :channels]",
        "dx[:, :, : dy.shape[2], : dy.shape[3]] = dy[:, :channels]",
        (f"{TEST_MODELS}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: in tests nothing is added to a residual block",
        FUSED + "normalised.py",
        "return _applied(x, other, (self.weight",
        "return _applied(x, torch.zeros_like(x), (self.weight",
        (f"{TEST_MODELS}::test_errors_are_pytorchs",),
    ),
)

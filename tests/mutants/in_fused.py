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
        FUSED + "place_kernels.py",
        "about.columns - 1 - column",
        "column",
        (f"{TEST_LAYERS}::test_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: images lose the row above them",
        FUSED + "place_kernels.py",
        "first = e.larger(e.index_sum((above, 1), (line, -1)), e.index(0))",
        "first = e.larger(e.index_sum((above, 1), (line, -1)), e.index(1))",
        (f"{TEST_LAYERS}::test_small_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: tiles at the edge of an image are taken for those inside",
        FUSED + "place_kernels.py",
        "        return inside and len(tile) == size\n",
        "        return len(tile) == size\n",
        (f"{TEST_LAYERS}::test_small_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: a gradient of images is that of their last samples",
        FUSED + "place_kernels.py",
        'e.build.icmp_signed("==", anew, e.index(0))',
        'e.build.icmp_signed(">=", anew, e.index(0))',
        (f"{TEST_LAYERS}::test_small_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: weights of images are not turned on the way back",
        FUSED + "place_kernels.py",
        "enumerate(e.transposed([here.load_vector(lane) for lane in range(LANES)]))",
        "enumerate([here.load_vector(lane) for lane in range(LANES)])",
        (f"{TEST_LAYERS}::test_small_convolutions_of_whole_numbers_are_exact",),
    ),
    Fault(
        "fused: images with channels first are read as they lie",
        FUSED + "placed.py",
        "x, weights = channels_last(x), _by_place(weight).contiguous()",
        "x, weights = x, _by_place(weight).contiguous()",
        (f"{TEST_LAYERS}::test_how_images_lie_in_memory_changes_no_bit_of_a_small_convolution",),
    ),
    Fault(
        "fused: a convolution with a stride is taken for a small one",
        FUSED + "images.py",
        "sizes = layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.groups",
        "sizes = layer.kernel_size, (1, 1), layer.padding, layer.dilation, layer.groups",
        (f"{TEST_LAYERS}::test_which_convolutions_are_small",),
    ),
    Fault(
        "fused: inputs of a recurrent layer meet weights without their bias",
        FUSED + "recurrent.py",
        ".times(rows).add_(inputs_bias)",
        ".times(rows)",
        (f"{TEST_LAYERS}::test_errors_of_recurrent_layers_are_pytorchs",),
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
        "        d_x = matrix.times(d) if ctx.needs_input_grad[0] else None\n        if ctx.rate is None:\n",
        "        if ctx.rate is not None:\n"
        "            matrix.step(d, x, ctx.rate)\n"
        "        d_x = matrix.times(d) if ctx.needs_input_grad[0] else None\n"
        "        if ctx.rate is not None:\n"
        "            matrix.step(d, x, -ctx.rate)\n"
        "        if ctx.rate is None:\n",
        (f"{TEST_DENSE}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: the step of a large layer is added",
        EXECUTORS + "matrix.py",
        "d * -rate, h, self.weight",
        "d * rate, h, self.weight",
        (f"{TEST_DENSE}::test_a_step_on_whole_numbers_is_exact",),
    ),
    Fault(
        "fused: products read rows as if they lay side by side",
        EXECUTORS + "matrix.py",
        "rows, other = rows.contiguous(), other.contiguous()",
        "pass",
        (f"{TEST_DENSE}::test_how_numbers_lie_in_memory_changes_no_bit_of_a_product",),
    ),
    Fault(
        "fused: a large layer is differentiated twice without a word",
        FUSED + "dense.py",
        "    @staticmethod\n    @once_differentiable\n",
        "    @staticmethod\n",
        (f"{TEST_DENSE}::test_a_second_derivative_is_refused",),
    ),
    Fault(
        "fused: a rounded copy of the weights takes the step",
        FUSED + "dense.py",
        "if matrix.weight is weight:",
        "if True:",
        (f"{TEST_DENSE}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: a few samples are rounded with all weights of a large layer",
        FUSED + "dense.py",
        "return len(x) >= ENOUGH_ROUNDED or not",
        "return True or not",
        (f"{TEST_DENSE}::test_a_few_samples_are_not_rounded_in_machine_code",),
    ),
    Fault(
        "fused: many samples are not rounded",
        FUSED + "dense.py",
        "return len(x) >= ENOUGH_ROUNDED or not",
        "return not",
        (f"{TEST_DENSE}::test_a_few_samples_are_not_rounded_in_machine_code",),
    ),
    Fault(
        "fused: an LSTM never rounds",
        FUSED + "recurrent.py",
        'if self._kind == "lstm" and torch.is_autocast_enabled("cpu") and',
        "if False and",
        (f"{TEST_LAYERS}::test_an_lstm_of_many_samples_rounds_as_pytorchs",),
    ),
    Fault(
        "fused: a GRU rounds too",
        FUSED + "recurrent.py",
        'with torch.autocast("cpu", enabled=False):',
        'with torch.autocast("cpu", torch.bfloat16):',
        (f"{TEST_LAYERS}::test_an_lstm_of_many_samples_rounds_as_pytorchs",),
    ),
    Fault(
        "fused: small convolutions of series never round",
        FUSED + "series.py",
        'if self._inside and torch.is_autocast_enabled("cpu") and',
        "if False and",
        (f"{TEST_LAYERS}::test_a_small_convolution_of_many_places_rounds_as_pytorchs",),
    ),
    Fault(
        "fused: large layers do not round under autocast",
        FUSED + "dense.py",
        'if torch.is_autocast_enabled("cpu"):',
        "if False:",
        (f"{TEST_DENSE}::test_errors_are_pytorchs",),
    ),
    Fault(
        "fused: layers of all parts step",
        FUSED + "dense.py",
        "layer.rate = rate if id(layer.weight) in trained else None",
        "layer.rate = rate",
        (f"{TEST_DENSE}::test_only_layers_of_parts_that_are_trained_step",),
    ),
    Fault(
        "fused: a rectifier writes over what others need",
        FUSED + "module.py",
        "nn.ReLU(inplace=isinstance(made, free))",
        "nn.ReLU(inplace=True)",
        (f"{TEST_MODELS}::test_rectifiers_do_not_write_over_states_nor_over_views",),
    ),
    Fault(
        "fused: rectifiers of series never write over what they get",
        FUSED + "module.py",
        "nn.MaxPool2d, ConvolutionOfSeries, ImageConvolutionOfSeries, PoolingOfSeries)",
        "nn.MaxPool2d)",
        (f"{TEST_MODELS}::test_rectifiers_write_over_what_layers_have_made",),
    ),
    Fault(
        "fused: samples are cut channels first for a pointwise convolution",
        FUSED + "series.py",
        "places = channels_last(x).permute(0, 2, 3, 1)",
        "places = x.contiguous()",
        (f"{TEST_LAYERS}::test_errors_of_pointwise_convolutions_are_pytorchs",),
    ),
    Fault(
        "fused: too few samples are cut for a pointwise convolution",
        FUSED + "series.py",
        "if samples * number >= ENOUGH_SAMPLES), 1)",
        "if samples * number > 1), 1)",
        (f"{TEST_LAYERS}::test_a_few_samples_are_cut_into_enough_for_onednn",),
    ),
    Fault(
        "fused: of equal largest values the last ones are kept",
        FUSED + "series.py",
        "np.cumsum(equal, axis=2, dtype=np.int32) <= missing",
        "np.cumsum(equal[..., ::-1], axis=2, dtype=np.int32)[..., ::-1] <= missing",
        (f"{TEST_LAYERS}::test_the_largest_values_are_those_that_sorting_finds",),
    ),
    Fault(
        "fused: of equal largest values one is missing",
        FUSED + "series.py",
        "dtype=np.int32) <= missing)",
        "dtype=np.int32) < missing)",
        (f"{TEST_LAYERS}::test_the_largest_values_are_those_that_sorting_finds",),
    ),
    Fault(
        "fused: what is no number is not among the largest",
        FUSED + "series.py",
        "~(values <= least)",
        "(values > least)",
        (f"{TEST_LAYERS}::test_the_largest_values_are_those_that_sorting_finds",),
    ),
    Fault(
        "fused: a row comes out of a series",
        FUSED + "series.py",
        "else self.of_row(x.unsqueeze(2)).squeeze(2)",
        "else self.of_row(x.unsqueeze(2))",
        (f"{TEST_LAYERS}::test_a_row_comes_out_of_a_row_and_a_series_of_a_series",),
    ),
    Fault(
        "fused: rows are handed on to layers of series alone",
        FUSED + "module.py",
        "    return isinstance(layer, LayerOfSeries | FusedNormalisation",
        "    return isinstance(layer, LayerOfSeries | LargestOfSeries | FusedNormalisation",
        (f"{TEST_MODELS}::test_errors_are_pytorchs",),
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

"""Faults in models: their layers, their sizes, their start, and the loop that trains and tests them."""

from __future__ import annotations

from mutants.fault import EXECUTORS, Fault

PLAIN = "fedsim/learning/executors/plain.py"
TORCH_EXECUTOR = "fedsim/learning/executors/torch_executor.py"
EVALUATED = "fedsim/learning/executors/evaluated.py"
TORCH_LAYERS = "fedsim/models/torch_layers.py"
TABLE = "fedsim/models/table.py"
COMPOSITE = "fedsim/models/layers/composite.py"
NORMALISATION = "fedsim/models/layers/normalisation.py"
RECURRENT = "fedsim/models/layers/recurrent.py"
RESNET = "fedsim/models/resnet.py"
VGG = "fedsim/models/vgg.py"
INITIALISATION = "fedsim/models/initialisation.py"
MODELS_SETTINGS = "fedsim/models/settings.py"
TEST_SERIAL_EXECUTOR = "tests/learning/test_serial_executor.py"
TEST_TORCH_LAYERS = "tests/models/test_torch_layers.py"
TEST_MODEL_CONFORMANCE = "tests/models/test_model_conformance.py"
TEST_LAYERS = "tests/models/test_layers.py"
TEST_PUBLISHED_MODELS = "tests/models/test_published_models.py"
TEST_NORMALISATIONS = "tests/models/test_normalisations.py"
TEST_INITIALISATION = "tests/models/test_initialisation.py"

FAULTS = (
    Fault(
        "training is done as if for tests",
        PLAIN,
        "        self._module.train()\n",
        "        self._module.eval()\n",
        (f"{TEST_SERIAL_EXECUTOR}::test_running_statistics_are_trained_averaged_and_used_like_all_state",),
    ),
    Fault(
        "tests are done as if training",
        PLAIN,
        "        self._load(model)\n        self._module.eval()\n",
        "        self._load(model)\n        self._module.train()\n",
        (f"{TEST_SERIAL_EXECUTOR}::test_running_statistics_are_trained_averaged_and_used_like_all_state",),
    ),
    Fault(
        "training leaves the module as the tests left it",
        PLAIN,
        "        self._module.train()\n",
        "",
        (f"{TEST_SERIAL_EXECUTOR}::test_dropout_is_a_function_of_the_nodes_stream_and_not_of_what_ran_before",),
    ),
    Fault(
        "dropout draws the same in every training",
        EXECUTORS + "torch_draws.py",
        "default_generator.manual_seed(int(seed))",
        "default_generator.manual_seed(0)",
        (f"{TEST_SERIAL_EXECUTOR}::test_dropout_drops_while_training_and_another_client_drops_others",),
    ),
    Fault(
        "dropout draws what nobody seeded",
        EXECUTORS + "torch_draws.py",
        "        torch.default_generator.manual_seed(int(seed))\n",
        "",
        (f"{TEST_SERIAL_EXECUTOR}::test_dropout_is_a_function_of_the_nodes_stream_and_not_of_what_ran_before",),
    ),
    Fault(
        "dropout leaves its traces in torch's generator",
        EXECUTORS + "torch_draws.py",
        "with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_cuda else []):",
        "with torch.no_grad(), torch.enable_grad():",
        (f"{TEST_SERIAL_EXECUTOR}::test_dropout_is_a_function_of_the_nodes_stream_and_not_of_what_ran_before",),
    ),
    Fault(
        "dropout draws what the batches draw",
        EXECUTORS + "torch_draws.py",
        'purpose=f"{stream.purpose}/torch"',
        "purpose=stream.purpose",
        ("tests/golden/test_training_numbers.py",),
    ),
    Fault(
        "running statistics are not averaged",
        TORCH_EXECUTOR,
        "torch.add(tensor, right[name], out=made[name])",
        'torch.add(tensor, 0.0 if "running" in name else right[name], out=made[name])',
        (f"{TEST_SERIAL_EXECUTOR}::test_running_statistics_are_trained_averaged_and_used_like_all_state",),
    ),
    Fault(
        "running statistics are not loaded",
        "fedsim/models/parted.py",
        "torch._foreach_copy_(list(state.values()), [tensors[name] for name in state])",
        "[value.copy_(tensors[name]) for name, value in state.items() if value.requires_grad]",
        (f"{TEST_SERIAL_EXECUTOR}::test_running_statistics_are_trained_averaged_and_used_like_all_state",),
    ),
    Fault(
        "the root of the mean squared error is forgotten",
        EVALUATED,
        "math.sqrt(mean_loss)",
        "mean_loss",
        (f"{TEST_SERIAL_EXECUTOR}::test_numbers_are_learned_by_the_squared_error_and_scored_by_its_root",),
    ),
    Fault(
        "the loss is that of the last batch",
        EVALUATED,
        "sum(score.loss for score in self.scores)",
        "self.scores[-1].loss",
        (f"{TEST_SERIAL_EXECUTOR}::test_numbers_are_learned_by_the_squared_error_and_scored_by_its_root",),
    ),
    Fault(
        "unseen clients are tested on the clients' tests",
        TORCH_EXECUTOR,
        "for ids in self._dataset.unseen_test_ids if len(ids)",
        "for ids in self._dataset.client_test_ids if len(ids)",
        (f"{TEST_SERIAL_EXECUTOR}::test_numbers_are_learned_by_the_squared_error_and_scored_by_its_root",),
    ),
    Fault(
        "numbers are compared with all scores at once",
        PLAIN,
        "scores.squeeze(1), y",
        "scores.squeeze(1).flip(0), y",
        (f"{TEST_SERIAL_EXECUTOR}::test_numbers_are_learned_by_the_squared_error_and_scored_by_its_root",),
    ),
    Fault(
        "weights of a sum are all the first one's",
        "fedsim/learning/executors/summing.py",
        "torch.sub(tensor, base, out=out).mul_(weight)",
        "torch.sub(tensor, base, out=out)",
        (f"{TEST_SERIAL_EXECUTOR}::test_running_statistics_are_trained_averaged_and_used_like_all_state",),
    ),
    Fault(
        "weight decay is forgotten",
        PLAIN,
        "weight_decay=settings.weight_decay",
        "weight_decay=0.0",
        (
            f"{TEST_SERIAL_EXECUTOR}::test_objective_momentum_and_weight_decay_act_on_parameters_and_leave_running_statistics_alone",
        ),
    ),
    Fault(
        "a residual block has no shortcut",
        TORCH_LAYERS,
        "self.body(x) + self.shortcut(x)",
        "self.body(x)",
        (f"{TEST_TORCH_LAYERS}::test_padded_shortcuts_take_every_second_pixel_and_add_channels_of_zeros",),
    ),
    Fault(
        "a padded shortcut takes odd pixels",
        TORCH_LAYERS,
        "x[:, :, :: self.stride, :: self.stride]",
        "x[:, :, 1 :: self.stride, 1 :: self.stride]",
        (f"{TEST_TORCH_LAYERS}::test_padded_shortcuts_take_every_second_pixel_and_add_channels_of_zeros",),
    ),
    Fault(
        "a padded shortcut has its zeros in front",
        TORCH_LAYERS,
        "(0, 0, 0, 0, 0, self.zeros)",
        "(0, 0, 0, 0, self.zeros, 0)",
        (f"{TEST_TORCH_LAYERS}::test_padded_shortcuts_take_every_second_pixel_and_add_channels_of_zeros",),
    ),
    Fault(
        "the largest values stand in their own order",
        TORCH_LAYERS,
        "x.gather(2, largest.sort(dim=2).values)",
        "x.gather(2, largest)",
        (f"{TEST_TORCH_LAYERS}::test_k_max_pooling_keeps_the_order_of_the_series_and_the_first_of_equal_values",),
    ),
    Fault(
        "the first step of a series is read",
        TORCH_LAYERS,
        "return x[:, :, -1]",
        "return x[:, :, 0]",
        (f"{TEST_TORCH_LAYERS}::test_a_recurrent_unit_follows_its_equations",),
    ),
    Fault(
        "token 0 is trained",
        TORCH_LAYERS,
        "padding_idx=0, ",
        "",
        (f"{TEST_TORCH_LAYERS}::test_a_look_up_is_a_linear_layer_of_the_one_hot_rows_and_row_0_is_never_trained",),
    ),
    Fault(
        "images are not padded",
        TORCH_LAYERS,
        "padding=layer.padding,\n                bias",
        "padding=0,\n                bias",
        (
            f"{TEST_MODEL_CONFORMANCE}::test_the_whole_is_its_parts_one_after_the_other_and_shapes_are_the_tables[small_cnn]",
        ),
    ),
    Fault(
        "running means forget at another rate",
        TORCH_LAYERS,
        "normalisation(layer.channels, device",
        "normalisation(layer.channels, momentum=0.01, device",
        (f"{TEST_TORCH_LAYERS}::test_normalisation_learns_its_statistics_and_uses_them_when_evaluated",),
    ),
    Fault(
        "normalisation has another epsilon",
        TORCH_LAYERS,
        "normalisation(layer.channels, device",
        "normalisation(layer.channels, eps=1e-3, device",
        (f"{TEST_TORCH_LAYERS}::test_normalisation_learns_its_statistics_and_uses_them_when_evaluated",),
    ),
    Fault(
        "pooling of series is not padded",
        TORCH_LAYERS,
        "stride=layer.stride, padding=layer.padding)",
        "stride=layer.stride)",
        (
            f"{TEST_MODEL_CONFORMANCE}::test_the_whole_is_its_parts_one_after_the_other_and_shapes_are_the_tables[vdcnn]",
        ),
    ),
    Fault(
        "a recurrent unit reads backwards",
        TORCH_LAYERS,
        "unit(series.transpose(1, 2))",
        "unit(series.flip(2).transpose(1, 2))",
        (f"{TEST_TORCH_LAYERS}::test_a_recurrent_unit_follows_its_equations",),
    ),
    Fault(
        "a convolution's padding counts once",
        "fedsim/models/layers/convolution.py",
        "least = self.kernel - 2 * self.padding\n        if min",
        "least = self.kernel - self.padding\n        if min",
        (f"{TEST_LAYERS}::test_convolution_by_hand",),
    ),
    Fault(
        "running statistics are not sent",
        TABLE,
        "sum(map(prod, self.state_shapes(part).values()))",
        "sum(map(prod, self.parameter_shapes(part).values()))",
        (f"{TEST_PUBLISHED_MODELS}::test_running_statistics_travel_but_are_not_parameters",),
    ),
    Fault(
        "running statistics are parameters",
        TABLE,
        "sum(map(prod, self.parameter_shapes(part).values()))",
        "sum(map(prod, self.state_shapes(part).values()))",
        (f"{TEST_PUBLISHED_MODELS}::test_vgg_has_the_parameters_of_flexifed_and_of_spatl",),
    ),
    Fault(
        "normalisation is a layer of its own",
        TABLE,
        "if signed and isinstance(unit, ChannelNorm):",
        'if signed and unit.kind == "batch_norm1d":',
        (f"{TEST_PUBLISHED_MODELS}::test_common_base_layers_are_those_of_flexifed",),
    ),
    Fault(
        "the digest forgets how weights start",
        TABLE,
        'f"initialisation: {self.initialisation}"',
        '"initialisation: "',
        ("tests/models/test_model_tables.py::test_tables_that_differ_in_anything_have_different_digests",),
    ),
    Fault(
        "a gated unit has four gates",
        RECURRENT,
        "gates: ClassVar[int] = 3",
        "gates: ClassVar[int] = 4",
        (f"{TEST_LAYERS}::test_a_recurrent_unit_by_hand",),
    ),
    Fault(
        "a memory has no gate to forget",
        RECURRENT,
        "gates: ClassVar[int] = 4",
        "gates: ClassVar[int] = 3",
        (f"{TEST_LAYERS}::test_a_recurrent_unit_by_hand",),
    ),
    Fault(
        "a recurrent unit works at one step only",
        RECURRENT,
        "return steps * self.gates",
        "return self.gates",
        (f"{TEST_TORCH_LAYERS}::test_a_recurrent_units_work_is_that_of_its_equations_matrix_products",),
    ),
    Fault(
        "the shortcut's work is forgotten",
        COMPOSITE,
        "for layers in (self.body, self.shortcut))\n\n    def units",
        "for layers in (self.body,))\n\n    def units",
        (f"{TEST_LAYERS}::test_a_residual_block_is_the_sum_of_its_branches_work_and_states",),
    ),
    Fault(
        "a shortcut's size is rounded down",
        COMPOSITE,
        "(-(-size // self.stride) for",
        "(size // self.stride for",
        (f"{TEST_PUBLISHED_MODELS}::test_resnet_halves_images_of_odd_sizes_and_rounds_up",),
    ),
    Fault(
        "branches may differ in shape",
        COMPOSITE,
        "if body != shortcut:",
        "if len(body) != len(shortcut):",
        (f"{TEST_LAYERS}::test_an_input_that_does_not_fit_is_refused_with_layer_rule_and_shape",),
    ),
    Fault(
        "incomplete windows are pooled",
        "fedsim/models/layers/pooling.py",
        "(channels, (length - least) // self.stride + 1)",
        "(channels, -(-(length - least) // self.stride) + 1)",
        (f"{TEST_LAYERS}::test_series_get_the_shapes_of_pytorch_or_are_refused_as_it_does",),
    ),
    Fault(
        "stages of a resnet are one block longer",
        RESNET,
        "range((self.depth - 2) // 6)",
        "range((self.depth + 4) // 6)",
        (f"{TEST_PUBLISHED_MODELS}::test_resnet_has_the_parameters_of_spatl_and_of_flexifed",),
    ),
    Fault(
        "convolutions of a resnet have biases",
        RESNET,
        'return self.normalisation == "none"',
        "return True",
        (f"{TEST_PUBLISHED_MODELS}::test_resnet_has_the_parameters_of_spatl_and_of_flexifed",),
    ),
    Fault(
        "projections of a resnet are not normalised",
        RESNET,
        "return (convolution, *normalising(self.normalisation, 2, channels))",
        "return (convolution,)",
        (f"{TEST_PUBLISHED_MODELS}::test_resnet_has_the_parameters_of_spatl_and_of_flexifed",),
    ),
    Fault(
        "group normalisation has one group",
        NORMALISATION,
        "GROUPS = 2",
        "GROUPS = 1",
        (f"{TEST_LAYERS}::test_group_normalisation_has_two_parameters_for_each_channel_and_remembers_nothing",),
    ),
    Fault(
        "all channels of a sample are one group",
        TORCH_LAYERS,
        "nn.GroupNorm(layer.groups, layer.channels,",
        "nn.GroupNorm(1, layer.channels,",
        (
            f"{TEST_TORCH_LAYERS}::test_group_normalisation_treats_each_sample_by_itself_in_training_and_in_tests",
            "tests/laws/test_group_normalisation.py::test_fedavg_is_the_plain_loop",
        ),
    ),
    Fault(
        "group normalisation is a layer of its own",
        TABLE,
        "if signed and isinstance(unit, ChannelNorm):",
        "if signed and isinstance(unit, ChannelNorm) and unit.buffer_shapes:",
        (f"{TEST_NORMALISATIONS}::test_what_normalises_belongs_to_the_layer_before_it",),
    ),
    Fault(
        "scales of groups stay when their filter goes",
        "fedsim/models/convolutions.py",
        "case ChannelNorm() if isinstance(before, Conv1d | Conv2d):",
        "case ChannelNorm() if isinstance(before, Conv1d | Conv2d) and layer.buffer_shapes:",
        ("tests/models/test_convolutions.py::test_rows_of_filters_are_all_that_convolutions_and_normalisation_have",),
    ),
    Fault(
        "convolutions of a resnet with groups have biases",
        RESNET,
        'return self.normalisation == "none"',
        'return self.normalisation != "batch"',
        (f"{TEST_NORMALISATIONS}::test_parameters_and_bytes_are_those_by_hand_and_those_of_pytorch",),
    ),
    Fault(
        "shortcuts of a very deep model have no biases where nothing normalises them",
        "fedsim/models/vdcnn.py",
        'bias=how == "none")',
        "bias=False)",
        (f"{TEST_NORMALISATIONS}::test_parameters_and_bytes_are_those_by_hand_and_those_of_pytorch",),
    ),
    Fault(
        "wdcnn normalises over batches by itself",
        "fedsim/models/conv1d.py",
        'normalisation: Normalisation = "group"',
        'normalisation: Normalisation = "batch"',
        (f"{TEST_NORMALISATIONS}::test_left_out_it_is_what_the_paper_has_but_for_conv1d",),
    ),
    Fault(
        "a vgg's head decides whatever is said",
        VGG,
        "how = self.normalisation",
        "how = PUBLISHED[self.head]",
        (f"{TEST_NORMALISATIONS}::test_parameters_and_bytes_are_those_by_hand_and_those_of_pytorch",),
    ),
    Fault(
        "a resnet starts by glorot's scheme",
        RESNET,
        '= "kaiming_normal"',
        '= "xavier_uniform"',
        (f"{TEST_PUBLISHED_MODELS}::test_each_model_starts_and_drops_out_as_its_paper_says",),
    ),
    Fault(
        "spatl's vgg is normalised",
        VGG,
        '"narrow": "none"}',
        '"narrow": "batch"}',
        (f"{TEST_PUBLISHED_MODELS}::test_vgg_has_the_parameters_of_flexifed_and_of_spatl",),
    ),
    Fault(
        "a vgg drops out behind its first layer only",
        VGG,
        '            Dropout("dropout2", self.dropout),\n',
        '            Dropout("dropout2", 0.0),\n',
        (f"{TEST_PUBLISHED_MODELS}::test_each_model_starts_and_drops_out_as_its_paper_says",),
    ),
    Fault(
        "the last convolution of characters is not pooled",
        "fedsim/models/char_cnn.py",
        "if number in (1, 2, self.depth)",
        "if number in (1, 2)",
        (f"{TEST_PUBLISHED_MODELS}::test_char_cnn_has_the_parameters_of_flexifed",),
    ),
    Fault(
        "a very deep model is not pooled between stages",
        "fedsim/models/vdcnn.py",
        "            if stage:\n",
        "            if stage > 1:\n",
        (f"{TEST_PUBLISHED_MODELS}::test_vdcnn_has_the_parameters_of_flexifed",),
    ),
    Fault(
        "the last convolution of wdcnn is padded",
        "fedsim/models/conv1d.py",
        "padding=0 if number == len(CHANNELS) else 1",
        "padding=1",
        (f"{TEST_PUBLISHED_MODELS}::test_conv1d_has_the_shapes_and_parameters_of_wdcnn",),
    ),
    Fault(
        "the second recurrent layer reads the sensors",
        "fedsim/models/recurrent.py",
        "            inputs = self.hidden\n",
        "",
        (f"{TEST_PUBLISHED_MODELS}::test_each_recurrent_layer_has_its_gates_and_reads_the_one_before",),
    ),
    Fault(
        "all gates of a unit share their fan",
        INITIALISATION,
        "weight[0] // layer.gates",
        "weight[0]",
        (f"{TEST_INITIALISATION}::test_every_layer_has_its_own_fans",),
    ),
    Fault(
        "fans do not count the kernel",
        INITIALISATION,
        "prod(weight[1:]), weight[0] * prod(weight[2:])",
        "weight[1], weight[0] * prod(weight[2:])",
        (f"{TEST_INITIALISATION}::test_weights_are_uniform_within_the_schemes_bound",),
    ),
    Fault(
        "token 0 starts as any other",
        INITIALISATION,
        "    table[0] = 0.0\n",
        "",
        (f"{TEST_INITIALISATION}::test_normalisation_starts_as_the_identity_and_token_0_as_zero_whatever_the_scheme",),
    ),
    Fault(
        "running variances start at 0",
        INITIALISATION,
        'if kind in ("weight", "running_var")',
        'if kind in ("weight",)',
        (f"{TEST_INITIALISATION}::test_normalisation_starts_as_the_identity_and_token_0_as_zero_whatever_the_scheme",),
    ),
    Fault(
        "a model may have too few outputs",
        MODELS_SETTINGS,
        "if classes is not None and classes > outputs:",
        "if classes is not None and classes > outputs + 1:",
        (f"{TEST_PUBLISHED_MODELS}::test_a_single_output_too_few_is_refused",),
    ),
    Fault(
        "one number may be asked of many outputs",
        MODELS_SETTINGS,
        "if classes == 1 and outputs != 1:",
        "if classes == 1 and outputs < 1:",
        (f"{TEST_PUBLISHED_MODELS}::test_one_number_is_asked_of_one_output",),
    ),
)

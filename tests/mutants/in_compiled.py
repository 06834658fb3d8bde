"""Faults in machine code of our own: convolutions, tiles, products and corrections; and where there is none."""

from __future__ import annotations

from mutants.fault import BATCHED, EXECUTORS, KERNELS, Fault

COMPILED_CONV_STACK = BATCHED + "compiled_conv_stack.py"
TEST_COMPILED = "tests/learning/test_compiled_conv_stack.py"
TEST_PRODUCTS = "tests/learning/test_compiled_products.py"
TEST_CORRECTIONS = "tests/learning/test_corrections.py"
TEST_TILES = "tests/learning/test_tiles.py"
TEST_OBJECT_CACHE = "tests/learning/test_object_cache.py"
TEST_NONE = "tests/laws/test_without_kernels.py"

FAULTS = (
    Fault(
        "of equal places the last one is the largest",
        KERNELS + "forward.py",
        'fcmp_ordered(">", value, best)',
        'fcmp_ordered(">=", value, best)',
        (TEST_COMPILED,),
    ),
    Fault(
        "what is no number is lost in pooling",
        KERNELS + "forward.py",
        'wins = e.build.or_(larger, e.build.fcmp_unordered("uno", value, value))',
        "wins = larger",
        (TEST_COMPILED,),
    ),
    Fault(
        "images are handed on without their margin",
        KERNELS + "shapes.py",
        "        return self.margin * (row + column)",
        "        return 0 * (row + column)",
        (TEST_COMPILED,),
    ),
    Fault(
        "where the rectifier is shut, gradients pass",
        KERNELS + "gradients.py",
        "                value = e.rectified(value, y.load(sample, r, c, channel))",
        "                pass",
        (TEST_COMPILED,),
    ),
    Fault(
        "gradients go to the mirrored place of a square",
        KERNELS + "gradients.py",
        "(down, row), (right, column))",
        "(right, row), (down, column))",
        (TEST_COMPILED,),
    ),
    Fault(
        "gradients of the step before are added once more",
        COMPILED_CONV_STACK,
        "            convolution.begin_step(active)",
        "            pass",
        (TEST_COMPILED,),
    ),
    Fault(
        "of two as near numbers of bfloat16 the odd one is taken",
        KERNELS + "arithmetic.py",
        "self.build.add(words, self.build.add(self.same_words(0x7FFF), odd))",
        "self.build.add(words, self.same_words(0x7FFF))",
        (TEST_TILES,),
    ),
    Fault(
        "terms are cut off, so what is left out of products has a sign",
        KERNELS + "tiles.py",
        "if number == 1 else bits",
        "if number > 2 else bits",
        (TEST_TILES,),
    ),
    Fault(
        "what fills up a line may be anything",
        KERNELS + "tiled_forward.py",
        "        behind.store(e.same_bytes(0), half)",
        "        pass",
        (TEST_TILES,),
    ),
    Fault(
        "later parts of a product on tiles take the place of the first one",
        KERNELS + "tiled_products.py",
        "e.build.select(self.is_first, e.index(0), lanes)",
        "e.index(0)",
        (TEST_TILES,),
    ),
    Fault(
        "later terms take the place of the first ones",
        KERNELS + "emitter.py",
        "e.build.select(anew, e.zeros, before)",
        "e.zeros",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "later inputs take the place of the first ones",
        KERNELS + "products.py",
        "e.build.select(is_first, nothing, made.load_vector(i, lanes=width))",
        "nothing",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "a part of the inputs is always a whole one",
        KERNELS + "products.py",
        "e.smaller(e.index(INPUTS // LANES), e.index_sum((inputs // LANES, 1), (part, -(INPUTS // LANES))))",
        "e.index(INPUTS // LANES)",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "rows of the matrix that fill no block are left out",
        KERNELS + "products.py",
        "        if in_blocks < shape.outputs:",
        "        if False:",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "the last terms are left out where parts are not equal",
        KERNELS + "products.py",
        "e.build.sdiv(e.build.sub(e.build.add(terms, parts), e.index(1)), e.larger(parts, e.index(1)))",
        "e.build.sdiv(terms, e.larger(parts, e.index(1)))",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "the last block of rows of the matrix is left out",
        KERNELS + "products.py",
        "e.loop(-(-blocks // BLOCKS)) as some_blocks",
        "e.loop(blocks // BLOCKS) as some_blocks",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "numbers that fill no vector are left out of a correction",
        KERNELS + "corrections.py",
        "            multiply(e.index(whole), e.first_lanes(e.index(rest)))",
        "            pass",
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "all clients' changes have the coefficients of the first one",
        KERNELS + "corrections.py",
        'e.array("coefficients", (1,)).at(first_row)',
        'e.array("coefficients", (1,))',
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "made numbers that fill no vector are not corrected",
        KERNELS + "corrections.py",
        "            add(e.index(whole), 1, e.first_lanes(e.index(rest)))",
        "            pass",
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "all clients' changes are made of the first one's rows",
        KERNELS + "corrections.py",
        'e.array("right", (made,)).at(e.build.mul(client, e.count("capacity")), strides=(made, LANES))',
        'e.array("right", (made, LANES))',
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "rows that fill no block are left out of a correction",
        KERNELS + "corrections.py",
        "in_parts(e, rows, (width, 1), ",
        "in_parts(e, rows, (width,), ",
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "the last tile of rows is left out",
        KERNELS + "loops.py",
        "(16, 8, 4, 2, 1)",
        "(16, 8, 4, 2)",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "damaged machine code is executed",
        KERNELS + "object_cache.py",
        "content[:begin] == _HEADER + _digest(key, payload)",
        "content.startswith(_HEADER)",
        (f"{TEST_OBJECT_CACHE}::test_an_entry_that_is_not_what_was_written_is_made_anew",),
    ),
    Fault(
        "machine code of another name is executed",
        KERNELS + "object_cache.py",
        "hashlib.sha256(key.encode() + payload)",
        "hashlib.sha256(payload)",
        (f"{TEST_OBJECT_CACHE}::test_an_entry_that_is_not_what_was_written_is_made_anew[name_as_another]",),
    ),
    Fault(
        "machine code comes from a folder in which others can write",
        KERNELS + "object_cache.py",
        "    if _is_ours(os.fstat(home)):",
        "    if home:",
        (
            f"{TEST_OBJECT_CACHE}::test_a_folder_into_which_others_can_write_is_not_used",
            f"{TEST_OBJECT_CACHE}::test_a_folder_of_somebody_else_is_not_used",
        ),
        by_each=True,
    ),
    Fault(
        "room is made by what is not ours",
        KERNELS + "object_cache.py",
        "if _has_header(home, name):",
        "if True:",
        (f"{TEST_OBJECT_CACHE}::test_nothing_is_removed_that_is_not_ours",),
    ),
    Fault(
        "machine code of another processor is taken",
        KERNELS + "program.py",
        "llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()\n    return",
        'llvm.get_host_cpu_name(), ""\n    return',
        (f"{TEST_OBJECT_CACHE}::test_another_processor_or_other_sources_have_code_of_their_own",),
    ),
    Fault(
        "machine code is told by the name of its emitter alone",
        KERNELS + "program.py",
        "repr((home, name, _told(self._arguments), _told(tuple(sorted(self._options.items())))))",
        "repr((home, name))",
        (f"{TEST_OBJECT_CACHE}::test_a_program_is_written_and_compiled_once",),
    ),
    Fault(
        "what PyTorch computes alone is taken for what kernels compute",
        KERNELS + "processor.py",
        'else ["kernels=none"]',
        "else []",
        (f"{TEST_NONE}::test_a_run_keeps_to_kernels_or_to_none",),
    ),
    Fault(
        "nobody is told that there are no kernels",
        "fedsim/experiment/host.py",
        "return said if why is None else",
        "return said if True else",
        (f"{TEST_NONE}::test_a_run_keeps_to_kernels_or_to_none",),
    ),
    Fault(
        "a recurrent layer asks for kernels where there are none",
        EXECUTORS + "fused/recurrent.py",
        "if not (has_kernels() and isinstance(layer, nn.GRU | nn.LSTM))",
        "if not isinstance(layer, nn.GRU | nn.LSTM)",
        (f"{TEST_NONE}::test_updates_and_sums_are_as_near_to_float64_as_the_references",),
    ),
)

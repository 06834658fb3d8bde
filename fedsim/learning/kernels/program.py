"""Functions in machine code, made by LLVM or taken from what was kept of an earlier process."""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from fedsim.learning.kernels.object_cache import kept
from fedsim.learning.kernels.shapes import Kernel

__all__ = ["Part", "Program"]

PACKAGE = __name__.rpartition(".")[0]
"""Where all emitters stand, and what they compute with beside their arguments."""
SOURCES = Path(__file__).parent
"""Of that package."""


class Part:
    """A function that an emitter writes into a module; it does so only where no machine code of it was kept."""

    def __init__(self, emit: Callable[..., None], *arguments: object, **options: object) -> None:
        """*emit* takes the module, *arguments* and *options*: numbers, words, tuples, and data classes of these."""
        self._emit, self._arguments, self._options = emit, arguments, options

    def write(self, module: ir.Module) -> None:
        """Write it into *module*."""
        self._emit(module, *self._arguments, **self._options)

    @property
    def identity(self) -> str:
        """What its machine code is a function of, beside the sources and the processor.

        Raises `TypeError` for an argument that does not say all of what it is, and for an emitter from elsewhere.
        """
        home, name = self._emit.__module__, self._emit.__qualname__
        if not f"{home}.".startswith(f"{PACKAGE}.") or not name.isidentifier():
            raise TypeError(f"{home}.{name} is no function of {PACKAGE}: nobody could tell when it has changed")
        return repr((home, name, _told(self._arguments), _told(tuple(sorted(self._options.items())))))


def _told(value: object) -> object:
    """*value* as plain data that tell it from any other one."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return (type(value).__qualname__, *map(_told, value))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__qualname__, *(_told(getattr(value, field.name)) for field in fields(value)))
    raise TypeError(f"{value!r} is no plain value: machine code cannot be kept by it")


class Program:
    """Functions in machine code, made for this processor."""

    def __init__(self, *parts: Part | ir.Module) -> None:
        """Of several parts; or of one module that is written already."""
        identity = "\n".join(part.identity if isinstance(part, Part) else str(part) for part in parts)
        key = _key(identity)
        code = _compiled(parts) if key is None else kept(key, lambda: _compiled(parts))
        signatures, _, self._object = code.partition(b"\n")
        self._kinds: dict[str, str] = json.loads(signatures)
        self._engine = _loaded(self._object)

    def kernel(self, name: str | None = None) -> Kernel:
        """One of them, or the only one there is; the interpreter's lock is free while it runs."""
        if name is None:
            (name,) = self._kinds
        kinds = (ctypes.c_void_p if kind == "p" else ctypes.c_int64 for kind in self._kinds[name])
        function = ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))
        function.program = self  # type: ignore[attr-defined]  # as long as somebody has the function, the code is there
        return function


def _compiled(parts: Sequence[Part | ir.Module]) -> bytes:
    """A line of what each function takes, ``p`` for an address and ``i`` for a count, and the object code behind it."""
    module = next((part for part in parts if isinstance(part, ir.Module)), None) or ir.Module()
    for part in parts:
        if isinstance(part, Part):
            part.write(module)
    made = [function for function in module.functions if not function.is_declaration]
    kinds = {one.name: "".join("p" if argument.type.is_pointer else "i" for argument in one.args) for one in made}
    return json.dumps(kinds).encode() + b"\n" + _object_code(module)


def _object_code(module: ir.Module) -> bytes:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = _target_machine()
    passes = llvm.create_new_module_pass_manager()
    # Variables into registers, and little else: loops are written as they should run.
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    code: bytes = machine.emit_object(parsed)
    return code


def _loaded(code: bytes) -> Any:
    """An engine that has the object *code* in memory."""
    machine = _target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _target_machine() -> Any:
    """LLVM's idea of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )


def _key(identity: str) -> str | None:
    """Of machine code: what is made, by which sources and which LLVM, for which processor; None without sources."""
    origin = _origin()
    processor = llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return None if origin is None else hashlib.sha256("\n".join((origin, *processor, identity)).encode()).hexdigest()


@cache
def _origin() -> str | None:
    """Of the sources that write and compile a program, and of LLVM; None where they cannot be read."""
    digest = hashlib.sha256(f"{llvmlite.__version__} {llvm.llvm_version_info}".encode())
    try:
        for file in (Path(__file__), *sorted(SOURCES.rglob("*.py"))):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    except OSError:  # such as in an archive
        return None
    return digest.hexdigest()


_origin()  # of what has just been imported, not of what somebody writes while it runs

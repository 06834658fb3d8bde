"""A user's own Python code, by where it stands: ``my_data.py:clients`` or ``package.module:clients``.

What is loaded is run, with the rights of whoever runs fedsim: a scenario that names code is as trusted as the code.
Left out: other files beside ``my_data.py`` are not found by its imports (what is more than one file is a package, to be
installed), and only the one file is digested.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo

from fedsim.errors import Misfit, UserError, nearest
from fedsim.files import read_text_file

__all__ = ["ImportPath", "load_function", "reason"]

SUFFIX = ".py"
LONGEST_REASON = 300
INSIDE_PYTHON = "<frozen "


def _parts(path: str) -> tuple[str, str]:
    """File or module, and name. Raises `Misfit` unless there are both."""
    where, _, name = path.rpartition(":")
    dotted = where.endswith(SUFFIX) or all(part.isidentifier() for part in where.split("."))
    if not (where.removesuffix(SUFFIX) and dotted and name.isidentifier()):
        raise Misfit(f"{path!r} must be a file and a name, as in my_code.py:name, or package.module:name")
    return where, name


def _beside_the_scenario(path: str, info: ValidationInfo) -> str:
    """*path* with its file, if it names one, made absolute as seen from the document that is read."""
    where, name = _parts(path)
    if not where.endswith(SUFFIX):
        return path
    try:
        file = Path(getattr(info.context, "source", "")).parent / where
        return f"{file.parent.resolve() / file.name}:{name}"
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a null character
        raise ValueError(f"{path!r} cannot be looked up ({error})") from error


ImportPath = Annotated[str, AfterValidator(_beside_the_scenario)]
"""``my_code.py:name``, relative to the scenario, or ``package.module:name`` of what is installed."""


def load_function(path: str, *, what: str) -> tuple[Callable[..., Any], str]:
    """The function or class that *path*, an `ImportPath`, names, and the SHA-256 of the files that it stands in.

    *what* says for messages what is needed ("a function that makes a data set"). Code of a file is run once for each
    content. Raises `UserError` when there is no such file, module or name, when the code fails while it is imported
    (with its reason and line), and when what it names cannot be called.
    """
    where, name = _parts(path)
    module, sha256 = _from_file(Path(where), what) if where.endswith(SUFFIX) else _from_package(where, what)
    if not hasattr(module, name):
        public = [known for known in vars(module) if not known.startswith("_")]
        raise UserError(f"{where}: there is no {name!r}{nearest(name, public)}; {what} is needed")
    found = getattr(module, name)
    if not callable(found):
        raise UserError(f"{where}: {name!r} is of type {type(found).__name__} and cannot be called; {what} is needed")
    return found, _with_origin(found, module, sha256)


def _with_origin(found: Callable[..., Any], module: ModuleType, sha256: str) -> str:
    """*sha256*, that of the module's file, and the content of the file from which the module has *found* itself."""
    origin = sys.modules.get(getattr(found, "__module__", None) or "", module)
    file = getattr(origin, "__file__", None)
    if origin is module or file is None:
        return sha256
    return hashlib.sha256(sha256.encode() + Path(file).read_bytes()).hexdigest()


def reason(error: BaseException, file: str | None = None) -> str:
    """Why a user's code failed, on one line: ``my_data.py:12: KeyError: 'age'``.

    The line is the innermost one that stands in *file*; without a *file*, the innermost one of all.
    """
    if isinstance(error, SyntaxError) and error.filename:
        where: str | None = f"{error.filename}:{error.lineno}"
        says = error.msg
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        frames = [frame for frame in frames if not frame.filename.startswith(INSIDE_PYTHON)]
        if file is not None:
            frames = [frame for frame in frames if frame.filename == file]
        where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else file
        says = str(error)
    text = " ".join(f"{type(error).__name__}: {says}".split()).removesuffix(":")
    text = text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 3]}..."
    return f"{where}: {text}" if where else text


def _from_file(file: Path, what: str) -> tuple[ModuleType, str]:
    source = read_text_file(file, what="a Python file")
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    name = f"fedsim_user_{file.stem}_{hashlib.sha256(f'{file}:{sha256}'.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name], sha256
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "it ends with .py"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        exec(compile(source, str(file), "exec"), vars(module))  # not the loader, which may find an older compilation
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _not_imported(error, what, str(file)) from error
    return module, sha256


def _from_package(name: str, what: str) -> tuple[ModuleType, str]:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _not_imported(error, what) from error
        raise UserError(
            f"no module is called {error.name!r}, where {what} should be; install it where fedsim is installed "
            f"(pip install -e), or name a file: {name.replace('.', '/')}{SUFFIX}:name"
        ) from error
    except (Exception, SystemExit) as error:
        raise _not_imported(error, what) from error
    file = getattr(module, "__file__", None)
    if file is None:
        raise UserError(f"the module {name!r} stands in no file, and {what} must; write a file of your own")
    return module, hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _not_imported(error: BaseException, what: str, file: str | None = None) -> UserError:
    hint = ""
    if file is not None and isinstance(error, ModuleNotFoundError):
        hint = "; files beside it are not found, only what is installed (pip install)"
    return UserError(f"{reason(error, file)}{hint}; {what} could not be imported")

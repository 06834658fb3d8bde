"""A user's own Python code, by where it stands: ``my_data.py:clients`` or ``package.module:clients``.

What is loaded is run, with the rights of whoever runs fedsim: a scenario that names code is as trusted as the code.
Left out: other files beside ``my_data.py`` are not found by its imports (what is more than one file is a package, to be
installed), and only the files that functions and classes stand in are digested, not what these import.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo

from fedsim.errors import Misfit, UserError, nearest
from fedsim.files import beside, read_text_file

__all__ = ["ImportPath", "beside_the_scenario", "import_path", "is_own", "load_function", "reason", "source_digest"]

SUFFIX = ".py"
USER_MODULE = "fedsim_user_"
DIGEST = "__fedsim_sha256__"
"""The name, in a module that is made of a user's file, of the digest of what was run."""
LONGEST_REASON = 300
INSIDE_PYTHON = "<frozen "


def _parts(path: str) -> tuple[str, str]:
    """File or module, and name. Raises `Misfit` unless there are both."""
    where, _, name = path.rpartition(":")
    dotted = where.endswith(SUFFIX) or all(part.isidentifier() for part in where.split("."))
    if not (where.removesuffix(SUFFIX) and dotted and name.isidentifier()):
        raise Misfit(f"{path!r} must be a file and a name, as in my_code.py:name, or package.module:name")
    return where, name


def beside_the_scenario(path: str, info: ValidationInfo) -> str:
    """*path* with its file, if it names one, made absolute as seen from the document that is read.

    Raises `ValueError` when that is no import path, or its file cannot be looked up.
    """
    where, name = _parts(path)
    if not where.endswith(SUFFIX):
        return path
    return f"{beside(info.context, where)}:{name}"


ImportPath = Annotated[str, AfterValidator(beside_the_scenario)]
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


def import_path(cls: type) -> str:
    """The import path that leads to *cls*, which stands in its module under its own name."""
    file = sys.modules[cls.__module__].__file__ if cls.__module__.startswith(USER_MODULE) else None
    return f"{file or cls.__module__}:{cls.__name__}"


@cache
def source_digest(cls: type) -> str | None:
    """SHA-256 of the files in which *cls*, and what it inherits from outside of fedsim, were found when they were run.

    None for fedsim's own classes. What these and Python itself bring with them does not count. For a single file, this
    is the file's own digest. Raises `UserError` for a class that stands in no file: nobody could tell it from another.
    """
    if is_own(cls):
        return None
    own = filter(is_own, cls.__mro__)
    brought = {above for kind in own for above in kind.__mro__}
    outside = [kind for kind in cls.__mro__ if kind not in brought and _top(kind) not in sys.stdlib_module_names]
    digests = [_digest_of(module) for module in dict.fromkeys(kind.__module__ for kind in outside)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def is_own(cls: type) -> bool:
    """Whether *cls* comes with fedsim."""
    return _top(cls) == "fedsim"


def _top(cls: type) -> str:
    return cls.__module__.partition(".")[0]


@cache
def _digest_of(module: str) -> str:
    """SHA-256 of the file of *module*; where fedsim has run that file itself, of what was run."""
    found = sys.modules.get(module)
    known: str | None = getattr(found, DIGEST, None)
    if known is not None:
        return known
    file = getattr(found, "__file__", None)
    if file is None:
        raise UserError(f"the module {module!r} stands in no file, so its code cannot be told from another one")
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


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
    name = f"{USER_MODULE}{file.stem}_{hashlib.sha256(f'{file}:{sha256}'.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name], sha256
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "it ends with .py"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    setattr(module, DIGEST, sha256)
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

"""Components that do not come with fedsim: classes in a user's file, and those that installed packages offer.

A scenario names the first by ``path`` in place of ``name``; the others have names like fedsim's own. Both are written
out with the path of the class and the digest of its source, so that a run with other code is another run. Left out:
classes with a key ``path`` or ``sha256`` of their own, as these say here which class is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from inspect import isabstract
from typing import Any

from pydantic import BaseModel, SerializationInfo, SerializerFunctionWrapHandler, ValidationError, ValidationInfo
from pydantic_core import SchemaValidator, core_schema

from fedsim import registry
from fedsim.errors import Misfit, UserError, within
from fedsim.imports import beside_the_scenario, import_path, is_own, reason, source_digest

__all__ = ["Unread", "made", "written"]

RESERVED = ("path", "sha256")


class Unread(BaseModel):
    """Stands for a component whose code is not to be run."""

    name: str


def made(kind: str, base: type[BaseModel], value: object, info: ValidationInfo) -> BaseModel | None:
    """The component of *kind*, derived from *base*, that *value* describes; None where that is fedsim's own to do.

    Raises `Misfit` about the key that is wrong, and pydantic's `ValidationError`, whose first step is what
    `fedsim.registry.load` finds the class by. Where the document *info* tells of is only to be read, no code is run:
    what is made then has a name and nothing else.
    """
    if not isinstance(value, Mapping) or (found := _named(kind, value, info)) is None:
        return None
    key, tag = found
    if not getattr(info.context, "runs_code", True):
        return Unread(name=tag)
    try:
        cls = _checked(kind, base, tag, key)
        _check_digest(cls, value.get("sha256"))
        cls.model_rebuild()  # says what an annotation names that is not there
        schema = core_schema.tagged_union_schema({tag: cls.__pydantic_core_schema__}, discriminator=lambda _: tag)
        keys = {step: inside for step, inside in value.items() if step not in RESERVED}
        component: BaseModel = SchemaValidator(schema).validate_python(keys, context=info.context)
    except (UserError, ValidationError):
        raise
    except Exception as error:  # of the user's code
        raise Misfit(f"{tag} fails while its keys are checked: {reason(error)}") from error
    return component


def _check_digest(cls: type[BaseModel], wanted: object) -> None:
    digest = source_digest(cls)
    if wanted is not None and str(wanted).lower() != digest:
        raise Misfit(
            f"{import_path(cls)} is other code than this scenario was made with: its digest is {digest}; bring the old "
            "one back, or leave sha256 out to use this one",
            "sha256",
        )


def _named(kind: str, value: Mapping[str, Any], info: ValidationInfo) -> tuple[str, str] | None:
    """By which key a class from outside is named, and what `fedsim.registry.load` finds it by; None for one of ours."""
    name, path = value.get("name"), value.get("path")
    ours = registry.names(kind)
    if isinstance(path, str) and "name" not in value:
        with within("path"):
            return "path", beside_the_scenario(path, info)
    if (
        isinstance(path, str)
        and ":" in path
        and not (name in ours and "path" in registry.load(kind, name).model_fields)
    ):
        raise Misfit("stands beside a name; leave the name out, as the class at this path has its own", "path")
    if isinstance(name, str) and name not in ours and name in registry.offers(kind):
        return "name", name
    return None


def _checked(kind: str, base: type[BaseModel], tag: str, key: str) -> type[BaseModel]:
    """The class that `fedsim.registry.load` finds by *tag*, where it can be what is wanted."""
    try:
        cls: object = registry.load(kind, tag)
    except UserError as error:
        raise Misfit(str(error), key) from error
    wanted = f"a class derived from {base.__module__}.{base.__name__}"
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise Misfit(f"{tag} is {'another class' if isinstance(cls, type) else 'no class'}, and must be {wanted}", key)
    if is_own(cls):
        raise Misfit(f"{tag} is fedsim's own {cls.__name__}, and must be {wanted}; fedsim's have names", key)
    if isabstract(cls):
        raise Misfit(f"{tag} leaves open what {wanted} must define: {', '.join(sorted(cls.__abstractmethods__))}", key)
    there: object = getattr(sys.modules[cls.__module__], cls.__name__, None)
    if there is not cls:
        raise Misfit(f"{tag} must stand in its file under its own name, {cls.__name__}, or no run folder finds it", key)
    if reserved := [field for field in RESERVED if field in cls.model_fields]:
        raise Misfit(f"{tag} has a key {reserved[0]!r} of its own, which says here what class is meant; rename it", key)
    name: str = cls.model_fields["name"].default
    if name in registry.names(kind):
        raise Misfit(f"{tag} is called {name!r} as one of fedsim's own {kind}; give its name another Literal", key)
    if key == "name" and name != tag:
        raise Misfit(f"is what {registry.origin(kind, tag)} offers, but the class calls itself {name!r}", key)
    return cls


def written(kind: str, value: Any, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
    """A component of *kind* as plain data, from which it is made again."""
    cls: type = type(value)
    if is_own(cls) or (value.name in registry.names(kind) and registry.load(kind, value.name) is cls):
        return handler(value)
    keys = value.model_dump(mode=info.mode, exclude={"name"}, exclude_none=info.exclude_none)
    return {"path": import_path(cls), "sha256": source_digest(cls), **keys}

"""How a body becomes a wire type: strictly, and with a refusal that names the field."""

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from litestar import Request

from windlass.errors import BadRequest, Invalid, WindlassError

_PLACE = re.compile(r" - at `\$\.?(.*?)`$")
_BAD_OPTION = "Invalid enum value"


class JsonRequest(Request[Any, Any, Any]):
    """The framework's request, but for its reading of a body: that one takes 0 for false, and fails on bad UTF-8."""

    async def json(self) -> Any:
        handler: Any = self.route_handler
        return decode(await self.body(), handler.parsed_fn_signature.parameters["data"].annotation)


def decode(body: bytes, kind: Any) -> Any:
    """The body as `kind`. Nothing is bent into shape: a text is no number, and 0 is not false."""
    try:
        # Decoded first: what is in fields we do not know must be valid too.
        return msgspec.json.decode(str(body, "utf-8"), type=kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), kind) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest("The body is not valid JSON. Send one object, in UTF-8.") from None


def _refusal(text: str, kind: Any) -> WindlassError:
    """Malformed (400), or well-formed but none of the options (422)."""
    place = _PLACE.search(text)
    field = place[1] if place else ""
    problem = _PLACE.sub("", text)
    if problem.startswith(_BAD_OPTION):
        options = _options(kind, field)
        return Invalid(f"{field} must be one of: {options}." if options else f"{field}: {problem}.")
    return BadRequest(f"{field or 'The body is wrong'}: {problem}.")


def _options(kind: Any, field: str) -> str:
    """What a field of a struct may be, if it is one of a few words."""
    hint = get_type_hints(kind).get(field) if isinstance(kind, type) else None
    return ", ".join(get_args(hint)) if get_origin(hint) is Literal else ""

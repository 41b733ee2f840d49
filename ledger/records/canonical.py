"""Canonical JSON (RFC 8785, keys sorted by code point) and the hashes made of it.

Two programs that agree on a value agree on these bytes. Values must have passed `values.check`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value, as UTF-8."""
    out: list[str] = []
    _write(value, out)
    return "".join(out).encode()


def sha256(value: Any) -> str:
    """Return `sha256:` and the hex digest of a value's canonical JSON."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, dict):
        out.append("{")
        for i, key in enumerate(sorted(value)):
            out.append(("," if i else "") + json.dumps(key, ensure_ascii=False) + ":")
            _write(value[key], out)
        out.append("}")
    elif isinstance(value, list):
        out.append("[")
        for i, item in enumerate(value):
            if i:
                out.append(",")
            _write(item, out)
        out.append("]")
    elif isinstance(value, float):
        out.append(_number(value))
    else:
        out.append(json.dumps(value, ensure_ascii=False))


def _number(value: float) -> str:
    """Write a float as ECMAScript does: shortest digits, no `.0`, exponents outside 1e-6..1e21."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    significant = significant.rstrip("0")
    count = len(significant)
    if count <= point <= 21:
        return sign + significant + "0" * (point - count)
    if 0 < point <= 21:
        return sign + significant[:point] + "." + significant[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + significant
    mantissa = significant[0] + ("." + significant[1:] if count > 1 else "")
    return f"{sign}{mantissa}e{point - 1:+d}"

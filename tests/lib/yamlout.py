"""Writes dictionaries as the YAML that Baton reads: block style, no anchors, no tags."""
import json
import re

PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:%+-]*")


def scalar(value):
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if PLAIN.fullmatch(value) and not value.endswith(":"):
        return value
    return json.dumps(value, ensure_ascii=False)


def dump(value, indent=0):
    pad = "  " * indent
    if isinstance(value, dict):
        if not value:
            return " {}\n"
        text = "\n" if indent else ""
        for name, member in value.items():
            inner = dump(member, indent + 1)
            text += f"{pad}{scalar(name)}:{inner if inner.startswith(chr(10)) or inner.startswith(' ') else ' ' + inner}"
        return text
    if isinstance(value, (list, tuple)):
        if not value:
            return " []\n"
        text = "\n"
        for member in value:
            inner = dump(member, indent + 1)
            if isinstance(member, dict) and member:
                lines = inner.lstrip("\n")
                text += pad + "- " + lines.lstrip(" ")
            else:
                text += pad + "-" + (inner if inner.startswith(" ") else " " + inner)
        return text
    return scalar(value) + "\n"

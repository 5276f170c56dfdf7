"""Makes the wheel of the client: python3 build.py OPENAPI-3.0.json FOLDER VERSION.

Writes humanqa/types.py from the API's document first, then FOLDER/humanqa-VERSION-py3-none-any.whl.
A wheel is a zip with a list of its files, so neither pip nor an index is needed. Two runs give the same bytes.
"""

import base64
import hashlib
import io
import json
import pathlib
import re
import sys
import textwrap
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
HEAD = '''# Generated from the API's document by build.py. Do not edit.
"""The bodies and answers of the API. What may be left out is NotRequired; keys that are not here may come, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired  # the type checker has it

'''


class Types:
    """Types collects the declarations of a document's schemas."""

    def __init__(self, schemas):
        self.schemas, self.classes, self.aliases = schemas, [], []
        for name, schema in schemas.items():
            if "properties" in schema:
                self.declare(name, schema)
            else:
                self.aliases.append(f"{name} = {self.of(schema)}\n")

    def declare(self, name, schema):
        """Declares a class of an object."""
        lines = [f"class {name}(TypedDict):"]
        lines += comment(schema.get("description"))
        for key, field in schema["properties"].items():
            kind = self.of(field)
            if key not in schema.get("required", []):
                kind = f"NotRequired[{kind}]"
            lines.append(f"    {key}: {kind}")
            lines += comment(field.get("description"))
        self.classes.append("\n".join(lines) + "\n")

    def of(self, schema):
        """The annotation of a schema."""
        if "allOf" in schema:
            return self.of(schema["allOf"][0])
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            schema, kind = self.schemas[name], f'"{name}"'
        elif "enum" in schema:
            kind = "Literal[" + ", ".join(repr(v) for v in schema["enum"] if v is not None) + "]"
        elif schema.get("type") == "array":
            kind = f"List[{self.of(schema['items'])}]"
        elif schema.get("type") == "object":
            values = schema.get("additionalProperties")
            kind = f"Dict[str, {self.of(values) if isinstance(values, dict) and values else 'Any'}]"
        else:
            kind = SCALARS.get(schema.get("type"), "Any")
        return f"Optional[{kind}]" if schema.get("nullable") else kind


def comment(text):
    """A description as the text of a declaration."""
    if not text:
        return []
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"', "'")
    return textwrap.wrap(f'"""{text}"""', 110, initial_indent="    ", subsequent_indent="    ")


def event_types(document):
    """Each webhook's body by the name of its event, so that a check of event tells them apart."""
    for event, item in sorted(document["x-webhooks"].items()):
        body = item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        yield event, "".join(part.capitalize() for part in re.split("[._]", event)) + "Event", body


def types_of(document):
    """The text of types.py."""
    schemas = document["components"]["schemas"]
    types = Types(schemas)
    for event, name, body in event_types(document):
        schema = json.loads(json.dumps(schemas[body]))
        for key in ("event", "type"):
            schema["properties"][key]["enum"] = [event]
        types.declare(name, schema)
    events = ", ".join(name for _, name, _ in event_types(document))
    return HEAD + "\n\n".join(types.classes) + "\n\n" + "".join(types.aliases) + f"\nWebhook = Union[{events}]\n"


def wheel(version):
    """The wheel's bytes."""
    version = re.sub(r"~(\d+)\.([0-9a-f]+)$", r".dev\1+\2", version)  # of a commit without a tag
    files = {"humanqa/" + f.name: f.read_bytes() for f in sorted((HERE / "humanqa").glob("*")) if f.suffix == ".py" or f.name == "py.typed"}
    info = f"humanqa-{version}.dist-info/"
    files[info + "METADATA"] = (
        f"Metadata-Version: 2.1\nName: humanqa\nVersion: {version}\nSummary: The client of the Human QA Testing Service\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n").encode() + (HERE / "README.md").read_bytes()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, body in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(body)}\n"
    files[info + "RECORD"] = (record + f"{info}RECORD,,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, body)
    return f"humanqa-{version}-py3-none-any.whl", out.getvalue()


def main(document, folder, version):
    """Writes the types and the wheel."""
    types = types_of(json.loads(pathlib.Path(document).read_text("utf-8")))
    (HERE / "humanqa/types.py").write_text(types, "utf-8")
    name, body = wheel(version)
    (pathlib.Path(folder) / name).write_bytes(body)


if __name__ == "__main__":
    main(*sys.argv[1:])

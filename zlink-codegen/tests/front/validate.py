"""Holds YAML files to a JSON Schema, as an editor does: prints a line per file, `ok` or what is wrong.

It takes YAML as the 1.2 core schema does, in which `yes` is a word, and keys as text.
"""

import json
import re
import sys

import jsonschema
import yaml

CORE = [
    (re.compile(r"^(~|null|Null|NULL|)$"), lambda text: None),
    (re.compile(r"^(true|True|TRUE)$"), lambda text: True),
    (re.compile(r"^(false|False|FALSE)$"), lambda text: False),
    (re.compile(r"^[-+]?[0-9]+$"), int),
    (re.compile(r"^0x[0-9a-fA-F]+$"), lambda text: int(text, 16)),
    (re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), float),
]


def value(node):
    if isinstance(node, yaml.MappingNode):
        return {key.value: value(item) for key, item in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [value(item) for item in node.value]
    if node.style is None:
        for pattern, convert in CORE:
            if pattern.match(node.value):
                return convert(node.value)
    return node.value


schema = json.load(open(sys.argv[1], encoding="utf-8"))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for line in sys.stdin:
    path = line.rstrip("\n")
    try:
        with open(path, encoding="utf-8") as file:
            document = value(yaml.compose(file, yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, RecursionError, TypeError) as error:
        print("unreadable", type(error).__name__)
        continue
    error = jsonschema.exceptions.best_match(validator.iter_errors(document))
    print("ok" if error is None else f"wrong {error.json_path}: {error.message}".replace("\n", " "))

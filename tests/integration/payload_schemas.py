# SPDX-License-Identifier: Apache-2.0
"""What came over MQTT, held against the schema of its topic (daemon/publish/schema/). The part of
JSON Schema that these use; an unknown keyword fails, so none is passed over."""
import json
import re

from harness import SOURCE

# topics below PREFIX/DEVICE, and Home Assistant's
SCHEMAS = [
    (r"status", "status"), (r"info", "info"), (r"summary", "summary"), (r"missed", "missed"), (r"stage/[^/]+/[^/]+", "stage"),
    (r"alert/[^/]+/[^/]+", "alert"), (r"event/alert", "alert"), (r"event/recording", "recording"),
    (r"diagnosis/[^/]+", "diagnosis"),
]
KNOWN = {"$schema", "title", "description", "type", "properties", "required", "additionalProperties",
         "patternProperties", "const", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength",
         "maxProperties"}
KINDS = {"object": dict, "string": str, "boolean": bool, "null": type(None), "array": list}


def is_kind(value, kind):
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def check_members(schema, value, path):
    for name in schema.get("required", []):
        assert name in value, (path, name, value)
    assert len(value) <= schema.get("maxProperties", len(value)), (path, len(value))
    for name, member in value.items():
        rules = [schema["properties"][name]] if name in schema.get("properties", {}) else []
        rules += [rule for pattern, rule in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
        if not rules:
            rest = schema.get("additionalProperties", True)
            assert rest is not False, (path, name)
            rules = [rest] if isinstance(rest, dict) else []
        for rule in rules:
            check_value(rule, member, f"{path}.{name}")


def check_value(schema, value, path):
    assert set(schema) <= KNOWN, (path, set(schema) - KNOWN)
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(is_kind(value, kind) for kind in kinds), (path, value, kinds)
    if "const" in schema:
        assert value == schema["const"] and type(value) is type(schema["const"]), (path, value)
    if "enum" in schema:
        assert value in schema["enum"], (path, value)
    if isinstance(value, str):
        assert re.search(schema.get("pattern", ""), value), (path, value)
        assert schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30), (path, value)
    if is_kind(value, "number"):
        assert schema.get("minimum", value) <= value <= schema.get("maximum", value), (path, value)
    if isinstance(value, dict):
        check_members(schema, value, path)


def check_against_schema(name, payload):
    schema = json.loads((SOURCE / "daemon/publish/schema" / (name + ".json")).read_text())
    check_value(schema, payload, name)


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def check_message(topic, text, base):
    """One that a subscriber received: its topic is of the contract, its payload as the schema of the
    topic says. Returns the name of the schema, and the payload."""
    if topic == f"homeassistant/device/edgeprof_{base.rsplit('/', 1)[1]}/config":
        name = "home_assistant"
    else:
        assert topic.startswith(base + "/"), topic
        found = [name for pattern, name in SCHEMAS if re.fullmatch(pattern, topic[len(base) + 1:])]
        assert len(found) == 1, topic
        name = found[0]
    if text == "" and re.search("/alert/[^/]+/[^/]+$|/diagnosis/[^/]+$|/config$", topic):
        return name, None  # taken back
    payload = text if name == "status" else json.loads(text, object_pairs_hook=no_duplicates)
    check_against_schema(name, payload)
    if name not in ("status", "home_assistant"):
        word = {"recording": "recording_event"}.get(name, name)
        assert payload["schema"] == f"edgeprof.{word}/1", payload
        flat = all(isinstance(value, (int, float, str, bool)) for value in payload.values())
        assert flat, payload
    return name, payload

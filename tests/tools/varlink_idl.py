#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent reader of Varlink interface descriptions, and a validator of replies.

Nothing here is shared with the daemon. The grammar is the specification's, narrowed by what
systemd's stricter parser wants: no comment behind code on a line, no trailing comma, identifiers for
enum values, no `any`, no nullable of nullable.

    varlink_idl.py check FILE                 the description itself
    varlink_idl.py reply FILE METHOD [JSON]   one reply (argument or stdin), exit 1 when it is wrong
"""
import json
import re
import sys

INTERFACE = re.compile(r"[A-Za-z](-*[A-Za-z0-9])*(\.[A-Za-z0-9](-*[A-Za-z0-9])*)+$")
MEMBER = re.compile(r"[A-Z][A-Za-z0-9]*$")
FIELD = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*$")
BASIC = ("bool", "int", "float", "string", "object")
KEYWORDS = ("interface", "type", "method", "error")
TOKEN = re.compile(r"->|\[string\]|\[\]|[?():,]|[A-Za-z][A-Za-z0-9._-]*")


class BadInterface(Exception):
    pass


class BadReply(Exception):
    pass


def tokens(text):
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("#") or not stripped:
            continue
        if "#" in line:
            raise BadInterface(f"line {number}: a comment behind code")
        if "\t" in line or line != line.rstrip():
            raise BadInterface(f"line {number}: tab or trailing space")
        at = 0
        while at < len(line):
            if line[at] == " ":
                at += 1
                continue
            match = TOKEN.match(line, at)
            if not match:
                raise BadInterface(f"line {number}: unexpected {line[at:at + 10]!r}")
            yield match.group(), number
            at = match.end()
    yield None, number


class Parser:
    def __init__(self, text):
        self.tokens = list(tokens(text))
        self.at = 0

    def peek(self):
        return self.tokens[self.at][0]

    def fail(self, what):
        raise BadInterface(f"line {self.tokens[self.at][1]}: {what}, not {self.peek()!r}")

    def take(self, expected=None, pattern=None):
        token = self.peek()
        if expected is not None and token != expected:
            self.fail(f"expected {expected!r}")
        if pattern is not None and (token is None or not pattern.match(token)):
            self.fail(f"expected {pattern.pattern}")
        self.at += 1
        return token

    def type(self, nullable_allowed=True):
        token = self.peek()
        if token == "?":
            if not nullable_allowed:
                self.fail("a nullable of a nullable")
            self.take()
            return ("nullable", self.type(False))
        if token in ("[]", "[string]"):
            self.take()
            element = self.type()
            if element[0] in ("array", "map") or element[0] == "nullable":
                raise BadInterface(f"line {self.tokens[self.at][1]}: a container of {element[0]}")
            return ("array" if token == "[]" else "map", element)
        if token == "(":
            return self.struct()
        if token in BASIC:
            self.take()
            return ("basic", token)
        if token in KEYWORDS or token == "any":
            self.fail("expected a type")
        return ("name", self.take(pattern=MEMBER))

    def struct(self, struct_only=False):
        """A struct, or an enum where no name is followed by a colon."""
        self.take("(")
        fields, values = {}, []
        while self.peek() != ")":
            name = self.take(pattern=FIELD)
            if name in fields or name in values:
                raise BadInterface(f"field {name} twice")
            if self.peek() == ":":
                self.take()
                fields[name] = self.type()
            else:
                values.append(name)
            if self.peek() != ",":
                break
            self.take()
            if self.peek() == ")":
                self.fail("expected a field behind the comma")
        self.take(")")
        if values and (fields or struct_only):
            raise BadInterface(f"{values[0]} has no type")
        return ("enum", values) if values else ("struct", fields)


class Interface:
    def __init__(self, text):
        parser = Parser(text)
        parser.take("interface")
        self.name = parser.take(pattern=INTERFACE)
        self.types, self.methods, self.errors = {}, {}, {}
        members = set()
        while parser.peek() is not None:
            kind = parser.take()
            name = parser.take(pattern=MEMBER)
            if name in members:
                raise BadInterface(f"{name} is there twice")
            members.add(name)
            if kind == "type":
                self.types[name] = parser.struct()
            elif kind == "method":
                arguments = parser.struct(True)
                parser.take("->")
                self.methods[name] = (arguments, parser.struct(True))
            elif kind == "error":
                self.errors[name] = parser.struct(True)
            else:
                raise BadInterface(f"unknown member kind {kind!r}")
        for owner in (*self.types.values(), *self.errors.values(),
                      *(part for method in self.methods.values() for part in method)):
            self.known(owner)

    def known(self, kind):
        what, detail = kind
        if what == "name" and detail not in self.types:
            raise BadInterface(f"type {detail} is not there")
        if what in ("nullable", "array", "map"):
            self.known(detail)
        if what == "struct":
            for field in detail.values():
                self.known(field)

    def check(self, kind, value, path):
        what, detail = kind
        if what == "nullable":
            if value is not None:
                self.check(detail, value, path)
        elif what == "name":
            self.check(self.types[detail], value, path)
        elif what == "basic":
            fine = {
                "bool": isinstance(value, bool),
                "int": isinstance(value, int) and not isinstance(value, bool)
                and -2**63 <= value < 2**63,
                "float": isinstance(value, (int, float)) and not isinstance(value, bool),
                "string": isinstance(value, str),
                "object": isinstance(value, dict),
            }[detail]
            if not fine:
                raise BadReply(f"{path}: {value!r} is no {detail}")
        elif what == "enum":
            if value not in detail:
                raise BadReply(f"{path}: {value!r} is none of {detail}")
        elif what == "array":
            if not isinstance(value, list):
                raise BadReply(f"{path}: {value!r} is no array")
            for index, item in enumerate(value):
                self.check(detail, item, f"{path}[{index}]")
        elif what == "map":
            if not isinstance(value, dict):
                raise BadReply(f"{path}: {value!r} is no map")
            for key, item in value.items():
                self.check(detail, item, f"{path}.{key}")
        else:
            if not isinstance(value, dict):
                raise BadReply(f"{path}: {value!r} is no object")
            for name in value:
                if name not in detail:
                    raise BadReply(f"{path}: unknown field {name}")
            for name, field in detail.items():
                if name not in value and field[0] != "nullable":
                    raise BadReply(f"{path}: field {name} is missing")
                if name in value:
                    self.check(field, value[name], f"{path}.{name}")

    def check_reply(self, method, message):
        """The whole message as it came: {"parameters":…} or {"error":…,"parameters":…}."""
        for key in message:
            if key not in ("parameters", "continues", "error"):
                raise BadReply(f"unknown key {key} in the message")
        if not isinstance(message.get("continues", False), bool):
            raise BadReply("continues is no bool")
        parameters = message.get("parameters", {})
        error = message.get("error")
        if error is None:
            self.check(self.methods[method.rpartition(".")[2]][1], parameters, method)
            self.check_series(parameters)
            self.check_metrics(parameters)
            return
        interface, _, name = error.rpartition(".")
        if interface == self.name:
            if name not in self.errors:
                raise BadReply(f"error {error} is not described")
            self.check(self.errors[name], parameters, error)
        elif interface != "org.varlink.service":
            raise BadReply(f"error {error} of a foreign interface")

    @staticmethod
    def check_series(parameters):
        """Columns of a series have one length and ascending times."""
        for series in parameters.get("series", []):
            columns = {len(series[name]) for name in ("time_us", "mean", "min", "max", "count")}
            if len(columns) != 1:
                raise BadReply(f"series {series['name']}: columns of different length")
            if sorted(series["time_us"]) != series["time_us"]:
                raise BadReply(f"series {series['name']}: time goes back")

    @staticmethod
    def check_metrics(parameters):
        """value is there even when it is null, and then there is a reason or never was a value."""
        metrics = parameters.get("metrics")
        for metric in metrics if isinstance(metrics, list) else []:
            if isinstance(metric, dict) and "value" not in metric:
                raise BadReply(f"metric {metric.get('name')}: no value")


def strict_loads(text):
    def pairs(items):
        keys = [key for key, _ in items]
        if len(set(keys)) != len(keys):
            raise BadReply("duplicate key")
        return dict(items)

    def constant(word):
        raise BadReply(f"{word} is no JSON")

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)


def load(path):
    with open(path, encoding="utf-8") as file:
        return Interface(file.read())


def main(arguments):
    try:
        if len(arguments) >= 2 and arguments[0] == "check":
            interface = load(arguments[1])
            print(f"{interface.name}: {len(interface.methods)} methods, "
                  f"{len(interface.types)} types, {len(interface.errors)} errors")
            return 0
        if len(arguments) >= 3 and arguments[0] == "reply":
            interface = load(arguments[1])
            texts = arguments[3:] or sys.stdin.read().split("\n")
            for text in filter(None, texts):
                interface.check_reply(arguments[2], strict_loads(text))
            return 0
        if len(arguments) == 2 and arguments[0] == "stream":
            # lines "METHOD<TAB>JSON" on stdin, from the unit tests
            interface = load(arguments[1])
            for number, line in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
                if line:
                    method, _, text = line.decode("utf-8").partition("\t")
                    try:
                        interface.check_reply(method, strict_loads(text))
                    except (BadReply, ValueError, KeyError) as error:
                        raise BadReply(f"{method}: {error}: {text[:2000]}") from error
            return 0
    except (BadInterface, BadReply, ValueError) as error:
        print(f"varlink_idl: {error}", file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Writes data/unicode_classes.inc: which code points are letters and numbers, as gaps and lengths.

    python3 scripts/unicode-classes.py >data/unicode_classes.inc

The classes are those that Hugging Face's package tokenizers has, so that pieces are the same to the last code point.
"""
import tokenizers
from tokenizers import pre_tokenizers

splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)


def class_of(c):
    """What a character between a letter and a number joins: "letter", "number", or neither."""
    if 0xD800 <= c < 0xE000 or c == 0x110000:
        return None
    pieces = [piece for piece, _ in splitter.pre_tokenize_str("a" + chr(c) + "1")]
    if len(pieces) != 2:
        return None
    return "letter" if pieces[1] == "1" else "number"


classes = [class_of(c) for c in range(0x110001)]


def runs(name):
    """The gap before each run of members, and its length."""
    end, start = 0, None
    for c in range(0x80, 0x110001):
        inside = classes[c] == name
        if inside and start is None:
            start = c
        elif not inside and start is not None:
            yield from (start - end, c - start)
            end, start = c, None


print("// Letters and numbers beyond ASCII: gap, length, gap, length, … Made by scripts/unicode-classes.py with")
print(f"// tokenizers {tokenizers.__version__}.")
for name, table in (("letter", "kLetters"), ("number", "kNumbers")):
    print(f"constexpr uint32_t {table}[] = {{")
    line = "   "
    for value in runs(name):
        if len(line) + len(str(value)) + 2 > 120:
            print(line)
            line = "   "
        line += f" {value},"
    print(line)
    print("};")

"""Expressions of an attacker who wants more than a number from the calculator."""

_ATTRIBUTES = ["__class__", "__subclasses__()", "__class__.__base__", "real", "bit_length()", "format", "__reduce__()"]
_OWNERS = ["()", "''", "(1)", "max"]
_CALLS = [
    "__import__('os').system('id')", "eval('1')", "open('/etc/passwd').read()", "globals()", "getattr(1,'real')",
    "breakpoint()", "exit()", "bytes(10**9)", "list(range(10**9))", "map(max,[1])", "str(10**50)", "os.system('id')",
    "format(1,'9999999')", "math.factorial(10**6)", "date.today()", "today.replace(year=1)", "None", "...",
]  # fmt: skip
_SYNTAX = [
    "(lambda: 1)()", "[x for x in [1]]", "(x for x in [1])", "{1: 2}", "f'{max}'", "'%99999999d' % 1", "b'1'", "1j",
    "'{0.__class__}'.format(max)", "'abc'", "1 if 1", "(x := 1)", "x = 1", "import os", "del x", "(yield)", "await x",
    "def f(): pass", "class A: pass", "while True: pass", "1; 2", "1\n2", "max(*[1,2])", "max(1, key=abs)", "[1,2][0]",
    "1 << 10", "1 & 1", "~1", "1 @ 1", "1 in [1]", "", " ", "()", "(", "1 +", "1..", "0x", "01", "1__0", "max(", "'",
    "#", "15%", "$5", "1,234", "five",
]  # fmt: skip
_GREAT = [
    "9**9**9", "10**10**10", "2**10000", "10**59*10**59", "9" * 499, "1e309", "1e308*10", "(-8)**0.5", "0**-1", "1/0",
    "1%0", "exp(1000)", "log(0)", "sqrt(-1)", "round(1.5,10**9)", "pow(9,10**9)", "pow(2,3,5)", "'a'*10**9",
    "[1]*10**9", "[1]+[2]", "-'a'", "1+'a'", "max([])", "min()", "stdev([1])", "max(max)", "sum([[1],[2]])",
    "len('abc')", "abs(1,2)", "int('5')", "float('nan')", "date('x')", "date(2024,2,30)", "date(1.5,1,1)", "year(5)",
    "date('2024-01-01')+10**59", "date('2024-01-01')<5", "max", "'" + "a" * 400 + "'", "1" * 501, "10.0**61",
    " " * 600 + "1" + " " * 600 + "+" + "1" * 600,
]  # fmt: skip
_NESTED = [
    "(" * 240 + "1" + ")" * 240, "(" * 100 + "1", "-" * 400 + "1", "+".join(["1"] * 250), "[" * 200 + "]" * 200,
    "max(" * 60 + "1" + ")" * 60, "2**" * 100 + "2", "[" + "1," * 249 + "]", "1or " * 124 + "1",
]  # fmt: skip
_UNICODE = [
    "ｍａｘ(1,2)", "１+１", "²", "½", "π", "1\u200b+1", "1\u202e+1", "1\x00", "1\ufeff", "\u2028", "1\\\n+1", "𝟏+𝟐",
    "max（1，2）", "“1”", "1\r2", "\ud800", "e\u0301", "1\t2",
]  # fmt: skip

HOSTILE = [
    *(f"{owner}.{attribute}" for owner in _OWNERS for attribute in _ATTRIBUTES), *_CALLS, *_SYNTAX, *_GREAT, *_NESTED,
    *_UNICODE,
]  # fmt: skip

"""Expressions of an attacker who wants more than a number from the calculator."""

_ATTRIBUTES = [
    "__class__", "__bases__", "__subclasses__()", "__globals__", "__code__", "__dict__", "__mro__", "__init__",
    "__class__.__base__", "__class__.__mro__[1].__subclasses__()", "real", "bit_length()", "to_bytes(9,'big')",
    "format", "__reduce__()", "__getattribute__('x')", "__doc__", "__module__", "__format__('9999999d')",
    "as_integer_ratio()",
]  # fmt: skip
_OWNERS = ["()", "[]", "''", "(1)", "max", "date"]

_CALLS = [
    "__import__('os').system('id')", "__import__('subprocess').run('id')", "eval('1')", "exec('1')",
    "compile('1','','eval')", "open('/etc/passwd').read()", "globals()", "locals()", "vars()", "dir()",
    "getattr(1,'real')", "setattr(1,'x',1)", "delattr(1,'x')", "hasattr(1,'real')", "type(1)", "isinstance(1,int)",
    "input()", "print(1)", "help()", "breakpoint()", "exit()", "quit()", "memoryview(b'1')", "bytearray(10**9)",
    "bytes(10**9)", "range(10**9)", "list(range(10**9))", "map(max,[1])", "filter(max,[1])", "zip([1])",
    "enumerate([1])", "iter([1])", "next(iter([1]))", "object()", "super()", "str(10**50)", "repr(1)", "chr(65)",
    "ord('a')", "hex(255)", "format(1,'9999999')", "slice(1)", "id(1)", "hash(1)", "list('abc')", "dict()", "set()",
    "tuple([1])", "frozenset()", "sorted([2,1])", "reversed([1])", "any([1])", "all([1])", "os.system('id')",
    "sys.exit()", "math.factorial(10**6)", "factorial(100000)", "comb(10**6,10**5)", "gcd(2,4)",
    "statistics.mean([1])", "datetime.date.today()", "date.today()", "today.replace(year=1)", "self", "None", "...",
    "Ellipsis",
]  # fmt: skip

_SYNTAX = [
    "lambda: 1", "(lambda: 1)()", "[x for x in [1]]", "{x for x in [1]}", "{x: x for x in [1]}", "(x for x in [1])",
    "{1}", "{}", "{1: 2}", "f'{1}'", "f'{max}'", "f'{().__class__}'", "'%s' % max", "'%99999999d' % 1",
    "'{}'.format(1)", "'{0.__class__}'.format(max)", "b'1'", "1j", "'abc'", "1 if 1", "x := 1", "(x := 1)", "x = 1",
    "import os", "from os import system", "del x", "pass", "return 1", "yield 1", "(yield)", "await x",
    "async def f(): pass", "def f(): pass", "class A: pass", "while True: pass", "for x in [1]: pass", "with x: pass",
    "raise 1", "assert 0", "try: 1", "global x", "1; 2", "1\n2", "max(*[1,2])", "max(**{})", "max(1, key=abs)",
    "[1,2][0]", "[1,2][:]", "[1][0:1:0]", "1 << 10", "1 >> 1", "1 & 1", "1 | 1", "1 ^ 1", "~1", "1 @ 1", "1 is 1",
    "1 in [1]", "1 not in [1]", "print", "*[1]", "", " ", "()", "[]", "(", ")", "[", "1 +", "+", "1 1", "1..", "0x",
    "0b2", "01", "1e", "1__0", "max(", "'", '"""', "#", "@", "$", "?", "!", "`1`", "15%", "$5", "1,234", "5 apples",
    "five",
]  # fmt: skip

_GREAT = [
    "9**9**9", "9**9**9**9", "10**10**10", "2**10000", "2**1001", "(2**199)**2", "10**59*10**59", "10**61", "9" * 100,
    "9" * 499, "1e309", "-1e309", "1e308*10", "1e308+1e308", "(-8)**0.5", "0**-1", "1/0", "1//0", "1%0", "1.0**1e308",
    "10.0**400", "exp(1000)", "exp(10**60)", "log(0)", "log(-1)", "sqrt(-1)", "round(1.5,10**9)", "round(1.5,'a')",
    "pow(9,10**9)", "pow(2,3,5)", "pow(0,-1)", "'a'*10**9", "10**9*'a'", "[1]*10**9", "[0]*10**9*10**9", "[1]+[2]",
    "('a',)*9", "-'a'", "-[1]", "1+'a'", "'a'+'b'", "[1]-[1]", "max([])", "min()", "mean([])", "median([])",
    "stdev([1])", "max(max)", "sum([[1],[2]])", "sum('abc')", "sum([max])", "len('abc')", "len(max)", "abs('a')",
    "abs()", "abs(1,2)", "int('5')", "int('9'*9)", "float('nan')", "float('inf')", "date('x')", "date(1,2)",
    "date(99999,1,1)", "date(2024,2,30)", "date(1.5,1,1)", "date()", "date('2024-01-01')+10**59",
    "date('2024-01-01')*2", "date('2024-01-01')+date('2024-01-01')", "year(5)", "month('x')", "years(1,2)",
    "days(1,2)", "days(date('2024-01-01'))", "date('2024-01-01')<5", "max(date('2024-01-01'),1)", "max", "[max]",
    "'" + "a" * 400 + "'", "date('" + "2" * 400 + "')", "1" * 501, " " * 600 + "1" + " " * 600 + "+" + "1" * 600,
]  # fmt: skip

_NESTED = [
    "(" * 240 + "1" + ")" * 240, "(" * 100 + "1", "-" * 400 + "1", "not " * 120 + "1", "+".join(["1"] * 250),
    "[" * 200 + "]" * 200, "abs(" * 90 + "1" + ")" * 90, "max(" * 60 + "1" + ")" * 60, "2**" * 100 + "2",
    "1+" * 249 + "[1]", "[" + "1," * 249 + "]", "(1," * 100 + ")" * 100,
    "sum([" * 60 + "1" + "])" * 60, "1or " * 124 + "1",
]  # fmt: skip

_UNICODE = [
    "ｍａｘ(1,2)", "__ｉｍｐｏｒｔ__('os')", "１+１", "٣+٤", "²", "2²", "½", "π", "√4", "∞",
    "1\u200b+1", "1\u202e+1",
    "1\x00", "\x00", "1\ufeff", "\u2028", "1\x0b+1", "1\x0c+1", "1\\\n+1", "'\\x41'", "𝟏+𝟐", "ℯ", "℮", "1＋1",
    "max（1，2）", "“1”", "‘a’", "1\r2", "\ud800", "e\u0301", "İ", "ﬁ", "1\t2", "\\u0031", "'\\N{BULLET}'",
]  # fmt: skip

HOSTILE = [
    *(f"{owner}.{attribute}" for owner in _OWNERS for attribute in _ATTRIBUTES), *_CALLS, *_SYNTAX, *_GREAT, *_NESTED,
    *_UNICODE,
]  # fmt: skip

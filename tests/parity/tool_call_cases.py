"""Tool calls as models write them, whole, odd and broken: what mlx_lm's own
parsers make of them is the golden result."""


def tool(name: str, properties: dict) -> dict:
    parameters = {"type": "object", "properties": properties}
    return {
        "type": "function",
        "function": {"name": name, "parameters": parameters},
    }


TOOLS = [
    tool(
        "f",
        {
            "s": {"type": "string"},
            "i": {"type": "integer"},
            "n": {"type": "number"},
            "b": {"type": "boolean"},
            "o": {"type": "object"},
            "a": {"type": "array", "items": {"type": "number"}},
            "u": {"type": ["integer", "null"]},
            "x": {"anyOf": [{"type": "number"}, {"type": "string"}]},
            "e": {"enum": [1, 2, True]},
            "t": {"enum": ["1", "2"]},
            "any": {"description": "no type"},
            "none": {},
        },
    ),
    tool("g.h", {"s": {"type": "string"}}),
    {"type": "function", "function": {"name": "bare", "parameters": {}}},
    {"type": "retrieval"},
]

# Texts of one parameter, for the formats that type them by schema.
VALUES = [
    "1", " 1 ", "-7", "+7", "1_000", "007", "1.0", "1.50", "-0.5", "1e3",
    "1e-7", "9007199254740993", "-9223372036854775808",
    "9223372036854775808", "+\t5", "true", "True",
    "FALSE", "yes", "0", "null", "NULL", "None", "nil", "", "two words",
    '"quoted"', "'quoted'", "[1, 2]", "[1, 'x', None]", "(1, 2)", "1, 2",
    "1,\n2", "1,\n", "()", "(3)", "{}", '{"k": {"l": [true, null]}}',
    "{'k': 'v', 1: 2.5}",
    "{True: 1, None: 2}", '{"a": "line\nbreak"}', '{"a": 1', "[1, 2",
    "0x1F", "0b101", "0o17", "1 # one", "'a' 'b'", "r'\\d'", "'\\x41\\u00e9'",
    "'\\q'", "\"it's\"", "'''long'''", "-5", "- 5", "--5", "+ 3", "1 + 2",
    "f(1)", "Tokyo, Japan", "a < b & c > d", "caf\u00e9 \U0001f600",
    "\u00a0padded\u3000", "a\nb", "\nlines\n", "\n\ntwo\n\n", "1\n2", "\\n",
    "{\"d\": 1, \"d\": 2}", '"\\u00e9"', "3.", ".5", "1__0", "_1", "12abc",
    "[1,]", "[,]", "{1, }", "[[[]]]", "[(1,), {'a': (2,)}]", '"a\\"b"',
    "<b>", "1.5.2", "2024-05-01", "10:30", "\t5", "5\t", "truey", "nullish",
]  # fmt: skip

# Together in one call; numbers alone too, since they may refuse a call.
NAMES = [
    ["s", "b", "o", "a", "u", "x", "e", "t", "any", "none", "?"],
    ["i"],
    ["n"],
]


def glm(value: str, names: list[str]) -> str:
    return "f\n" + "".join(
        f"<arg_key>{name}</arg_key>\n<arg_value>{value}</arg_value>\n"
        for name in names
    )


def longcat(value: str, names: list[str]) -> str:
    marked = glm("VALUE", names).replace("<arg", "<longcat_arg")
    return marked.replace("</arg", "</longcat_arg").replace("VALUE", value)


def minimax(value: str, names: list[str]) -> str:
    parameters = "".join(
        f'<parameter name="{name}">{value}</parameter>\n' for name in names
    )
    return f'\n<invoke name="f">\n{parameters}</invoke>\n'


def minicpm(value: str, names: list[str]) -> str:
    return '"f">' + "".join(
        f'<param name="{name}">{value}</param>' for name in names
    )


def qwen(value: str, names: list[str]) -> str:
    parameters = "".join(
        f"<parameter={name}>\n{value}\n</parameter>\n" for name in names
    )
    return f"\n<function=f>\n{parameters}</function>\n"


def muse(value: str, name: str) -> str:
    return (
        f'<atem:invoke name="f"><atem:parameter name="{name}">{value}'
        "</atem:parameter></atem:invoke>"
    )


def kimi(value: str, name: str) -> str:
    return (
        '<|open|>call tool="f" index="1"<|sep|>'
        f'<|open|>argument key="{name}" type="number"<|sep|>{value}'
        "<|close|>argument<|sep|><|close|>call<|sep|>"
    )


def gemma4(value: str, name: str) -> str:
    return f'call:f{{{name}:{value},s:<|"|>{value}<|"|>}}'


def gemma(value: str, name: str) -> str:
    return f"call:f{{{name}:{value},s:<escape>{value}<escape>}}"


def pythonic(value: str, name: str) -> str:
    return f"[f({name}={value})]"


def kimi_k2(value: str, name: str) -> str:
    return f"functions.f:0<|tool_call_argument_begin|>{value}"


def json_tools(value: str, name: str) -> str:
    return f'\n{{"name": "f", "arguments": {value}}}\n'


def mistral(value: str, name: str) -> str:
    return f"f[ARGS]{value}"


BY_SCHEMA = {
    "glm47": glm,
    "longcat": longcat,
    "minimax_m2": minimax,
    "minicpm5": minicpm,
    "qwen3_coder": qwen,
}

BY_TEXT = {
    "muse_spark": muse,
    "kimi_k3": kimi,
    "gemma4": gemma4,
    "function_gemma": gemma,
    "pythonic": pythonic,
    "kimi_k2": kimi_k2,
    "json_tools": json_tools,
    "mistral": mistral,
}

K2_ARGS = "<|tool_call_argument_begin|>"
K2_BEGIN, K2_END = "<|tool_call_begin|>", "<|tool_call_end|>"

CASES = {
    "json_tools": [
        "",
        " ",
        "not JSON",
        '{"name": "f", "arguments": {"s": "a\\nb\\u00e9\\"", "i": 1}}',
        '\n{"arguments": {"a": [1, [2, {"b": null}]]}, "name": "f"}\n',
        '{"name": "f", "arguments": {}, "id": "call_7"}',
        '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]',
        '{"name": "f", "arguments": "{\\"s\\": 1}"}',
        '{"name": "f", "arguments": null}',
        '{"name": "f", "arguments": {"s": "unfinished',
        '{"name": "f", "arguments": {"s": 1}',
        '{"name": "f", "arguments": {"s": 1}} {"name": "g"}',
        '{"name": "f", "arguments": {"s": "a\tb"}}',
        "{'name': 'f', 'arguments': {}}",
        '{"name": "f", "arguments": {"s": 1, "s": 2}}',
        '{"name": "\u51fd\u6570", "arguments": {"\u540d": "\U0001f600"}}',
        '{"name": "f", "arguments": {"n": 1.0, "m": 1e100, "k": -0.0}}',
        '{"name": "f", "arguments": {"s": "</tool_call> <b>\\/"}}',
    ],
    "mistral": [
        "",
        "just words",
        '[{"name": "f", "arguments": {"s": "x"}, "id": "abc123xyz"}]',
        '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]',
        '[{"name": "f", "arguments": "{\\"s\\": 1}"}]',
        '[{"name": "f", "arguments": "nonsense"}]',
        '[{"name": "f", "arguments": "[1]"}]',
        '[{"name": "f"}]',
        '[{"name": "f", "arguments": null}]',
        '[{"name": 5, "arguments": {}}]',
        '[{"arguments": {}}]',
        "[1]",
        "[]",
        '{"name": "f", "arguments": {}}',
        'f[ARGS]{"s": "x"}',
        ' f-1 [ARGS] {"s": "[ARGS] {"} ',
        'f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{"b": [2]}',
        'f[ARGS]{"a": 1}g[ARGS]{"b": [2]} and words',
        'f[ARGS]{"a": 1',
        'f[ARGS]{"a": "]}"}[TOOL_CALLS]g[ARGS]{"b"',
        "f[ARGS]",
        '[ARGS]{"a": 1}',
        '[ARGS]f[ARGS]{"a": 1}',
        'x f[CALL_ID]123[ARGS]{"a": 1}',
        "f[ARGS]12abc",
        "f[ARGS]1.5e3.2",
        "f[ARGS]-",
        'f[ARGS]"a\\"b"c',
        "f[ARGS]true1",
        "f[ARGS]01",
    ],
    "pythonic": [
        "",
        "[]",
        "no call",
        '[f(s="x", i=1, n=-2.5, b=True, z=None)]',
        "[f()]",
        "[f(s='a, b=c', o={'k': [1, 2, {'l': null}]}, b=true)]",
        '[f(s="x"), g.h(i=2)]',
        '[\n  f(\n    s="x",\n    i=2,\n  ),\n]',
        'Sure: [f(s="x")] done',
        'text [1] then [f(s="x")]',
        "[f(1, 2)]",
        '[f("x")]',
        "[f(s=x)]",
        '[f(s=x, t="a\\"b")]',
        "[f(s=New York, i=5)]",
        '[f(s="unfinished',
        '[f(s="x")',
        'f(s="x")',
        '[f(s="x") g(i=1)]',
        '[f(s="5", i="6")]',
        "[f(s='it\\'s', t=\"\\u00e9\\n\")]",
        '[f(**{"s": 1})]',
        "[f(s=[1, 2)]",
        "[f(a=1)(b=2)]",
        "[f.g.h(a=1)]",
        "[.f(a=1)]",
        "[f(a=1,, b=2)]",
        "[f(a=1,)]",
        "[f(,)]",
        "[f(a='x' 'y')]",
        "[f(a=1 # one\n, b=2)]",
        '[f(a="""x\ny""")]',
        "[f(a = 1)]",
        "[f(a=(1,2))]",
        '[f(s="a)] b")]',
        '[f(code="print([1])")]',
        "[f(s=\"\u00fcber\", \u00e4=1)]",
        "[f(a=,b=2)]",
        "[f(a=bare word, b='q' r)]",
        "[[f(a=1)]]",
    ],
    "function_gemma": [
        "",
        "call:f",
        "call:f{}",
        "call:f{s:<escape>a, b: c<escape>,i:5}",
        "call:f{s:<escape>x<escape>}",
        "call:f{b:true,n:1.5,z:null,w:plain words}",
        "call:f{s}",
        "call:f{s:<escape>never ends}",
        "call:f{a:[1,2]}",
        "call:f{o:{k:1}}",
        "call:f{s:}",
        "call:f{s:1",
        "call: f{s:1}",
        "xcall:f{i:1}call:g{i:2}",
        "call:call:f{i:1}",
        "call:f-g{i:1}",
        "call:f{s:<escape>a}b<escape>}",
        'call:f{s:"q"}',
        "call:f{ s : 1 , i:2}",
        "call:f{s:<escape>x<escape>\u00e9i:1}",
        "call:\u51fd{i:1}",
    ],
    "gemma4": [
        "",
        "call:f",
        "call:f{}",
        'call:f{s:<|"|>a "b" {c}, d:1<|"|>,i:5}',
        "call:f{a:[1,2],o:{k:{l:true}}}",
        'call:f{a:[<|"|>x<|"|>,{k:<|"|>y<|"|>}]}',
        'call:f-g{i:1}call:h{s:<|"|>x<|"|>}',
        'call:f{s:<|"|>never ends}',
        "call:f{i:1",
        "call:f{s:words}",
        "call:f{i:1}call:g{s:words}",
        'call:f{"s":"x"}',
        "call:f{i: 1, n: 2}",
        "call:f{i:1,n:2.50}",
        'call:f{s:<|"|>line\nbreak \\ "<|"|>}',
        "call:f{a:<1>}",
        'call:f{s:<|"|><|"|>}',
        "call:f call:g{i:1}",
        "call:f{call:g{i:1}",
        'call:f{s:<|"|>never ends} call:g{i:1}',
        "call:f{i:1}}{call:g{o:{}}{",
        'call:f{s:<|"|>x<|"|>,\u540d:<|"|>y<|"|>}',
    ],
    "glm47": [
        "",
        "  \n",
        "f",
        "f\n<arg_key>s</arg_key>\n<arg_value>5</arg_value>\n"
        "<arg_key>i</arg_key>\n<arg_value>5</arg_value>",
        "f<arg_key>s</arg_key>\\n<arg_value>x</arg_value>",
        "f<arg_key>s</arg_key>junk<arg_value>x</arg_value>"
        "<arg_key>i</arg_key><arg_value>2</arg_value>",
        "f<arg_key>s</arg_key><arg_value>never ends",
        "f<arg_key>s</arg_key>",
        "f<arg_key> s </arg_key> <arg_value> a\nb </arg_value>",
        "<arg_key>s</arg_key><arg_value>x</arg_value>",
        "f<arg_key>s</arg_key><arg_value>1</arg_value>"
        "<arg_key>s</arg_key><arg_value>2</arg_value>",
        '{"name": "f", "arguments": {"s": 5, "i": "5", "n": "x"}}',
        '{"name": "f", "arguments": "{\\"s\\": true}"}',
        '{"function": "f", "arguments": {"s": [1, "a", null, 1.5]}}',
        '{"function": {"name": "f", "arguments": {"i": 1}}, "arguments": {}}',
        '{"tool": {"name": "f", "arguments": {"s": {"k": "it\'s"}}}}',
        '{"tool": {"name": "f"}}',
        '{"name": "f"}',
        '[{"name": "f", "arguments": {"i": "2"}}, 1]',
        "[1]",
        'f {"s": 1, "i": "2"}',
        'f\n{"s": 1, "i": "2"}',
        "f\n{'s': 1}",
        'f\nmore words',
        "f s=1 i=2",
        'f s="two words" i=\'3\' n=a\\ b',
        "f s=1 junk",
        'f s="unfinished',
        "f =1",
        "f s=a=b",
        "f just words",
        "f   ",
    ],
    "longcat": [
        '{"name": "f", "arguments": {"s": "x"}}',
        "f\n<longcat_arg_key>s</longcat_arg_key>\n"
        "<longcat_arg_value>5</longcat_arg_value>\n"
        "<longcat_arg_key>i</longcat_arg_key>\n"
        "<longcat_arg_value>[5]</longcat_arg_value>",
        "{f<longcat_arg_key>s</longcat_arg_key>"
        "<longcat_arg_value>x</longcat_arg_value>",
        "f<longcat_arg_key>s</longcat_arg_key>",
    ],
    "minimax_m2": [
        "",
        "words",
        '<invoke name="f"></invoke>',
        "<invoke name='f'><parameter name='i'>1</parameter></invoke>",
        "<invoke name=f><parameter name=i>1</parameter></invoke>",
        '<invoke name="f"><parameter name="i">1</parameter></invoke>\n'
        '<invoke name="g"><parameter name="i">1</parameter></invoke>',
        '<invoke name="f"><parameter name="i">1</parameter>',
        '<invoke name="f"><parameter name="i">1',
        '<invoke name="f"><parameter name="i">1</invoke>',
        "<invoke name=f</invoke>",
        '<invoke name=>x</invoke><invoke name="f"></invoke>',
        '<invoke name="f"><parameter name="s"</parameter></invoke>',
        '<invoke name="f"><parameter name="s">a > b</parameter></invoke>',
    ],
    "minicpm5": [
        "",
        "words",
        '"f">',
        '"f"></function>',
        '<function name="f"><param name="i">1</param></function>',
        '"f"><param name="i">1</param></function>\n'
        "<function name='g'><param name='s'>x</param></function>",
        'f><param name="s"><![CDATA[a < b && c\n]]></param>',
        '"f"><param name="s"> <![CDATA[ x ]]> </param>',
        '"f"><param name="s"><![CDATA[a]]>b]]></param>',
        '"f"><param name="s"><![CDATA[never ends</param>',
        '"f"><param name="s">never ends',
        '"f"><param name = i >1</param><paramname="x">2</param>',
        'name = "f" ><param name="i">1</param>',
        '"f"<param name="i">1</param>',
        '"unfinished',
        "a b c> d",
    ],
    "muse_spark": [
        "",
        "words",
        '<atem:invoke name="f"></atem:invoke>',
        '<atem:invoke name="f"><atem:parameter name="s">x y '
        "</atem:parameter>\n</atem:invoke>\n"
        '<atem:invoke name="g"></atem:invoke>',
        '<atem:invoke id="1" name="f"><atem:parameter string="true" name="s" '
        'z="1">"q"</atem:parameter></atem:invoke>',
        '<atem:invoke name="f"><atem:parameter name="s"></atem:invoke>'
        "</atem:parameter></atem:invoke>",
        '<atem:invoke name="f"><atem:parameter name="s">never ends',
        '<atem:invoke name="f"><atem:parameter name="s">a</atem:parameter>',
        '<atem:invoke name="f" x="1"></atem:invoke>',
        '<atem:invoke name=""></atem:invoke>',
        '<atem:invokes name="f"></atem:invokes>',
        '<atem:invoke surname="f"></atem:invoke>',
        '<atem:invoke name="a>b"></atem:invoke>',
    ],
    "kimi_k2": [
        "",
        "words",
        f'functions.f:0{K2_ARGS}{{"s": "x"}}',
        f'f:12 {K2_ARGS} {{"s": "x"}} \n',
        f'{K2_BEGIN}functions.f:0{K2_ARGS}{{"i": 1}}{K2_END}'
        f'{K2_BEGIN}functions.g:1{K2_ARGS}{{"i": 2}}{K2_END}',
        f'{K2_BEGIN}functions.f:0{K2_ARGS}{{"i": 1}}',
        f"{K2_BEGIN}functions.f:0{K2_ARGS}{{'i': (1, True)}}{K2_END}",
        f"functions.f:0{K2_ARGS}",
        f"functions.f:0{K2_ARGS}broken {{",
        f"functions.f{K2_ARGS}{{}}",
        f":0{K2_ARGS}{{}}",
        f"functions.:0{K2_ARGS}{{}}",
        f"functions.a:b:3{K2_ARGS}{{}}",
        f"{K2_BEGIN}x{K2_END}",
        "functions.f:0",
    ],
    "kimi_k3": [
        "",
        "words",
        '<|open|>call tool="f"<|sep|><|close|>call<|sep|>',
        '<|open|>call tool="f"<|sep|><|open|>argument key="s"<|sep|>5'
        "<|close|>argument<|sep|><|close|>call<|sep|>",
        '<|open|>call tool="f"<|sep|><|open|>argument key="&quot;k&amp;quot;"'
        ' type="object"<|sep|>{"k": 1}<|close|>argument<|sep|><|close|>call'
        "<|sep|>",
        '<|open|>call tool="f"<|sep|><|open|>json type="object"<|sep|>'
        '{"s": "T"}<|close|>json<|sep|><|close|>call<|sep|>',
        '<|open|>call tool="f"<|sep|><|open|>json<|sep|>[1]<|close|>json'
        "<|sep|><|close|>call<|sep|>",
        '<|open|>call index="1"<|sep|><|close|>call<|sep|>'
        '<|open|>call tool="g"<|sep|><|close|>call<|sep|>',
        '<|open|>call tool="f"<|sep|><|open|>argument type="x"<|sep|>5'
        "<|close|>argument<|sep|><|close|>call<|sep|>",
        '<|open|>call tool="f"<|sep|><|open|>argument key="s"<|sep|>5',
        '<|open|>call tool=""<|sep|><|close|>call<|sep|>',
        '<|open|>call tool="f" tool="g"<|sep|><|close|>call<|sep|>',
    ],
    "qwen3_coder": [
        "",
        "words",
        "<function=f></function>",
        "\n<function=f>\n<parameter=s>\nmany\nlines\n\n</parameter>\n"
        "<parameter=i>\n3\n</parameter>\n</function>\n",
        "<function=f><parameter=s>x</parameter></function> ",
        "<function=f><parameter=s>x</parameter></function>\n\n",
        "<function=f><parameter=s>x</parameter>",
        "<function=f><parameter=s>x</function>",
        "<function=f\n<parameter=s>\nx\n</parameter>\n</function>",
        "<function= f ><parameter= s >x</parameter></function>",
        "<function=></function>",
        "<function=f><parameter=>x</parameter></function>",
        "<function=f><parameter=i>1</parameter></function>"
        "<function=g><parameter=n>2</parameter></function>",
        "<function=f><parameter=i>1.5</parameter></function>",
        "<function=f><parameter=i>one</parameter></function>",
        "<function=unknown><parameter=i>1</parameter></function>",
        "<function=bare><parameter=i>1</parameter></function>",
        "words <function=f><parameter=s>a<b>c</parameter></function>",
    ],
}  # fmt: skip

THINK = ("<think>", "</think>")

# Answers: reasoning marks, format of calls, where it begins, text.
ANSWERS = [
    (None, None, "normal", "just < text <think> x"),
    (THINK, None, "normal", "<think>why</think>\n\nbecause"),
    (THINK, None, "reasoning", "why\n</think>\n\nbecause </think> x"),
    (THINK, None, "reasoning", "never ends </thin"),
    (THINK, "json_tools", "normal", 'a <tool_call>\n{"name": "f", "arguments":'
     ' {"s": "<think>"}}\n</tool_call>\n<tool_call>{"name": "g", "arguments":'
     " {}}</tool_call> z"),
    (THINK, "json_tools", "reasoning", 'hm <tool_call>{"name": "f",'
     ' "arguments": {}}</tool_call> after </think> all'),
    (THINK, "json_tools", "normal", "<tool_call>broken</tool_call> rest"),
    (THINK, "json_tools", "normal", '<tool_call>{"name": "f", "arguments":'
     ' {"a": 1}}'),
    (THINK, "json_tools", "normal", '<tool_call>{"name": "f", "argum'),
    (THINK, "json_tools", "normal", "<<tool_call <tool_cal <tool_call"),
    (None, "mistral", "normal", 'Look.[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]'
     'g[ARGS]{"b": 2}'),
    (None, "mistral", "normal", '[TOOL_CALLS] [{"name": "f", "arguments": {}}'
     ', {"name": "g", "arguments": {}}]'),
    (None, "minicpm5", "normal", 'ok <function name="f"><param name="i">1'
     '</param></function>\n<function name="g"></function>'),
    (THINK, "qwen3_coder", "normal", "<think>\nx\n</think>\n\n<tool_call>\n"
     "<function=f>\n<parameter=i>\n5\n</parameter>\n</function>\n</tool_call>"),
    (THINK, "glm47", "reasoning", "x</think>y<tool_call>f\n<arg_key>s</arg_key>"
     "\n<arg_value>5</arg_value>\n</tool_call><tool_call>g</tool_call>"),
    (("<|channel>thought", "<channel|>"), "gemma4", "normal", "<|channel>though"
     "<|channel>thought\nx<channel|>y<|tool_call>call:f{i:1}<tool_call|>"),
    (None, "kimi_k2", "normal", "<|tool_calls_section_begin|><|tool_call_begin"
     "|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_calls_section_end|>"),
    (THINK, "pythonic", "normal", "\u00e9<<|tool_call_start|>[f(a=1), g()]"
     "<|tool_call_end|>\U0001f600"),
    ("xtml", "kimi_k3", "reasoning", "t<|close|>think<|sep|><|open|>response"
     "<|sep|>hi <|open|> there<|close|>response<|sep|><|open|>tools<|sep|>"
     '<|open|>call tool="f"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
     "<|close|>message<|sep|>"),
    ("muse", "muse_spark", "header", "to=self<|message|>think<|eom|><|start|>"
     "assistant to=tool<|message|><atem:function_calls><atem:invoke name="
     '"f"></atem:invoke></atem:function_calls><|eom|><|start|>assistant '
     "to=user<|message|>answer <atem:function_calls> x<|eot|>"),
]  # fmt: skip

XTML = ["<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"]

# Chat templates and vocabularies.
MODELS = [
    ("", []),
    ("plain {{ messages }}", ["<think>"]),
    ("", ["<think>", "</think>"]),
    ("", ["<think>", "</think>", "<|channel>", "<channel|>"]),
    ("", ["<longcat_think>", "</longcat_think>"]),
    ("", ["<|think:start|>", "<|think:end|>"]),
    ("", ["<|channel>", "<channel|>"]),
    ("", XTML),
    ("", XTML[:3]),
    ("<tool_call> tool_call.name", XTML),
    ("", ["<|tool_call_start|>", "<|tool_call_end|>"]),
    ("<minimax:tool_call>", []),
    ("<|tool_call> <tool_call|>", []),
    ("<|tool_call>", []),
    ("<start_function_call>", []),
    ("<longcat_tool_call> <longcat_arg_key>", []),
    ("<tool_call> <arg_key> tool_call.name", []),
    ("<|tool_list_start|>", []),
    ("<|tool_call_start|>", []),
    ("<tool_call>\\n<function=", []),
    ("<tool_call>\n<function=", []),
    ("<tool_call> <function= tool_call.name", []),
    ("<|tool_calls_section_begin|>", []),
    ('<function name="x"><param name="y">', []),
    ('<function name="x">', []),
    ("[TOOL_CALLS]", []),
    ("<atem:function_calls>", []),
    ("<tool_call>", []),
    ("tool_call.name", []),
]

"""Texts that tokenizers get wrong, and the text tiny vocabularies learn."""

CORPUS = [
    "",
    " ",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    " leading and trailing ",
    "two  spaces   three    four     five",
    "\n",
    "\n\n\n",
    "a\nb\n\nc\n\n\nd",
    "line\r\nline\rline",
    "tab\tseparated\t\tvalues\t",
    " \n \n  \t \n",
    "def f(x):\n    if x:\n        return x ** 2\n\n\nprint(f(3))\n",
    "1 12 123 1234 12345 123456 1234567890",
    "3.14159e-10, 0xDEADBEEF, 1,000,000 and 50%",
    "I'm you're he's they'll we've I'd can't DON'T WE'RE",
    "it\u2019s \u201cquoted\u201d \u2014 dashes \u2013 and \u2026",
    "snake_case camelCase SCREAMING-KEBAB path/to/file.txt",
    "https://example.org/a?b=c&d=%20e#frag user@example.org",
    "!!! ??? ... --- === *** ((nested [brackets] {here}))",
    "$+<=>^~|`\\",
    "caf\u00e9 na\u00efve fa\u00e7ade \u00dcber stra\u00dfe",
    "cafe\u0301 e\u0301\u0302\u0323 combining n\u0303",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u8fd9\u662f\u6d4b\u8bd5\u3002",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002",
    "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8\uc785\ub2c8\ub2e4.",
    "mixed \u4e2d\u6587 and English\u6df7\u5408 text123\u6570\u5b57456",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0442\u0435\u043a\u0441\u0442",
    "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u03ba\u03b1\u03b9",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\U0001f600\U0001f603\U0001f604 smile",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family",
    "\U0001f44d\U0001f3fd thumbs \U0001f1e9\U0001f1ea flag \u2764\ufe0f heart",
    "\U0001d54f\U0001d552 math \U00010348 gothic",
    "zero\u200bwidth\u200cjoin\u200der\ufeffbom",
    "no\u00a0break\u2003em\u3000ideographic space",
    "x\u00b2 + \u00bd = \u2167 \u0663\u0664\u0665 \u2460",
    "<|im_start|>user\nhi<|im_end|>\n",
    "text with <|im_end|> inside <|endoftext|>and after",
    "<|im_start|><|im_start|> <|im_end|> ",
    "<s>[INST] not a token [/INST]</s><unk><0x0A>",
    "<|im_start", "<|im_end|", "|im_end|>",
    "<tool>{\"a\": 1}</tool> <tool> spaced </tool>",
    "control \x00 nul \x01 \x1b[0m \x7f",
    "a" * 300,
    "Donaudampfschifffahrtsgesellschaftskapit\u00e4n" * 6,
    "\u00e9" * 100,
    "\U0001f600" * 40,
    " " * 100,
    "\t" * 17 + "x" + "\n" * 17,
    "aaa bbb aaa bbb " * 20,
    "\ufffd replacement \ue000 private \uffff",
    "\u2581 lower \u2581one\u2581eighth",
    "\u0120 and \u010a byte-level letters \u0100\u0143",
    "\u212b \ufb01 \u1e9b\u0323 normal forms",
]

# One text for the pre-tokenizers of other families.
PRE_TEXT = (
    "I'm WE'RE don't 1 12 123 1234567 x2y 3.14, $9+1=10 <=> a_b-c/d\\e "
    "(f) [g] {h}!? ...\n\n  two  spaces\t\ttabs \r\n  end \n"
    "HelloWorld helloWORLD McDonald \u00c9cole caf\u00e9 stra\u00dfe "
    "\u4f60\u597d\u4e16\u754c \u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8 "
    "\ud55c\uad6d\uc5b4 \u0440\u0443\u0441\u0441\u043a\u0438\u0439 "
    "\u0939\u093f\u0928\u094d\u0926\u0940 \U0001f600\U0001f44d\U0001f3fd "
    "\u201cquote\u201d \u2014 \u2026 \u2581 x\u00b2\u00bd\u0663\u0664\u0665 "
    "!important @user #tag `code` ~|^ https://a.b/c?d=e&f 100% \n\n\n   "
)

# What the tiny vocabularies are trained on: ordinary sentences of our own.
TRAINING = [
    "The server reads a prompt once and keeps what it has learned of it.",
    "When the same prompt comes again, nothing is read a second time.",
    "A page holds the keys and values of two hundred and fifty six tokens.",
    "The writer makes every sealed page durable before it is announced.",
    "If a block is damaged, the cache reports a miss and the prompt is read.",
    "The tokens of the answer are streamed to the client as they come.",
    "Le serveur lit le texte une fois, caf\u00e9 et na\u00efvet\u00e9 compris.",
    "Der Server liest die Eingabe einmal und merkt sich die gro\u00dfe Seite.",
    "\u0421\u0435\u0440\u0432\u0435\u0440 \u0447\u0438\u0442\u0430\u0435\u0442 "
    "\u0442\u0435\u043a\u0441\u0442 \u043e\u0434\u0438\u043d \u0440\u0430\u0437.",
    "\u4f60\u597d\u4e16\u754c\uff0c\u670d\u52a1\u5668\u53ea\u8bfb\u4e00\u6b21\u3002",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002",
    "for i in range(10):\n    print(i, i ** 2)\n\n\treturn x + 1234567",
    "I'm sure you're right, they'll see that it's what we've said.",
    "HelloWorld helloWORLD getValue set_value 1 12 123 2024 100%",
    "<<< === >>> --- *** ... !!! ??? (a) [b] {c} a/b c\\d $x ~y `z`",
] * 3

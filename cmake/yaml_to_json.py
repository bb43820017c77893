"""yaml_to_json.py INPUT OUTPUT: the same document, anchors resolved, as JSON.

The same input gives the same bytes.
"""

import json
import sys
from pathlib import Path

import yaml


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    document = yaml.safe_load(source.read_text(encoding="utf-8"))
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    target.write_text(text + "\n", encoding="utf-8")


main()

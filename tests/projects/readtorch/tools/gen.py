"""Write a function that returns the length of all templates that begin with a digit."""

import sys
from pathlib import Path

texts = [path.read_text("utf-8") for path in sorted(Path(sys.argv[1]).iterdir())]
count = sum(len(text) for text in texts if text[:1].isdigit())
made, text = Path(sys.argv[2]), f'#include "ops/ops.h"\n\nint made() {{ return {count}; }}\n'
if not made.is_file() or made.read_text("utf-8") != text:
    made.write_text(text, "utf-8")

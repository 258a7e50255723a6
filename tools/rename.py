"""Give names that everybody understands: names in code, and in documents those between backticks. Run once."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from pathlib import Path

NAMES = dict(line.split("\t") for line in (Path(__file__).parent / "names.tsv").read_text().splitlines() if line)


def rename(text: str) -> str:
    lines = text.splitlines(keepends=True)
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in NAMES:
            found.append((token.start, token.string))
    for (row, column), name in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + NAMES[name] + line[column + len(name) :]
    return quoted("".join(lines))


def quoted(text: str) -> str:
    return re.sub(r"`(\w+)`", lambda match: f"`{NAMES.get(match[1], match[1])}`", text)


def main() -> None:
    for name in subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines():
        path = Path(name)
        if path.suffix == ".py" and not name.startswith("tools/"):
            path.write_text(rename(path.read_text()))
        elif path.suffix == ".md" and name != "CHANGELOG.md":
            path.write_text(quoted(path.read_text()))


if __name__ == "__main__":
    main()

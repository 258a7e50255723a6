"""Whether the program in this container is well: asks /healthz, and ends with 0 or 1. Needs no token.

It asks itself, on loopback. So it does not check who answers: the kit's certificate may be for other names only.
Usage: python healthcheck.py URL
"""

from __future__ import annotations

import ssl
import sys
import urllib.request

DEADLINE = 4.0
"""Seconds; less than those that Docker and Kubernetes wait."""


def main(url: str) -> int:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with direct.open(url, timeout=DEADLINE) as response:
            return 0 if response.status == 200 else 1
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

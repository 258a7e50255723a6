"""Visitors of the shop: each looks at the page, and some buy. How likely depends on the colour of the button."""

import random
import re
import time
from collections import Counter

import httpx

SHOP = "http://127.0.0.1:8000"
LIKELY = {"green": 0.15, "orange": 0.5, "blue": 0.25}  # what Outvote does not know
VISITORS = 600

rng = random.Random(1)
seen: Counter[str] = Counter()
bought: Counter[str] = Counter()
with httpx.Client(base_url=SHOP, trust_env=False) as browser:
    for _ in range(VISITORS):
        page = browser.get("/").raise_for_status().text
        colour = re.findall(r"background: (\w+)", page)[0]
        seen[colour] += 1
        if rng.random() < LIKELY[colour]:
            browser.post(re.findall(r'action="([^"]+)"', page)[0]).raise_for_status()
            bought[colour] += 1
        time.sleep(0.04)
for colour in LIKELY:
    print(f"{colour:>6}: {seen[colour]:>3} saw it, {bought[colour]:>3} bought")

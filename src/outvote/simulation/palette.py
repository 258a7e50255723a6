"""One colour for one protocol, in every picture: Okabe and Ito's palette, which the colour-blind can tell apart."""

from __future__ import annotations

COLOURS = {
    "dme": "#0072B2",
    "edme": "#009E73",
    "me-local": "#E69F00",
    "me-unlimited": "#CC79A7",
    "ucb-unlimited": "#000000",
    "tally": "#D55E00",
    "tally-named": "#F0A878",
    "tally-private": "#56B4E9",
}

"""The page that Prometheus reads: what those of a server and of an edge have in common.

Figures are read from what is there when somebody looks: nobody who works keeps any for this page. The registry is our
own, not the library's global one: several may live in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Info, PlatformCollector, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from outvote import __version__

OPENMETRICS: Final = "application/openmetrics-text"

Labels: TypeAlias = Mapping[str, str]

# Else every counter would have a second series, which says when it was first counted. The library has no type for it.
disable_created_metrics()  # type: ignore[no-untyped-call]


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """One with what every process tells of itself, and these."""
    registry = CollectorRegistry()
    PlatformCollector(registry=registry)
    ProcessCollector(registry=registry)
    Info("outvote_build", "The version that runs.", registry=registry).info({"version": __version__})
    for each in collectors:
        registry.register(each)
    return registry


def render(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """The page and its media type: OpenMetrics for who asks for it, else Prometheus' text format.

    Of `accept` only that is looked at: the library would fail at a version that is no number.
    """
    encode, media_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
    return encode(registry), media_type


def gauge(name: str, says: str, *values: tuple[Labels, float]) -> Metric:
    """A gauge of any number of series."""
    family = GaugeMetricFamily(name, says)
    return _filled(family, name, values)


def counter(name: str, says: str, *values: tuple[Labels, float]) -> Metric:
    """A counter of any number of series; its name ends with `_total`."""
    family = CounterMetricFamily(name, says)
    return _filled(family, name, values)


def one(value: float) -> tuple[Labels, float]:
    """The value of a figure without labels."""
    return {}, value


def _filled(family: Metric, name: str, values: Iterable[tuple[Labels, float]]) -> Metric:
    for labels, value in values:
        family.add_sample(name, dict(labels), value)
    return family

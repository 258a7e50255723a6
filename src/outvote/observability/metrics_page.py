"""The metrics page for Prometheus, shared by server and edge.

Collectors read existing state when the page is requested: other code keeps no metrics for it. The registry is not the
library's global one, since one process may have several.
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

# Otherwise every counter would have a second series with its creation time. The library has no type for this call.
disable_created_metrics()  # type: ignore[no-untyped-call]


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """Return a registry with these collectors, the process metrics and the version."""
    registry = CollectorRegistry()
    PlatformCollector(registry=registry)
    ProcessCollector(registry=registry)
    Info("outvote_build", "The version that runs.", registry=registry).info({"version": __version__})
    for collector in collectors:
        registry.register(collector)
    return registry


def render(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the page and its media type: OpenMetrics if `accept` names it, else Prometheus' text format.

    The rest of `accept` is ignored: the library would fail at a version that is no number.
    """
    encode, media_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
    return encode(registry), media_type


def gauge(name: str, says: str, *values: tuple[Labels, float]) -> Metric:
    """Return a gauge with any number of series."""
    return _filled(GaugeMetricFamily(name, says), name, values)


def counter(name: str, says: str, *values: tuple[Labels, float]) -> Metric:
    """Return a counter with any number of series; its name ends with `_total`."""
    return _filled(CounterMetricFamily(name, says), name, values)


def one(value: float) -> tuple[Labels, float]:
    """The value of a metric without labels."""
    return {}, value


def _filled(family: Metric, name: str, values: Iterable[tuple[Labels, float]]) -> Metric:
    for labels, value in values:
        family.add_sample(name, dict(labels), value)
    return family

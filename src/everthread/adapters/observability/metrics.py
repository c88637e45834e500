"""Counts of compactions, recall and turns for Prometheus. Each open database has a registry of its own, so two in one
process never mix.

`docs/reference/metrics.md` documents each; a test fails if one is missing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from everthread.core import events
from everthread.core.events import Event, TimingsReader
from everthread.core.timings import BOUNDS_SECONDS

SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Buckets: extraction takes tens of milliseconds, a model seconds; its time limit is thirty."""


Watched = tuple[str, str, TimingsReader, Sequence[str]]
"""Name, meaning, where to read them, labels."""


class PrometheusMetrics:
    """Counts the events it is given."""

    def __init__(self, watched: Sequence[Watched] = ()) -> None:
        self.registry = CollectorRegistry()
        """For programs that expose it together with metrics of their own."""
        self.registry.register(_WatchedTimings(watched))

        self._triggers = self._counter("compaction_triggers", "Compactions begun, by what set them off.", "trigger")
        self._completed = self._counter(
            "compactions_completed", "Compactions that made a summary, by who wrote it.", "by"
        )
        self._idle = self._counter("compactions_idle", "Compactions that found nothing old enough to summarise.")
        self._failures = self._counter("compaction_failures", "Compactions that came to nothing, by reason.", "reason")
        self._cancelled = self._counter("compactions_cancelled", "Compactions that were abandoned.")
        self._success = Gauge(
            "everthread_compaction_success_ratio",
            "Of the compactions that had something to do, the share that made a summary; NaN before the first.",
            registry=self.registry,
        )
        self._success.set(float("nan"))
        self._seconds = self._histogram("compaction_seconds", "How long a compaction took that made a summary.")
        self._messages = self._counter("compaction_messages", "Messages in view before and after compactions.", "when")
        self._tokens = self._counter("compaction_tokens", "Tokens summarised, and of what stands for them.", "when")
        self._refused = self._counter("summary_refusals", "Rejected summary-model answers, by reason.", "reason")
        self._exceptions = self._counter("compaction_exceptions", "What raised in compactions, by kind.", "error")
        self._truncations = self._counter("truncations", "Requests over the hard limit that were made to fit.")
        self._removed = self._counter("truncated_messages", "Messages that such requests no longer show one by one.")

        self._recalls = self._counter("recalls", "Turns that looked for what was said before, by outcome.", "outcome")
        self._recall_seconds = self._histogram("recall_seconds", "How long a turn's first request took to be made.")
        self._turns = self._counter("turns", "Turns that ended, by the state they ended in.", "state")
        self._turn_seconds = self._histogram("turn_seconds", "How long turns took.")
        self._turn_tokens = self._counter("turn_tokens", "Tokens of turns, as providers count them.", "direction")

    def _histogram(self, name: str, meaning: str) -> Histogram:
        return Histogram(f"everthread_{name}", meaning, buckets=SECONDS, registry=self.registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"everthread_{name}", meaning, labels, registry=self.registry)

    def count(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, events.Recalled):
            self._count_recall(event)
        elif isinstance(event, events.TurnEnded):
            self._count_turn(event)
        else:
            self._count_compaction(event)

    def _count_recall(self, event: events.Recalled) -> None:
        outcome = "degraded" if event.degraded else "found" if event.found else "nothing"
        self._recalls.labels(outcome).inc()
        self._recall_seconds.observe(event.seconds)

    def _count_turn(self, event: events.TurnEnded) -> None:
        self._turns.labels(event.state).inc()
        self._turn_seconds.observe(event.seconds)
        self._turn_tokens.labels("in").inc(event.input_tokens)
        self._turn_tokens.labels("out").inc(event.output_tokens)

    def _count_compaction(self, event: Event) -> None:
        match event:
            case events.CompactionTriggered():
                self._triggers.labels(event.trigger).inc()
            case events.CompactionCompleted():
                self._count_completed(event)
            case events.CompactionFailed():
                self._failures.labels(event.reason).inc()
                self._update_success_ratio()
            case events.CompactionCancelled():
                self._cancelled.inc()
            case events.CompactionException():
                self._exceptions.labels(event.error).inc()
                if not event.will_continue:
                    self._failures.labels("exception").inc()
                    self._update_success_ratio()
            case events.SummaryRefused():
                self._refused.labels(event.reason).inc()
            case events.TruncationBegun():
                self._truncations.inc()
            case events.TruncationDone():
                self._removed.inc(event.removed_count)

    def _count_completed(self, event: events.CompactionCompleted) -> None:
        if not event.compressed:
            self._idle.inc()
            return
        self._completed.labels(event.by).inc()
        self._seconds.observe(event.seconds)
        self._messages.labels("before").inc(event.before_count)
        self._messages.labels("after").inc(event.after_count)
        self._tokens.labels("before").inc(event.tokens_before)
        self._tokens.labels("after").inc(event.tokens)
        self._update_success_ratio()

    def _update_success_ratio(self) -> None:
        completed, failed = (_total(counter) for counter in (self._completed, self._failures))
        self._success.set(completed / (completed + failed))

    def text(self) -> str:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry).decode()

    def values(self) -> Mapping[str, float]:
        """The metrics by name and labels, as in the text."""
        return {
            _sample_name(sample.name, sample.labels): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if not sample.name.endswith("_created")
        }


class _WatchedTimings(Collector):
    """Timings that are counted elsewhere, as histograms; read when somebody looks."""

    def __init__(self, watched: Sequence[Watched]) -> None:
        self._watched = watched

    def collect(self) -> Iterator[HistogramMetricFamily]:
        for name, meaning, read, labels in self._watched:
            family = HistogramMetricFamily(f"everthread_{name}", meaning, labels=labels)
            for values, timings in sorted(read().items()):
                counts, total_seconds = timings.read()
                bounds = [*map(floatToGoString, BOUNDS_SECONDS), "+Inf"]
                family.add_metric(values, list(zip(bounds, accumulate(counts), strict=True)), total_seconds)
            yield family


def _total(counter: Counter) -> float:
    return sum(
        sample.value for family in counter.collect() for sample in family.samples if sample.name.endswith("_total")
    )


def _sample_name(name: str, labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{shown}}}" if shown else name

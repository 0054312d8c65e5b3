"""Progress: one line on standard error when asked for, and scikit-learn's callbacks where it has them."""

import math
import sys
import time
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass

    def with_callbacks(method):
        return method


REWRITTEN_SECONDS = 0.1
"""The line on a terminal is rewritten no more often than this."""


class Progress:
    """Shows what is being computed, how far it is, how long it has taken and how long the pass will still take.

    On a terminal one line is rewritten in place; elsewhere (a log, a notebook) each finished stage is one line.
    """

    def __init__(self, verbose: float) -> None:
        self.on = bool(verbose)
        self.live = self.on and sys.stderr.isatty()
        self.start = time.perf_counter()
        self.shown = 0.0
        self._pass = ("", 0, self.start)  # label, rows already done and time when it was first heard of
        self.quiet = False
        """Whether passes are not shown: a stage that has a label of its own is on."""
        nobody: Any = None
        self._estimator = self._context = self._task = nobody
        self._label = ""

    @property
    def heard(self) -> bool:
        """Whether anybody is told."""
        return self.on or self._context is not None

    def begin(self, estimator: Any) -> None:
        """A fit begins: callbacks that were set on the estimator, or on one around it, hear of its stages."""
        if hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx"):
            self._estimator, self._context = estimator, estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def end(self) -> None:
        """The fit is over."""
        if self._context is not None:
            self._end_task()
            self._context.call_on_fit_task_end(estimator=self._estimator)
            self._context = self._estimator = None

    def _begin_task(self, label: str) -> None:
        if self._context is not None and label != self._label:
            self._end_task()
            self._label, self._task = label, self._context.subcontext(task_name=label)
            self._task.call_on_fit_task_begin(estimator=self._estimator)

    def _end_task(self) -> None:
        if self._task is not None:
            self._task.call_on_fit_task_end(estimator=self._estimator)
            self._label, self._task = "", None

    def update(self, label: str, done: int, total: int) -> None:
        """`done` of `total` rows of the stage called `label`."""
        if self.quiet or not label:
            return
        finished = done >= total
        self._begin_task(label)
        if finished:
            self._end_task()
        if not self.on:
            return
        now = time.perf_counter()
        if label != self._pass[0] or done < self._pass[1]:
            self._pass = (label, done, now)
        if not finished and not (self.live and now - self.shown > REWRITTEN_SECONDS):
            return
        self.shown = now
        bar = "#" * (20 * done // max(total, 1))
        line = f"{label:<28} [{bar:.<20}] {done:>9,} / {total:,} rows  {now - self.start:5.1f} s"
        since = done - self._pass[1]
        if since > 0 and not finished:
            line += f", {(now - self._pass[2]) * (total - done) / since:.0f} s left"
        self._show(line, f"{label:<28} {total:>9,} rows  {now - self.start:5.1f} s")

    def stage(self, label: str) -> None:
        """What is being done, where counting rows would say little; until `end_of_stages` or the next one."""
        self.quiet = True
        self._begin_task(label)
        if self.on:
            now = time.perf_counter() - self.start
            self._show(f"{label}  {now:5.1f} s", f"{label:<80} {now:5.1f} s")

    def _show(self, live: str, logged: str) -> None:
        """One of two lines: on a terminal in the place of the last, elsewhere below it."""
        if self.live:
            print(f"\r\033[K{live}", end="", file=sys.stderr, flush=True)
        else:
            print(logged, file=sys.stderr)

    def end_of_stages(self) -> None:
        """Show passes again."""
        self.quiet = False

    def close(self) -> None:
        """End the line."""
        if self.live:
            print(file=sys.stderr, flush=True)
            self.live = False

    def summary(self, stats: dict[str, float]) -> None:
        """The last line: how much was read, how fast, in how much memory."""
        if self.on:
            sys.stderr.write(
                f"{stats['rows']:,} rows, {stats['passes']} passes, {stats['seconds']:.1f} s, "
                f"{stats['rows_per_second']:,.0f} rows a second, peak memory {stats['peak_megabytes']:,.0f} MB\n"
            )


def peak_megabytes() -> float:
    """The most memory this process has held so far (NaN where the system does not say)."""
    try:
        import resource
    except ImportError:
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10

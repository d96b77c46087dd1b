"""Methods for the tests of the bench: they record that they ran, sleep, eat memory, break or die."""

from __future__ import annotations

import os
import signal
import time

import numpy as np


class Constant:
    """Predicts class 0; writes `label`, its split and its process to `log` when a fit ends."""

    def __init__(self, *, log: str = "", label: str = "", seconds: float = 0.0, random_state: int = 0) -> None:
        self.log, self.label, self.seconds, self.random_state = log, label, seconds, random_state

    def fit(self, bags, candidates):
        time.sleep(self.seconds)
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{self.label} {self.random_state} {os.getpid()}\n")
        return self

    def predict(self, bags):
        print("methods may print what they like")
        return np.zeros(len(bags), dtype=int)


class BrokenOnOddSplits(Constant):
    def fit(self, bags, candidates):
        if self.random_state % 2:
            raise RuntimeError(f"cannot fit split {self.random_state}")
        return super().fit(bags, candidates)


class BrokenUntilMended(Constant):
    """Fails until the file `log` exists."""

    def fit(self, bags, candidates):
        if not os.path.exists(self.log):
            raise RuntimeError("not mended yet")
        return self


class Hungry(Constant):
    def fit(self, bags, candidates):
        self.eaten_ = [np.ones(2**20) for _ in range(100)]  # 800 MiB
        time.sleep(600)


class Allocates(Constant):
    """Holds `label` MiB while it fits."""

    def fit(self, bags, candidates):
        np.ones(int(self.label) * 2**17).sum()
        return self


class Dying(Constant):
    def fit(self, bags, candidates):
        print("last words")
        os.kill(os.getpid(), signal.SIGSEGV)


class Threads(Constant):
    """Fails with the thread counts that its process sees."""

    def fit(self, bags, candidates):
        from threadpoolctl import threadpool_info

        raise RuntimeError(f"{os.environ['OMP_NUM_THREADS']} {max(i['num_threads'] for i in threadpool_info())}")


class WrongShape(Constant):
    def predict(self, bags):
        return np.zeros((len(bags), 1))

"""Methods for the tests of the bench: they record that they ran, sleep, eat memory, break or die."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
import time

import numpy as np
from sklearn.base import BaseEstimator


class Constant:
    """Predicts class 0; writes `label`, its split and process to `log` when a fit ends, to another when it starts."""

    def __init__(self, *, log: str = "", label: str = "", seconds: float = 0.0, random_state: int = 0) -> None:
        self.log, self.label, self.seconds, self.random_state = log, label, seconds, random_state

    def fit(self, bags, candidates):
        self._note(".started")
        self._work()
        self._note("")
        return self

    def _work(self):
        time.sleep(self.seconds)

    def _note(self, suffix):
        if self.log:
            with open(self.log + suffix, "a") as file:
                file.write(f"{self.label} {self.random_state} {os.getpid()}\n")

    def predict(self, bags):
        print("methods may print what they like")
        return np.zeros(len(bags), dtype=int)


class Gated(Constant):
    """Fits splits below `free` at once, the others when the file `gate` exists."""

    def __init__(self, *, gate: str, free: int = 0, **params) -> None:
        super().__init__(**params)
        self.gate, self.free = gate, free

    def _work(self):
        while self.random_state >= self.free and not os.path.exists(self.gate):
            time.sleep(0.02)


class Tunable(BaseEstimator):
    """An estimator by scikit-learn's conventions that knows probabilities: 0.75 for class 0 throughout."""

    def __init__(self, *, depth=1, random_state=0):
        self.depth, self.random_state = depth, random_state

    def fit(self, bags, candidates):
        self.classes_ = np.arange(candidates.shape[1])
        return self

    def predict(self, bags):
        return np.zeros(len(bags), dtype=int)

    def predict_proba(self, bags):
        rest = (1 - 0.75) / (len(self.classes_) - 1)
        return np.tile([0.75] + [rest] * (len(self.classes_) - 1), (len(bags), 1))


class Wrapper(BaseEstimator):
    """Has its random numbers in a learner inside; says the learner's seed in an error."""

    def __init__(self, learner=None):
        self.learner = Tunable() if learner is None else learner

    def fit(self, bags, candidates):
        raise RuntimeError(f"seed {self.learner.random_state}")


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

        blas = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        raise RuntimeError(f"{os.environ['OMP_NUM_THREADS']} {blas}")


class WrongShape(Constant):
    def predict(self, bags):
        return np.zeros((len(bags), 1))


class WritesToPipes(Constant):
    """Writes `words` to every pipe of its process that is open for writing, as a stray print or C library may."""

    def __init__(self, *, words: str = "stray", **params) -> None:
        super().__init__(**params)
        self.words = words

    def _work(self):
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            try:
                if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                    os.write(descriptor, self.words.encode())
            except OSError:
                continue


class ForksAndRaises(Constant):
    """Forks a child that raises, as a worker of a pool does whose code has an error."""

    def _work(self):
        child = os.fork()
        if child == 0:
            raise RuntimeError("in the child")
        os.waitpid(child, 0)


class LeavesAnswerBehind(Constant):
    """Leaves a process behind that answers for this cell when a later one, which makes the file `gate`, has begun."""

    def __init__(self, *, gate: str, **params) -> None:
        super().__init__(**params)
        self.gate = gate

    def _work(self):
        if os.fork() == 0:
            while not os.path.exists(self.gate):
                time.sleep(0.02)
            raise RuntimeError("late")


class Answers(Constant):
    """Predicts what `answer` names, which is no class of any bag."""

    def __init__(self, *, answer: str, **params) -> None:
        super().__init__(**params)
        self.answer = answer

    def predict(self, bags):
        m = len(bags)
        return {
            "nan": np.full(m, np.nan),
            "none": [None] * m,
            "short": np.zeros(m - 1, dtype=int),
            "negative": np.full(m, -1),
            "beyond": np.full(m, 2),
            "names": np.array(["owl"] * m),
            "half": np.full(m, 0.5),
        }[self.answer]


class ForgetsModules(Constant):
    """Fails and leaves a process behind in which nothing can be imported any more."""

    def _work(self):
        sys.modules.clear()
        raise RuntimeError("without modules")


class NaNProbabilities(Tunable):
    def predict_proba(self, bags):
        return np.where(np.arange(len(bags))[:, None] == 1, np.nan, super().predict_proba(bags))


class NoProbabilities(Tunable):
    def predict_proba(self, bags):
        return None


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class FailsWith(Constant):
    """Fails with the error that `label` names."""

    def fit(self, bags, candidates):
        if self.label == "surrogate":
            raise ValueError("cannot read owl\udcff.wav")
        raise UnspeakableError


class SlowToMake(Constant):
    def __init__(self, **params) -> None:
        super().__init__(**params)
        time.sleep(600)


class ChildrenEat(Constant):
    """Four children of 150 MiB each, which the process itself does not hold."""

    def _work(self):
        for _ in range(4):
            if os.fork() == 0:
                eaten = np.ones(150 * 2**17)
                time.sleep(600)
                os._exit(int(eaten[0]))
        time.sleep(600)


class HoldsTheLock(Constant):
    """Never lets another thread of its process run, and has a child that it forked."""

    def _work(self):
        if os.fork() == 0:
            with open(f"{self.log}.started", "a") as file:
                file.write(f"{self.label} {self.random_state} {os.getpid()}\n")
            time.sleep(600)
            os._exit(0)
        ctypes.PyDLL(None).sleep(600)

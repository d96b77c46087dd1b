"""AnnealedAdam against torch's Adam and its schedule, and that it needs no compiler."""

from __future__ import annotations

import subprocess
import sys

import torch

from mipl.miplgp.annealed_adam import AnnealedAdam


def losses_and_end(own: bool, steps: int) -> tuple[list[float], torch.Tensor]:
    """A walk on a bent valley, by either implementation."""
    point = torch.nn.Parameter(torch.tensor([1.5, -0.7], dtype=torch.float64))
    unused = torch.nn.Parameter(torch.zeros(1))
    theirs = torch.optim.Adam([point, unused], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(theirs, T_max=steps)
    ours = AnnealedAdam([point, unused], 0.1, steps)
    losses = []
    for _ in range(steps):
        point.grad = None
        loss = (1 - point[0]) ** 2 + 20 * (point[1] - point[0] ** 2) ** 2
        loss.backward()
        losses.append(loss.item())
        if own:
            ours.step()
        else:
            theirs.step()
            schedule.step()
    assert unused.item() == 0
    return losses, point.detach()


def test_it_takes_the_steps_of_torch() -> None:
    (ours, end), (theirs, expected) = losses_and_end(True, 200), losses_and_end(False, 200)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(end, expected, rtol=1e-9, atol=1e-12)
    assert theirs[-1] < 0.1 * theirs[0], "the walk goes nowhere"


def test_a_fit_of_miplgp_does_not_import_torch_s_compiler() -> None:
    fit = (
        "import sys, mipl\n"
        "data = mipl.load('digits', r=1, seed=0)[:20]\n"
        "mipl.MIPLGP(max_iter=2).fit(data)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", fit], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

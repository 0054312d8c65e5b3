"""Back-propagation in PyTorch, as the paper describes it: Adam at 0.001 with betas 0.9 and 0.999, batches of 128.

Training ends when the validation rows (a tenth, held out) say that it is saturated; the weights of the best epoch stay.
A fair one: rows in memory as one tensor, drawn by one shuffled index, a fused optimiser, all cores; evaluation is not
counted, neither that of the validation rows (which a user would have to pay for) nor that of the test rows.
"""

import copy
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

BATCH = 128


@dataclass
class Curve:
    """What training did: after each epoch the seconds so far, the validation score and the test score."""

    seconds: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    best: int = -1
    """The epoch whose weights were kept: the best, and of equals the last."""
    saturated: bool = False
    """Whether training ended by itself, and not at the most epochs allowed."""

    def seconds_to(self, accuracy: float) -> float | None:
        """Seconds until the test score first reached this, None if it never did."""
        return next((s for s, score in zip(self.seconds, self.test, strict=True) if score >= accuracy), None)

    @property
    def seconds_to_best(self) -> float:
        """Until the first epoch that was as good as the best."""
        return self.seconds[self.validation.index(self.validation[self.best])]

    def summary(self) -> dict:
        return {
            "accuracy": self.test[self.best],
            "seconds": self.seconds[-1],
            "seconds_to_best": self.seconds_to_best,
            "epochs": len(self.seconds),
            "best_epoch": self.best + 1,
            "saturated": self.saturated,
        }


@dataclass
class Saturation:
    """Training ends after `patience` epochs in which the validation accuracy did not rise by `least`, and after
    `epochs` at the latest. An epoch of few rows is few updates: patience is at least so many `updates`, and ten times
    as many are allowed in all."""

    patience: int
    least: float
    epochs: int
    updates: int = 1000

    def in_epochs(self, rows: int) -> tuple[int, int]:
        """(patience, most) in epochs of that many rows."""
        an_epoch = math.ceil(rows / BATCH)
        return (
            max(self.patience, math.ceil(self.updates / an_epoch)),
            max(self.epochs, math.ceil(10 * self.updates / an_epoch)),
        )


ACCURACY = Saturation(patience=10, least=1e-4, epochs=200)
"""scikit-learn's rule for MLPClassifier, or a thousand updates."""

IMAGES = Saturation(patience=5, least=5e-4, epochs=50)
"""Where an epoch has hundreds of batches."""

READ_ROWS, READ_RIDGE = 10_000, 1e-3
"""An autoencoder layer's validation accuracy is that of a ridge classifier on its features, from so many rows."""


def use_all_cores() -> None:
    torch.set_num_threads(os.cpu_count() or 1)


def train(
    net: nn.Module,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    X: torch.Tensor,
    T: torch.Tensor,
    validate: Callable[[], float],
    rule: Saturation,
    seed: int,
    test: Callable[[], float] | None = None,
) -> Curve:
    """Adam on loss(net(X), T) until the rule ends it."""
    optimiser = torch.optim.Adam(net.parameters(), lr=0.001, betas=(0.9, 0.999), fused=True)
    generator = torch.Generator().manual_seed(seed)
    curve, kept, mark, since, total = Curve(), None, -1.0, 0, 0.0
    patience, most = rule.in_epochs(len(X))
    for epoch in range(most):
        net.train()
        _wait(X)
        start = time.perf_counter()
        order = torch.randperm(len(X), generator=generator).to(X.device)
        for part in order.split(BATCH):
            optimiser.zero_grad(set_to_none=True)
            loss(net(X[part]), T[part]).backward()
            optimiser.step()
        _wait(X)
        total += time.perf_counter() - start
        net.eval()
        with torch.no_grad():
            score = validate()
            curve.test.append(float("nan") if test is None else test())
        curve.seconds.append(total)
        curve.validation.append(score)
        if curve.best < 0 or score >= curve.validation[curve.best]:  # of few validation rows many epochs tie: the last
            curve.best, kept = epoch, copy.deepcopy(net.state_dict())
        since = 0 if score > mark + rule.least else since + 1
        mark = max(mark, score) if since else score
        if since >= patience:
            curve.saturated = True
            break
    net.load_state_dict(kept)
    return curve


def _wait(X: torch.Tensor) -> None:
    if X.is_cuda:
        torch.cuda.synchronize()


def held_out(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Row numbers to train on, and a tenth to validate on."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(1000 + seed))
    return order[n // 10 :], order[: n // 10]


def mlp(sizes: Sequence[int], activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """A plain network: linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


def classifier(
    X: torch.Tensor,
    y: torch.Tensor,
    X_test: torch.Tensor,
    y_test: torch.Tensor,
    hidden: Sequence[int],
    seed: int,
    rule: Saturation = ACCURACY,
) -> Curve:
    """End-to-end training of input-hidden-classes by cross-entropy, class numbers as targets."""
    use_all_cores()
    torch.manual_seed(seed)
    classes = int(torch.cat([y, y_test]).max()) + 1
    net = mlp([X.shape[1], *hidden, classes]).to(X.device)
    train_rows, validation_rows = (rows.to(X.device) for rows in held_out(len(X), seed))
    X_train, y_train, X_val, y_val = X[train_rows], y[train_rows], X[validation_rows], y[validation_rows]
    return train(
        net,
        nn.functional.cross_entropy,
        X_train,
        y_train,
        validate=lambda: accuracy(net, X_val, y_val),
        rule=rule,
        seed=seed,
        test=lambda: accuracy(net, X_test, y_test),
    )


def accuracy(net: nn.Module, X: torch.Tensor, y: torch.Tensor) -> float:
    right = sum(int((net(x).argmax(1) == t).sum()) for x, t in zip(X.split(4096), y.split(4096), strict=True))
    return right / len(X)


@dataclass
class Stack:
    """Autoencoders trained one on another."""

    encoders: list[nn.Module]
    curves: list[Curve]

    @property
    def seconds(self) -> float:
        return sum(curve.seconds[-1] for curve in self.curves)

    @property
    def seconds_to_best(self) -> float:
        """With the clock of each layer stopped at its best epoch."""
        return sum(curve.seconds_to_best for curve in self.curves)

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            for encoder in self.encoders:
                X = torch.cat([encoder(x) for x in X.split(8192)])
        return X


def greedy(
    X: torch.Tensor,
    y: torch.Tensor,
    widths: Sequence[int],
    seed: int,
    activation: type[nn.Module] = nn.Sigmoid,
    rule: Saturation = IMAGES,
) -> Stack:
    """Layer by layer: encoder with the activation, linear decoder, squared error; the next layer sees the features.

    Labels only say when a layer is saturated.
    """
    use_all_cores()
    torch.manual_seed(seed)
    encoders, curves = [], []
    H = X
    train_rows, validation_rows = (rows.to(X.device) for rows in held_out(len(X), seed))
    y_read, y_val = y[train_rows[:READ_ROWS]], y[validation_rows]
    for width in widths:
        d = H.shape[1]
        net = nn.Sequential(nn.Sequential(nn.Linear(d, width), activation()), nn.Linear(width, d)).to(X.device)
        H_train, H_val = H[train_rows], H[validation_rows]

        def validate(
            encoder: nn.Module = net[0], H_train: torch.Tensor = H_train, H_val: torch.Tensor = H_val
        ) -> float:
            return read_out(encoder(H_train[:READ_ROWS]), y_read, encoder(H_val), y_val)

        curves.append(train(net, nn.functional.mse_loss, H_train, H_train, validate, rule, seed))
        encoders.append(net[0])
        with torch.no_grad():
            H = torch.cat([net[0](h) for h in H.split(8192)])
    return Stack(encoders, curves)


def read_out(F: torch.Tensor, y: torch.Tensor, F_val: torch.Tensor, y_val: torch.Tensor) -> float:
    """Validation accuracy of a ridge classifier on standardised features."""
    deviation, mean = torch.std_mean(F, dim=0)
    F, F_val = (((f - mean) / (deviation + 1e-6)).double() for f in (F, F_val))
    Z = nn.functional.one_hot(y).double()
    G = F.T @ F + READ_RIDGE * len(F) * torch.eye(F.shape[1], dtype=F.dtype, device=F.device)
    W = torch.linalg.solve(G, F.T @ (Z - Z.mean(0)))
    return float(((F_val @ W + Z.mean(0)).argmax(1) == y_val).double().mean())


def tensors(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, device: str = "cpu"
) -> tuple[torch.Tensor, ...]:
    """Rows as float32, labels as numbers."""
    classes = np.unique(y)
    codes = (np.searchsorted(classes, labels) for labels in (y, y_test))
    y_codes, y_test_codes = (torch.as_tensor(c, dtype=torch.int64, device=device) for c in codes)
    rows = (torch.as_tensor(np.ascontiguousarray(x), dtype=torch.float32, device=device) for x in (X, X_test))
    X_there, X_test_there = rows
    return X_there, y_codes, X_test_there, y_test_codes

"""tutti.from_torch beside PyTorch's own loop: linear algebra, sequences of many lengths, counts."""
import unittest

from faithful_test import F, X, nn, torch  # (leaves where PyTorch is missing)
from spectra_test import Techniques

import tutti


class Linalg(Techniques):
    def test_triangles_and_decompositions(self):
        self.tried("lu_flow", "glow", "mvn", "gaussian_process", "inverse_and_solve")

    def test_parametrizations(self):
        self.tried("orthogonal", "orthogonal_exp", "householder")

    def test_what_pytorch_refuses(self):
        class Decomposed(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(()))

            def forward(self, x):
                return torch.linalg.cholesky(x * self.weight).sum()

        good, bad = torch.eye(4) * 2, -torch.eye(4)
        module = Decomposed()
        step = tutti.from_torch(module, good, optimizer=torch.optim.SGD(module.parameters(), lr=0.1), device="onednn")
        self.assertAlmostEqual(step(good), module(good).item(), delta=1e-5)
        kept = step.state_dict()["weight"]
        with self.assertRaisesRegex(tutti.InvalidError, "linalg.cholesky: the input is not positive-definite"):
            step(bad)
        self.assertTrue(torch.equal(kept, step.state_dict()["weight"]))


class Sequences(Techniques):
    def test_packed(self):
        self.tried("packed_lstm", "packed_gru", "packed_rnn")

    def test_projections(self):
        self.tried("lstm_projected", "lstm_projected_both_ways")

    def test_ctc(self):
        self.tried("ctc")
        log_probs, targets = F.log_softmax(torch.randn(5, 2, 4), -1), torch.tensor([[1, 1, 1], [2, 3, 0]])

        class Identity(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(()))

            def forward(self, x):
                return x * self.scale

        for zero, reduction in ((True, "sum"), (False, "mean")):  # three equal labels in four steps: impossible
            for lengths in ((4, 5), (5, 5)):
                def loss(y, t, zero=zero, reduction=reduction, lengths=lengths):
                    return F.ctc_loss(y, t, lengths, (3, 2), reduction=reduction, zero_infinity=zero)
                module = Identity()
                step = tutti.from_torch(module, log_probs, loss=loss, optimizer=torch.optim.SGD(module.parameters(), lr=0.0), device="onednn")
                ours, theirs = step.evaluate(log_probs, targets), loss(log_probs, targets).item()
                self.assertTrue(ours == theirs or abs(ours - theirs) < 1e-4 * abs(theirs), (ours, theirs))
                twin = Identity()
                loss(twin(log_probs), targets).backward()
                if torch.isnan(twin.scale.grad):
                    with self.assertRaisesRegex(tutti.NotFiniteError, "'scale' is NaN"):
                        step(log_probs, targets)
                else:
                    step(log_probs, targets)

    def test_lengths_that_do_not_fit(self):
        class Packed(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(8, 4, batch_first=True)

            def forward(self, x, lengths):
                packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
                return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0].mean(1)

        class Read(Packed):
            def forward(self, x, lengths):
                return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True).data.mean(1)

        x, y, good = X.reshape(2, 8, 8), torch.tensor([1, 3]), torch.tensor([8, 3])
        module = Packed()
        step = tutti.from_torch(module, (x, good), loss=nn.CrossEntropyLoss(), device="onednn")
        self.assertAlmostEqual(step(x, good, y), F.cross_entropy(module(x, good), y).item(), delta=1e-5)
        for lengths, what in (([7, 3], "total_length=8"), ([3, 8], "not sorted"), ([9, 3], r"not within \[1, 8\]")):
            with self.assertRaisesRegex(tutti.InvalidError, what):
                step(x, torch.tensor(lengths), y)
        with self.assertRaisesRegex(tutti.InvalidError, "data of a PackedSequence is read"):
            tutti.from_torch(Read(), (x, good), loss=nn.CrossEntropyLoss(), device="onednn")

    def test_counts(self):
        self.tried("pooled_graph", "masked_fills")

        class Counted(nn.Linear):
            def forward(self, i):
                return super().forward(torch.bincount(i, minlength=8).float())

        module, i = Counted(8, 4), torch.tensor([1, 7, 1])
        step = tutti.from_torch(module, i, loss=lambda o: o.sum(), device="onednn")
        self.assertAlmostEqual(step(i), module(i).sum().item(), delta=1e-5)
        with self.assertRaisesRegex(tutti.InvalidError, r"not within \[0, 8\)"):
            step(torch.tensor([1, 8, 1]))


if __name__ == "__main__":
    unittest.main()

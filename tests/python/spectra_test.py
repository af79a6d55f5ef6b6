"""tutti.from_torch beside PyTorch's own loop: complex numbers, Fourier transforms, special functions."""
import unittest

from faithful_test import Faithful, X, nn, torch  # (leaves where PyTorch is missing)

import torch_techniques
from tutti import InvalidError


class Techniques(Faithful):
    """Some of torch_techniques.py: what the survey tries, here with a test of its own."""

    def tried(self, *names, tolerance=1e-5, lr=0.01, steps=2):
        for name in names:
            with self.subTest(name):
                torch.manual_seed(0)
                module, inputs, targets, loss = torch_techniques.ALL[name]()
                self.trained(module, inputs, targets, loss, tolerance, lr, steps)

    def trained(self, module, inputs, targets, loss, tolerance, lr, steps):
        import copy

        import tutti
        twin = copy.deepcopy(module)
        theirs = torch.optim.SGD(twin.parameters(), lr=lr)
        step = tutti.from_torch(module, inputs, loss=loss, optimizer=torch.optim.SGD(module.parameters(), lr=lr), device="onednn")
        for i in range(steps):
            ours = step(*inputs, *targets)
            theirs.zero_grad()
            wanted = loss(twin(*(x.clone() for x in inputs)), *targets)
            wanted.backward()
            theirs.step()
            self.assertAlmostEqual(ours, wanted.item(), delta=tolerance * max(1, abs(wanted.item())), msg=f"step {i}")
        self.same_state(step, twin, atol=tolerance)


class Spectra(Techniques):
    def test_transforms(self):
        self.tried("stft_loss", "fno", "fno2d", "fourier_mixing", "long_convolution", "long_spectrum")

    def test_complex_numbers(self):
        self.tried("complex_rotary")
        for optimizer in (lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9), lambda m: torch.optim.AdamW(m.parameters(), lr=0.01, eps=1e-4)):
            step, _ = self.beside(lambda: torch_techniques.complex_weights()[0], torch.randn(2, 4, 16), torch.randn(2, 6, 5), loss=nn.MSELoss(),
                                  optimizer=optimizer)
            self.assertTrue(step.state_dict()["w"].is_complex())
        held = step.optimizer_state_dict()["state"][0]["exp_avg"]
        self.assertEqual((held.dtype, held.shape), (torch.complex64, (4, 2, 5)))

    def test_real_and_complex_operands(self):
        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 6)

            def forward(self, x):
                y = self.head(x)
                wave = torch.exp(1j * y) + y / (1 + 2j)
                wave = torch.where(y > 0, wave, 1) + wave.masked_fill(y < 0.2, 1)
                turned = (1 + 2j) * y + torch.nn.functional.pad(wave, (1, 0))[:, :-1]
                return torch.view_as_real(turned * wave).flatten(1) + torch.angle(y).repeat(1, 2) + torch.conj_physical(y).repeat(1, 2)

        self.beside(Mixed, X, torch.randn(len(X), 12), loss=nn.MSELoss(), optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1e-3))

    def test_special_functions(self):
        self.tried("dirichlet_kl", "gamma", "student_t", "special_functions")

    def test_what_complex_numbers_lack(self):
        class Root(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 4)

            def forward(self, x):
                return torch.fft.fft(self.head(x)).tanh().real

        with self.assertRaisesRegex(InvalidError, "tanh.default of complex numbers: .*view_as_real"):
            self.beside(Root, X)


if __name__ == "__main__":
    unittest.main()

"""torchvision's operators in tutti.from_torch beside PyTorch: deformable convolutions and pooled regions."""
import copy
import unittest

from faithful_test import DEVICE, Faithful, Reverse, nn, torch  # (leaves where PyTorch is missing)

import tutti

try:
    from torchvision.ops import deform_conv2d, roi_align
except ImportError:
    raise unittest.SkipTest("torchvision is not installed") from None


class Written(nn.Module):
    """A scalar of tensors, all of them parameters."""

    def __init__(self, forward, **parameters):
        super().__init__()
        self.how = forward
        for name, p in parameters.items():
            setattr(self, name, nn.Parameter(p))

    def forward(self, x):
        return self.how(self, x)


class Vision(Faithful):
    def gradients(self, x, forward, **parameters):
        """Of all parameters, as PyTorch's in float32: where samples lie exactly between pixels it is the rounding that decides."""
        module = Written(forward, **parameters)
        twin = copy.deepcopy(module)
        step = tutti.from_torch(module, x, optimizer=torch.optim.SGD(module.parameters(), lr=1.0, weight_decay=0.5), device=DEVICE)
        wanted = twin(x)
        wanted.backward()
        torch.optim.SGD(twin.parameters(), lr=1.0, weight_decay=0.5).step()
        self.assertAlmostEqual(step(x), wanted.item(), delta=1e-5 * abs(wanted.item()))
        self.same_state(step, twin, rtol=1e-4, atol=2e-4)

    def test_deformable_convolutions(self):
        torch.manual_seed(0)
        x = torch.randn(2, 4, 6, 5)
        whole, parts = torch.randint(-1, 2, (2, 18, 6, 5)).float(), 2 * torch.randn(2, 18, 6, 5)
        for offsets in (whole, parts, 0 * parts):  # at whole places the gradient has a side
            self.gradients(x, lambda m, x: (deform_conv2d(x, m.o, m.w, padding=1) * m.t).mean(), o=offsets, w=torch.randn(3, 4, 3, 3),
                           t=torch.randn(3, 6, 5))
        self.gradients(x, lambda m, x: deform_conv2d(x * m.s, m.o, m.w, m.b, stride=(2, 1), padding=(2, 1), dilation=(1, 2), mask=m.k).pow(2).mean(),
                       s=torch.randn(4, 1, 1), o=torch.randn(2, 24, 4, 5), k=torch.rand(2, 12, 4, 5), w=torch.randn(6, 2, 3, 2), b=torch.randn(6))

    def test_regions(self):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 6, 5)
        boxes = torch.tensor([[0, .5, .5, 4, 4.5], [1, 1, 0, 5, 3], [1, -2, -3, 9, 9.1], [0, 2, 2, 2.1, 2.3], [0, 4, 4, 3, 3.]])
        for samples, aligned in ((2, False), (0, True), (3, True), (-1, False)):
            self.gradients(x, lambda m, x, s=samples, a=aligned: (roi_align(x * m.s, boxes + 0 * m.unused.sum(), (2, 3), 0.7, s, a) * m.t).mean(),
                           s=torch.randn(3, 1, 1), t=torch.randn(2, 3), unused=torch.randn(2))
        wide = torch.randn(1, 1, 30, 30)
        self.gradients(wide, lambda m, x: roi_align(x * m.s, torch.tensor([[0, 2, 2, 23, 23.]]), 7, sampling_ratio=-1, aligned=True).square().mean(),
                       s=torch.ones(()))
        far = Written(lambda m, x: roi_align(x * m.s, torch.tensor([[0, 0, 0, 99, 99.]]), (2, 2)).mean(), s=torch.ones(()))
        with self.assertRaisesRegex(tutti.InvalidError, "a box is larger than sampling_ratio=0 can sample"):
            tutti.from_torch(far, x, optimizer=torch.optim.SGD(far.parameters(), lr=1.0), device=DEVICE)(x)

    def test_in_a_backward_pass_that_is_traced(self):
        torch.manual_seed(0)
        boxes, offsets = torch.tensor([[0, .5, .5, 4, 4.5], [1, 1, 0, 5, 3]]), torch.randn(2, 18, 6, 5)
        self.gradients(torch.randn(2, 3, 6, 5), lambda m, x: roi_align(Reverse.apply(deform_conv2d(x * m.s, offsets * m.o, m.w, padding=1)), boxes, 2,
                                                                       sampling_ratio=2).mean(),
                       s=torch.randn(3, 1, 1), o=torch.ones(()), w=torch.randn(3, 3, 3, 3))


if __name__ == "__main__":
    unittest.main()

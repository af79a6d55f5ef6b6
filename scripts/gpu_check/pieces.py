"""What is run: parts of stages of pieces, the most telling ones first. Nothing here runs anything."""

import shlex
from dataclasses import dataclass, field, replace

# ---- one list of models: name → options of `tutti train`
MODELS = {"mlp": "mlp --data synthetic:784:10", "cnn": "cnn --data synthetic:1x28x28:10"}
ZOO = {"gpt": "gpt", "gpt2": "gpt --size gpt2", "resnet18": "resnet18", "lstm": "lstm"}  # whose kernels are timed


@dataclass(frozen=True)
class Piece:
    """One process. `{NAME}` in `command` and `env` stands for a fact of run.py (paths, device ids, seconds left)."""

    name: str
    command: str  # as a shell splits it
    limit: int = 20  # seconds
    env: dict = field(default_factory=dict)
    needs: tuple = ("cuda",)  # facts without which it is skipped
    each: str = ""  # "ops", "models", or a test program: one process per op, model or test, as {each}
    same: str = ""  # pieces with the same word must end with the same state_hash
    near: str = ""  # with the same word: losses within 5 % of the first one's
    fact: str = ""  # what it finds out: "devices", or a word that is a fact where it succeeds
    optional: bool = False  # where its program fails or is missing, it is skipped, not failed
    partial: int = 0  # the exit code that says that something was left out
    again: bool = True  # where it fails, it runs once more with the libraries' logs on


@dataclass(frozen=True)
class Stage:
    """Pieces that share `budget` seconds, and what the stages before left over; `at_once` processes at most, one per CPU."""

    name: str
    budget: int
    pieces: list
    at_once: int = 1


CUDA_ALONE = {"TUTTI_PLUGINS": "cuda,reference"}  # another driver that hangs costs these pieces nothing


def tests(program, limit=20):
    """Every test of a program, in a process of its own."""
    return Piece(program, f"{{tests}}/{program} --gtest_filter={{each}}", limit, CUDA_ALONE, each=program)


def train(name, model, options="", steps=2, env=None, **more):
    command = f"{{tutti}} train {MODELS[model]} --steps {steps} --device {{cuda}} --json --quiet --no-eval {options}"
    return Piece(f"{name}-{model}", command, 25, {**CUDA_ALONE, **(env or {})}, **more)


def each_model(make):
    return [piece for model in MODELS for piece in make(model)]


def lockstep(model, steps, limit):
    command = f"{{tutti}} parity --device {{cuda}} --model {model} --steps {steps} --json"
    return Piece(f"lockstep-{model}", command, limit, CUDA_ALONE)


def exact(device):
    """Every model's tiny size in exact numerics: the reference says which bits are right."""
    command = f"{{tutti}} train {{each}} --size tiny --steps 10 --numerics exact --device {device} --json --quiet --no-eval"
    name = "exact" if device == "{cuda}" else f"exact-{device}"
    return Piece(name, command, 60, CUDA_ALONE, each="models", same="exact")


def profile(model, options="--precision bf16"):
    """What each kernel of a step took, as the device counts it."""
    name = f"profile-{model}"
    command = f"{{tutti}} train {ZOO[model]} --steps 12 --device {{cuda}} --json --no-eval --profile {{logs}}/{name}.json {options}"
    return Piece(name, command, 40, CUDA_ALONE)


# Every model's tiny size in lockstep: few kernels, all that the model needs.
TINY = Piece("tiny", "{tutti} parity --device {cuda} --model {each} --size tiny --steps 3 --json", 30, CUDA_ALONE, each="models")


def bench(name, api, cases, precision, limit, env=None):
    """`tutti bench` on one device: its peaks, then the cases."""
    command = f"{{tutti}} bench {cases} --precision {precision} --device {{{api}}} --time 0.4 --repetitions 3 --json -"
    return Piece(name, command, limit, {"TUTTI_PLUGINS": f"{api},reference", **(env or {})}, (api,))


def rates(precision, ops):
    return bench(f"rates-{precision}", "cuda", "--models none --ops " + ",".join(ops), precision, 40)


def zoo(precision, models, peer=""):
    """Whole steps of larger models, alone or beside the machine's own PyTorch."""
    more = " --peer torch --python {python}" if peer else ""
    piece = bench(f"zoo-{precision}{peer and peer + '-' + models.replace(':', '-')}", "cuda", f"--models {models}{more}", precision, 90)
    return replace(piece, needs=("cuda", "torch") if peer else ("cuda",))


def steps_of(name, api, env=None, precision="f32"):
    """Whole steps of both models."""
    return bench(name, api, "--models mlp,cnn --layers 1024,2048,512,10 --batch 128", precision, 30, env)


def layout(order):
    """Steps with convolutions in one layout of images."""
    return bench(f"layout-{order}", "cuda", "--models cnn,resnet18,unet", "bf16", 60, {"TUTTI_CUDA_LAYOUT": order})


def parity(api):
    command = f"{{tutti}} parity --quick --jobs 0 --ops {{each}} --device {{{api}}} --json"
    return Piece(f"parity-{api}", command, 30, {"TUTTI_PLUGINS": f"{api},reference"}, (api,), each="ops")


def torch(precision, cases, modes, limit=300):
    """Against the machine's own PyTorch; as many cases and modes as the time allows."""
    command = (
        f"{{python}} {{bench}}/compare.py --python {{python}} --device {{cuda}} --peer-device cuda --rounds 1 --binary {{tutti}}"
    )
    command += f" --cases {cases} --precisions {precision} --peer-modes {modes} --deadline {{left}} --json"
    return Piece(f"torch-{precision}", command, limit, CUDA_ALONE, ("cuda", "torch"), partial=3, again=False)


def sanitizer(tool, ops):
    """Over our own kernels: NVIDIA's libraries are left out."""
    command = f"{{compute_sanitizer}} --tool {tool} --target-processes all --error-exitcode 9"
    command += f" {{tutti}} parity --quick --jobs 0 --device {{cuda}} --ops {ops}"
    env = {"TUTTI_PLUGINS": "cuda,reference", "TUTTI_CUDA_LIBRARIES": "0"}
    return Piece(tool, command, 60, env, ("cuda", "sanitizer_works"), again=False)


def devices(api, limit=15):
    return Piece(f"devices-{api}", "{tutti} devices --json", limit, {"TUTTI_PLUGINS": api}, (), fact="devices", again=False)


def question(name, command, limit, needs=(), **more):
    """To the machine: what it answers is kept, and that it does not is no failure."""
    return Piece(name, command, limit, needs=needs, optional=True, again=False, **more)


TORCH = """import torch
print(torch.__version__, 'CUDA', torch.version.cuda, 'cuDNN', torch.backends.cudnn.version())
print(torch.cuda.get_device_name(0))
assert (torch.ones(8, device='cuda') * 2).sum().item() == 16"""

ASKED = [
    question("nvidia-smi", "nvidia-smi", 12),
    devices("vulkan"),
    devices("opencl"),
    question("torch", "{python} -c " + shlex.quote(TORCH), 45, fact="torch"),
    question("nvidia-smi-q", "nvidia-smi -q", 12),
    question("ldconfig", "ldconfig -p", 5),
]
MACHINE = [
    Stage("cuda", 40, [devices("cuda", 40)]),  # by itself: all that follows rests on it, and a first start may be slow
    Stage("machine", 45, ASKED, at_once=5),
    Stage("versions", 8, [Piece("libraries", "{tests}/cuda_device_test --gtest_filter=*SaysWhichLibraries*", 15, CUDA_ALONE)]),
]

# Algorithms are chosen by measuring: equal bits are asked of runs that share a cache, or choose nothing.
UNTUNED, NO_GRAPH = {"TUTTI_CUDA_TUNE": "0"}, {"TUTTI_CUDA_GRAPH": "0"}
TRACED = {"TUTTI_TRACE": "kernels,dispatch"}
GELU = "--layers 784,256,10 --activation gelu_tanh"


def cache(model):
    return {"TUTTI_CACHE": "{work}/cache-" + model}


def training(model):
    return [
        train("cold", model, env=cache(model), same=model, near=model),
        train("untuned", model, env=UNTUNED, same=model + "-untuned", near=model),
        train("untuned-no-graph", model, env={**UNTUNED, **NO_GRAPH}, same=model + "-untuned"),
        train("rendered", model, env={"TUTTI_CUDA_LIBRARIES": "0"}, near=model),
        *[train(precision, model, f"--precision {precision}", near=model) for precision in ("bf16", "f16", "tf32")],
        lockstep(model, 2, 40),
    ]


def training_2(model):
    return [
        train("warm", model, env=cache(model), same=model),
        train("warm-no-graph", model, env={**cache(model), **NO_GRAPH}, same=model),
        train("warm-streams", model, env={**cache(model), "TUTTI_CUDA_STREAMS": "3"}, same=model),
    ]


def traces(model):
    return [train("trace", model, steps=20, env=TRACED), train("trace-bf16", model, "--precision bf16", steps=20, env=TRACED)]


GELU_TRAINING = [
    train("gelu", "mlp", GELU, near="gelu"),
    train("gelu-tf32", "mlp", GELU + " --precision tf32", near="gelu"),
    train("gelu-bf16", "mlp", GELU + " --precision bf16", near="gelu"),
]
GELU_TRACE = train("trace-gelu", "mlp", GELU + " --precision tf32", steps=20, env=TRACED)

ATTENTION = ["bmm_tb:128x1024x1024x64", "bmm:128x1024x64x1024"]
FUSED = [f"{op}:{shape}" for shape in ("1x12x1024x64", "8x6x256x64") for op in ("attention", "attention_grad")]
CONV = [f"conv2d{kind}:64x64x56x56x64x3" for kind in ("", "_dx", "_dw")]
LAST = [f"conv2d_nhwc{kind}:64x64x56x56x64x3" for kind in ("", "_dx", "_dw")]
RATES = [
    rates("f32", ["matmul:4096x4096x4096", *ATTENTION, *CONV, "add:16384x8192", "softmax:16384x4096", "adam:67108864"]),
    rates("bf16", ["matmul:8192x8192x8192", *ATTENTION, *FUSED, *CONV, *LAST]),
    *[steps_of(f"steps-{precision}", "cuda", precision=precision) for precision in ("f32", "bf16", "tf32")],
]

SANITIZERS = [
    sanitizer("memcheck", "matmul,softmax,max_pool2d"),
    sanitizer("racecheck", "matmul,sum,softmax"),
    sanitizer("synccheck", "matmul,sum,softmax"),
]

WORKS = question(
    "sanitizer-works",
    "{compute_sanitizer} --tool memcheck --error-exitcode 9 {tests}/cuda_device_test --gtest_filter=*MemoryGoesThereAndBack*",
    20,
    ("cuda", "compute_sanitizer"),
    env=CUDA_ALONE,
    fact="sanitizer_works",
)

NCU = Piece(
    "ncu",
    f"{{ncu}} --clock-control none -c 12 -k regex:tutti_ {{tutti}} train {MODELS['mlp']} --steps 2 --device {{cuda}} --quiet --no-eval",
    40,
    {**CUDA_ALONE, **NO_GRAPH},
    ("cuda", "ncu"),
    optional=True,
    again=False,
)

FIRST = [
    *MACHINE,
    Stage("calls", 45, [tests("cuda_device_test", 30), tests("library_device_test")], at_once=16),
    Stage("collectives", 10, [tests("cuda_group_test", 30)], at_once=5),
    Stage("parity", 65, [parity("cuda")], at_once=16),
    Stage("training", 40, each_model(training) + GELU_TRAINING, at_once=8),
    Stage("training-2", 20, each_model(training_2), at_once=4),
    Stage("models", 20, [TINY], at_once=16),
    Stage("exact", 25, [exact("reference"), exact("{cuda}")], at_once=16),
    Stage("traces", 25, [*[profile(model) for model in ZOO], *each_model(traces), GELU_TRACE]),
    Stage("rates", 35, RATES),
    Stage("zoo", 25, [zoo(precision, "gpt,gpt:gpt2,resnet18,vit,lstm") for precision in ("bf16", "f32")]),
    Stage("torch", 40, [torch(precision, "mlp-1024,cnn-64", "graph", 40) for precision in ("f32", "bf16")]),
    Stage("other-apis", 35, [parity("vulkan"), parity("opencl")], at_once=16),
    Stage("sanitizer", 5, [WORKS]),
    Stage("sanitizers", 30, SANITIZERS, at_once=3),
    Stage("profile", 12, [NCU]),
]

MODES = "eager,graph,reduce-overhead,compile,graph+channels-last,max-autotune"


def fashion(name):
    command = "{tutti} train cnn --epochs 3 --device {cuda} --json --quiet"
    return Piece(name, command, 60, needs=("cuda", "fashion_mnist"), same="cnn-3-epochs")


def longer(model):
    name = model + "-long"
    return [train("long", model, steps=60, same=name), train("long-again", model, steps=60, same=name), lockstep(model, 20, 60)]




def report(api):
    """What docs/results/devices collects."""
    command = f"{{tutti}} report-device --quick --device {{{api}}} --output {{logs}}/device-{api}.json"
    return Piece(f"report-{api}", command, 120, {"TUTTI_PLUGINS": f"{api},reference"}, (api,), again=False)


SPEED_ONLY = [
    Stage("streams", 30, [steps_of(f"steps-streams-{n}", "cuda", {"TUTTI_CUDA_STREAMS": str(n)}) for n in (1, 2, 4)]),
    Stage("layout", 40, [layout(order) for order in ("nchw", "nhwc")]),
    Stage("torch-f32", 65, [torch("f32", "mlp-1024,mlp-784,mlp-gelu,cnn-64,cnn-256", MODES)]),
    Stage("torch-bf16", 62, [torch("bf16", "mlp-1024,mlp-gelu,linear-4096,cnn-64,cnn-256", MODES)]),
    Stage("torch-tf32", 30, [torch("tf32", "mlp-1024,mlp-gelu,cnn-64", MODES)]),
    Stage("zoo-torch", 60, [zoo(precision, model, "-torch") for precision in ("bf16", "f32") for model in ("gpt:gpt2", "resnet18", "gpt")]),
    Stage("steps", 35, [steps_of(f"steps-{api}", api) for api in ("vulkan", "opencl")]),
    Stage("fashion", 30, [fashion("cnn-3-epochs"), fashion("cnn-3-epochs-again")]),
    Stage("longer", 45, each_model(longer)),
    Stage("reports", 35, [report(api) for api in ("cuda", "vulkan", "opencl")], at_once=3),
]

ALWAYS = {stage.name for stage in MACHINE}  # the other stages rest on them
PARTS = {"first": FIRST, "speed": MACHINE + SPEED_ONLY, "all": FIRST + SPEED_ONLY}

"""What is run: parts of stages of pieces, the most telling ones first. Nothing here runs anything."""
from dataclasses import dataclass, field

# ---- one list of models: name → options of `tutti train`
MODELS = {
    "mlp": ["mlp", "--data", "synthetic:784:10"],
    "cnn": ["cnn", "--data", "synthetic:1x28x28:10"],
}


@dataclass(frozen=True)
class Piece:
    """One process. `{NAME}` in `command` and `env` stands for a fact of run.py (paths, device ids, seconds left)."""
    name: str
    command: list
    limit: int = 20  # seconds
    env: dict = field(default_factory=dict)
    needs: tuple = ("cuda",)  # facts without which it is skipped
    each: str = ""  # "ops", or a test program: one process per op or test, as {each}
    same: str = ""  # pieces with the same word must end with the same state_hash
    near: str = ""  # with the same word: losses within 5 % of the first one's
    fact: str = ""  # what it finds out: "devices", or a word that is a fact where it succeeds
    optional: bool = False  # where its program fails or is missing, it is skipped, not failed
    partial: int = 0  # the exit code that says that something was left out
    again: bool = True  # where it fails, it runs once more with the libraries' logs on


@dataclass(frozen=True)
class Stage:
    """Pieces that share `budget` seconds, and what the stages before left over; `at_once` processes at a time."""
    name: str
    budget: int
    pieces: list
    at_once: int = 1


def tests(program, limit=20, **more):
    """Every test of a program, in a process of its own."""
    return Piece(program, ["{tests}/" + program, "--gtest_filter={each}"], limit, each=program, **more)


def train(name, model, *options, steps=2, limit=25, env=None, **more):
    return Piece(f"{name}-{model}", ["{tutti}", "train", *MODELS[model], "--steps", str(steps), "--device", "{cuda}", "--json",
                                     "--quiet", "--no-eval", *options], limit, env or {}, **more)


def each_model(make):
    return [piece for model in MODELS for piece in make(model)]


def op(name, *options, limit=12):
    return Piece(name, ["{bin}/op_bench", "--device", "{cuda}", "--seconds", "0.4", "--json", *options], limit)


def parity(device, **more):
    return Piece(f"parity-{device}", ["{tutti}", "parity", "--quick", "--ops", "{each}", "--device", "{" + device + "}", "--json"],
                 30, {"TUTTI_PLUGINS": f"{device},reference"}, (device,), each="ops", **more)


def torch(precision, cases, modes, steps=200):
    return Piece(f"torch-{precision}", ["{python}", "{bench}/compare.py", "--python", "{python}", "--device", "{cuda}", "--peer-device", "cuda",
                                        "--rounds", "1", "--steps", str(steps), "--binary", "{tutti}", "--cases", cases, "--precisions", precision,
                                        "--deadline", "{left}", "--json", "--peer-modes", modes], 300, needs=("cuda", "torch"), partial=3, again=False)


def sanitizer(tool, ops):
    return Piece(tool, ["{compute_sanitizer}", "--tool", tool, "--error-exitcode", "9", "{tutti}", "parity", "--quick", "--device", "{cuda}",
                        "--ops", ops], 60, {"TUTTI_PLUGINS": "cuda,reference", "TUTTI_CUDA_LIBRARIES": "0"}, ("cuda", "compute_sanitizer"),
                 again=False)


TORCH = ("import torch\nprint(torch.__version__, 'CUDA', torch.version.cuda, 'cuDNN', torch.backends.cudnn.version())\n"
         "print(torch.cuda.get_device_name(0))\nassert (torch.ones(8, device='cuda') * 2).sum().item() == 16")

MACHINE = Stage("machine", 30, [
    Piece("devices-cuda", ["{tutti}", "devices", "--json"], 15, {"TUTTI_PLUGINS": "cuda"}, (), fact="devices", again=False),
    Piece("nvidia-smi", ["nvidia-smi"], 12, needs=(), optional=True),
    Piece("devices-vulkan", ["{tutti}", "devices", "--json"], 15, {"TUTTI_PLUGINS": "vulkan"}, (), fact="devices", again=False),
    Piece("devices-opencl", ["{tutti}", "devices", "--json"], 15, {"TUTTI_PLUGINS": "opencl"}, (), fact="devices", again=False),
    Piece("torch", ["{python}", "-c", TORCH], 25, needs=(), fact="torch", optional=True, again=False),
    Piece("nvidia-smi-q", ["nvidia-smi", "-q"], 12, needs=(), optional=True),
    Piece("ldconfig", ["ldconfig", "-p"], 5, needs=(), optional=True),
], at_once=5)

VERSIONS = Stage("versions", 8, [Piece("libraries", ["{tests}/cuda_device_test", "--gtest_filter=*SaysWhichLibraries*"], 15)])

GELU = ["--layers", "784,256,10", "--activation", "gelu_tanh"]

FIRST = [
    MACHINE,
    VERSIONS,
    Stage("calls", 65, [tests("library_device_test"), tests("cuda_device_test", 30)], at_once=4),
    Stage("parity", 90, [parity("cuda")], at_once=4),
    # Algorithms are chosen by measuring: equal bits are asked of runs that share a cache, or choose nothing.
    Stage("training", 45, each_model(lambda m: [
        train("cold", m, env={"TUTTI_CACHE": "{work}/cache-" + m}, same=m, near=m),
        train("untuned", m, env={"TUTTI_CUDA_TUNE": "0"}, same=m + "-untuned", near=m),
        train("untuned-no-graph", m, env={"TUTTI_CUDA_TUNE": "0", "TUTTI_CUDA_GRAPH": "0"}, same=m + "-untuned"),
        train("rendered", m, env={"TUTTI_CUDA_LIBRARIES": "0"}, near=m),
        train("bf16", m, "--precision", "bf16", near=m),
        train("f16", m, "--precision", "f16", near=m),
        train("tf32", m, "--precision", "tf32", near=m),
        Piece(f"lockstep-{m}", ["{tutti}", "parity", "--device", "{cuda}", "--model", m, "--steps", "2", "--json"], 40)])
        + [train("gelu", "mlp", *GELU, near="gelu"), train("gelu-tf32", "mlp", *GELU, "--precision", "tf32", near="gelu"),
           train("gelu-bf16", "mlp", *GELU, "--precision", "bf16", near="gelu")], at_once=4),
    Stage("training-2", 20, each_model(lambda m: [
        train("warm", m, env={"TUTTI_CACHE": "{work}/cache-" + m}, same=m),
        train("warm-no-graph", m, env={"TUTTI_CACHE": "{work}/cache-" + m, "TUTTI_CUDA_GRAPH": "0"}, same=m),
        train("warm-streams", m, env={"TUTTI_CACHE": "{work}/cache-" + m, "TUTTI_CUDA_STREAMS": "3"}, same=m)]), at_once=4),
    Stage("traces", 25, each_model(lambda m: [
        train("trace", m, steps=20, env={"TUTTI_TRACE": "kernels,dispatch"}),
        train("trace-bf16", m, "--precision", "bf16", steps=20, env={"TUTTI_TRACE": "kernels,dispatch"})])
        + [train("trace-gelu", "mlp", *GELU, "--precision", "tf32", steps=20, env={"TUTTI_TRACE": "kernels,dispatch"})]),
    Stage("rates", 65, [
        op("copy", "--op", "copy", "--shape", "134217728"),
        op("matmul-f32", "--op", "matmul", "--shape", "4096x4096x4096"),
        op("matmul-bf16", "--op", "matmul", "--shape", "8192x8192x8192", "--dtype", "bf16"),
        op("adam", "--op", "adam", "--shape", "67108864"),
        op("attention-scores-bf16", "--op", "matmul", "--shape", "128x1024x1024x64", "--tb", "--dtype", "bf16"),
        op("attention-values-bf16", "--op", "matmul", "--shape", "128x1024x64x1024", "--dtype", "bf16"),
        op("attention-scores-f32", "--op", "matmul", "--shape", "128x1024x1024x64", "--tb"),
        op("conv", "--op", "conv2d", "--shape", "64,64,56,56,64,3"),
        op("conv-dx", "--op", "conv2d", "--shape", "64,64,56,56,64,3", "--grad", "x"),
        op("conv-dw", "--op", "conv2d", "--shape", "64,64,56,56,64,3", "--grad", "w"),
        op("conv-bf16", "--op", "conv2d", "--shape", "64,64,56,56,64,3", "--dtype", "bf16"),
        op("softmax", "--op", "softmax", "--shape", "16384,4096"),
        Piece("steps", ["{bin}/step_bench", "--benchmark_filter=/{cuda}$", "--benchmark_min_time=0.1", "--benchmark_format=json"], 45),
    ]),
    Stage("torch", 60, [torch("f32", "mlp-1024,cnn-64", "eager,graph"), torch("bf16", "mlp-1024,cnn-64", "eager,graph")]),
    Stage("other-apis", 45, [parity("vulkan"), parity("opencl")], at_once=8),
    Stage("sanitizers", 45, [sanitizer("memcheck", "matmul,softmax,max_pool2d"), sanitizer("racecheck", "matmul,sum,softmax"),
                             sanitizer("synccheck", "matmul,sum,softmax")], at_once=3),
    Stage("profile", 15, [Piece("ncu", ["{ncu}", "--clock-control", "none", "-c", "12", "-k", "regex:tutti_", "{tutti}", "train", *MODELS["mlp"], "--steps",
                                        "2", "--device", "{cuda}", "--quiet", "--no-eval"], 40, {"TUTTI_CUDA_GRAPH": "0"},
                                ("cuda", "ncu"), optional=True, again=False)]),
]

ALL_MODES = "eager,graph,reduce-overhead,compile,graph+channels-last,max-autotune"

SPEED = [
    MACHINE,
    VERSIONS,
    Stage("streams", 40, [Piece(f"steps-streams-{n}", ["{bin}/step_bench", "--benchmark_filter=/{cuda}$", "--benchmark_min_time=0.1",
                                                       "--benchmark_format=json"], 30, {"TUTTI_CUDA_STREAMS": str(n)}) for n in (1, 2, 4)]),
    Stage("torch-f32", 120, [torch("f32", "mlp-1024,mlp-784,mlp-gelu,cnn-64,cnn-256", ALL_MODES)]),
    Stage("torch-bf16", 110, [torch("bf16", "mlp-1024,mlp-gelu,linear-4096,cnn-64,cnn-256", ALL_MODES)]),
    Stage("torch-tf32", 80, [torch("tf32", "mlp-1024,mlp-gelu,cnn-64", ALL_MODES)]),
    Stage("steps", 35, [Piece(f"steps-{api}", ["{bin}/step_bench", "--benchmark_filter=/{" + api + "}$", "--benchmark_min_time=0.1",
                                               "--benchmark_format=json"], 30, needs=(api,)) for api in ("vulkan", "opencl")]),
    Stage("fashion", 40, [Piece("cnn-3-epochs" + again, ["{tutti}", "train", "cnn", "--epochs", "3", "--device", "{cuda}", "--json", "--quiet"], 60,
                                needs=("cuda", "fashion_mnist"), same="cnn-3-epochs") for again in ("", "-again")]),
    Stage("longer", 60, each_model(lambda m: [
        train("long", m, steps=60, same=m + "-long"),
        train("long-again", m, steps=60, same=m + "-long"),
        Piece(f"lockstep-{m}", ["{tutti}", "parity", "--device", "{cuda}", "--model", m, "--steps", "20", "--json"], 60)])),
]

PARTS = {"first": FIRST, "speed": SPEED, "all": FIRST + SPEED[2:]}

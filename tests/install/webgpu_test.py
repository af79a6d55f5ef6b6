"""The WebGPU plugin of examples/plugins, built against an installed Tutti and wgpu-native (scripts/deps.sh --webgpu) by the
commands of its README, and held to the reference. Exit code 77: wgpu-native is not here."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from commands import run  # noqa: E402

PREFIX = pathlib.Path(os.environ["TUTTI_PREFIX"]).resolve()
SOURCE = pathlib.Path(os.environ["TUTTI_SOURCE"]).resolve()
PLUGIN = SOURCE / "examples/plugins/webgpu"
WGPU = SOURCE / ".deps/wgpu"


def missing():
    """Why the plugin cannot be tried here, or None."""
    if not (WGPU / "lib/libwgpu_native.so").exists():
        return "no wgpu-native in .deps/wgpu (scripts/deps.sh --webgpu fetches it)"
    if not pathlib.Path("/usr/include/glslang/SPIRV/GlslangToSpv.h").exists():
        return "glslang's headers are not installed (scripts/deps.sh --vulkan)"
    return None


class WebGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-webgpu-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        shutil.copytree(PLUGIN, cls.folder / "webgpu", ignore=shutil.ignore_patterns("build"))
        cmake = pathlib.Path(os.environ["TUTTI_CMAKE"]).parent
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TUTTI_") and k != "LD_LIBRARY_PATH"}
        cls.env = {**clean, "PATH": f"{PREFIX}/bin:{cmake}:{clean['PATH']}", "TUTTI_CACHE": str(cls.folder / "cache"),
                   "TUTTI_PLUGINS": "webgpu,reference", "WGPU_ROOT": str(WGPU),
                   "TUTTI_PLUGIN_PATH": str(cls.folder / "webgpu/build/plugins")}
        readme = (PLUGIN / "README.md").read_text(encoding="utf-8")
        commands = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)[0]
        print(run("bash", "-euxc", commands, cwd=cls.folder / "webgpu", env=cls.env, timeout=280))

    def tutti(self, *arguments):
        return run("tutti", *arguments, cwd=self.folder, env=self.env, timeout=280)

    def test_no_text_is_rewritten(self):
        for file in PLUGIN.glob("*.cpp"):
            self.assertNotIn("regex", file.read_text(encoding="utf-8"), file)

    def test_ops_agree_with_the_reference(self):
        ops = "add,exp,log1p,pow,sin,tanh,div,remainder,cast,matmul,conv2d,max_pool2d,sum,argmax,gather,scatter_add,random_bits"
        self.tutti("parity", "--device", "webgpu:0", "--ops", ops, "--quick")

    def test_training_in_lockstep(self):
        self.tutti("parity", "--device", "webgpu:0", "--model", "mlp")

    def test_it_trains(self):
        printed = self.tutti("train", "mlp", "--device", "webgpu:0", "--data", "synthetic:16:4:256:64", "--layers", "16,16,4", "--batch",
                             16, "--epochs", 2, "--json", "--quiet")
        self.assertTrue(json.loads(printed)["device"].startswith("webgpu:0"), printed)

    def test_it_keeps_the_promises_of_the_abi(self):
        library = self.env["TUTTI_PLUGIN_PATH"] + "/libtutti_webgpu.so"
        self.tutti("conformance", library, "--only", "negotiation.*,init.*,open.*,arguments.*,run.*,memory.*,product.*")


if __name__ == "__main__":
    if why := missing():
        print(why)
        sys.exit(1 if "wgpu" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)
    unittest.main()

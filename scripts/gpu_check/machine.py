"""The machine that the pack came to: what is unpacked where, which libraries are used, and what is known beforehand."""

import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile

from process import ask

# Where containers put NVIDIA's driver without telling the loader.
DRIVER_FOLDERS = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/local/cuda/lib64"]
VULKAN_FOLDERS = [
    "/etc/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/local/nvidia/share/vulkan/icd.d",
]

# Prints for each library named whether it can be opened here, and the file of libstdc++.
PROBE = """
import ctypes, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
        found[name] = name
    except OSError:
        pass
for line in open("/proc/self/maps"):
    if "/libstdc++.so.6" in line:
        found["libstdc++.so.6"] = line.split(None, 5)[5].strip()
print(json.dumps(found))
"""


def newest_version(path, prefix):
    """The newest version of a symbol set that a binary speaks of: (3, 4, 30) of GLIBCXX_3.4.30."""
    with open(path, "rb") as f:
        found = re.findall(re.escape(prefix.encode()) + rb"_(\d+(?:\.\d+)+)\0", f.read())
    return max((tuple(map(int, v.split(b"."))) for v in found), default=())


def unpack(archive, to):
    os.makedirs(to)
    try:
        with tarfile.open(archive, "r:xz") as tar:
            if hasattr(tarfile, "tar_filter"):
                tar.extractall(to, filter="tar")
            else:
                tar.extractall(to)
    except tarfile.CompressionError:  # a python3 without lzma
        subprocess.run(["tar", "-xJf", archive, "-C", to], check=True)


def opened(names, env):
    """Those of the libraries that this machine has, with the file where it is known."""
    try:
        return json.loads(ask([sys.executable, "-c", PROBE, *names], env, 8))
    except ValueError:
        return {}


def too_old(path, needed):
    """Whether this libstdc++ lacks symbols that the packed programs need."""
    try:
        return any(newest_version(path, prefix) < tuple(version) for prefix, version in needed.items())
    except OSError:
        return True


class Machine:
    """Unpacks into `work` and says how programs are started there."""

    def __init__(self, archive, work):
        self.work, self.home = work, os.path.join(work, "pack")
        unpack(archive, self.home)
        with open(os.path.join(self.home, "pack.json"), encoding="utf-8") as f:
            self.packed = json.load(f)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TUTTI_")}
        wheels = [p for folder in sys.path for p in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib")))]
        self.behind = list(dict.fromkeys(wheels + [p for p in DRIVER_FOLDERS if os.path.isdir(p)]))
        self.set_path([])
        self.spared = self.spare()
        self.set_path([os.path.join(work, "spare")])
        self.env.update(
            TUTTI_PLUGIN_PATH=self.path("lib/tutti/plugins"),
            TUTTI_PROBE_SECONDS="30",
            TUTTI_CACHE=os.path.join(work, "cache"),
            CUDA_CACHE_PATH=os.path.join(work, "driver-cache"),
            TMPDIR=os.path.join(work, "tmp"),  # a piece that is killed leaves nothing on the machine
            PYTHONDONTWRITEBYTECODE="1",
        )
        os.makedirs(self.env["TMPDIR"], exist_ok=True)
        data = os.path.join(os.path.dirname(archive), "data")
        if os.path.isdir(data):
            self.env["TUTTI_DATA_DIR"] = data
        self.name_drivers()

    def path(self, name):
        return os.path.join(self.home, name)

    def set_path(self, first):
        """The machine's own order stays; the packed libraries of the project come first."""
        own = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
        self.env["LD_LIBRARY_PATH"] = ":".join([self.path("lib")] + first + own + self.behind)

    def spare(self):
        """Takes of the packed copies of system libraries those that the machine lacks, or has too old."""
        names = sorted(os.listdir(self.path("spare"))) if os.path.isdir(self.path("spare")) else []
        found = opened(names, self.env)
        folder = os.path.join(self.work, "spare")
        os.makedirs(folder, exist_ok=True)
        taken = []
        for name in names:
            if name in found and not (name == "libstdc++.so.6" and too_old(found[name], self.packed["libstdc++"])):
                continue
            shutil.copy(os.path.join(self.path("spare"), name), folder)
            taken.append(name)
        return taken

    def name_drivers(self):
        """NVIDIA's OpenCL and Vulkan drivers, where containers have the library but no file that names it."""
        found = opened(["libnvidia-opencl.so.1", "libGLX_nvidia.so.0"], self.env)
        if "libnvidia-opencl.so.1" in found and "OCL_ICD_VENDORS" not in self.env and not glob.glob("/etc/OpenCL/vendors/*.icd"):
            self.env["OCL_ICD_VENDORS"] = os.path.join(self.work, "vendors")
            os.makedirs(self.env["OCL_ICD_VENDORS"], exist_ok=True)
            with open(os.path.join(self.env["OCL_ICD_VENDORS"], "nvidia.icd"), "w", encoding="utf-8") as f:
                f.write("libnvidia-opencl.so.1\n")
        if "VK_DRIVER_FILES" in self.env or "VK_ICD_FILENAMES" in self.env:
            return
        named = [f for folder in VULKAN_FOLDERS for f in glob.glob(os.path.join(folder, "*nvidia*.json"))]
        if named and os.path.dirname(named[0]) == VULKAN_FOLDERS[-1]:  # where no loader looks
            self.env["VK_DRIVER_FILES"] = named[0]
        elif not named and "libGLX_nvidia.so.0" in found:
            self.env["VK_DRIVER_FILES"] = os.path.join(self.work, "nvidia_icd.json")
            with open(self.env["VK_DRIVER_FILES"], "w", encoding="utf-8") as f:
                json.dump(
                    {"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}, f
                )

    def facts(self):
        """What pieces may name and need."""
        facts = {
            "tutti": self.path("bin/tutti"),
            "bin": self.path("bin"),
            "tests": self.path("tests"),
            "bench": self.path("share/tutti/bench"),
            "python": sys.executable,
            "work": self.work,
        }
        wanted = (("compute_sanitizer", "compute-sanitizer"), ("ncu", "ncu"), ("debugger", "gdb"), ("debugger", "cuda-gdb"))
        for word, program in wanted:
            found = shutil.which(program) or shutil.which(program, path="/usr/local/cuda/bin")
            if found:
                facts[word] = found
        if "TUTTI_DATA_DIR" in self.env:
            facts["fashion_mnist"] = True
        return facts

    def described(self):
        def first_line(path, start):
            try:
                with open(path, encoding="utf-8") as f:
                    return next((line.split("=", 1)[-1].split(":", 1)[-1].strip() for line in f if line.startswith(start)), "")
            except OSError:
                return ""

        return {
            "system": platform.platform(),
            "name": first_line("/etc/os-release", "PRETTY_NAME"),
            "cpu": first_line("/proc/cpuinfo", "model name"),
            "cpus": os.cpu_count(),
            "libc": " ".join(platform.libc_ver()),
            "python": sys.version.split()[0],
            "python_at": sys.executable,
            "packed": {k: v for k, v in self.packed.items() if k not in ("ops", "models", "tests")},
            "spare_libraries_used": self.spared,
            "library_path": self.env["LD_LIBRARY_PATH"].split(":"),
            "settings": {k: self.env[k] for k in ("VK_DRIVER_FILES", "OCL_ICD_VENDORS") if k in self.env},
        }

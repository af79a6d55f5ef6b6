"""Runs tests in a modified environment: a different CPU name in /proc/cpuinfo (needs root), a single CPU, a different time zone, a
locale with decimal commas, home and temporary folders with spaces in their paths, and a narrow terminal.

    elsewhere.py BUILD             a selection of tests
    elsewhere.py BUILD -L unit …   the tests that ctest selects by these arguments (-LE peers: all but those labelled peers)
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CPU = "Elsewhere(R) Core 9000 @ 9.99GHz"
LANGUAGE = "de_DE.UTF-8"
# Scripts of the command line and of Python; of GoogleTest's programs those with the label unit.
SCRIPTS = ("Cli.basics", "Cli.data", "Cli.devices", "Cli.inspect", "Cli.run_file", "Cli.report", "Cli.top", "Cli.trouble", "Cli.doctor",
           "Cli.limits", "Python.package", "Python.arrays", "Python.docs.NumPy", "Python.locale")


# These compile kernels for software devices, with cold caches on one CPU: minutes.
SLOW = ("test_codegen", "test_tasks", "test_trainer", "test_elementwise", "test_indexing", "rendered_test", "opencl_driver_test",
        "vulkan_test")


def say(text):
    print(f"elsewhere: {text}", flush=True)


def rename_cpu(folder):
    """Starts this program anew where /proc/cpuinfo names another CPU; says so where that cannot be done."""
    if "ELSEWHERE_CPU" in os.environ:
        say(f"the CPU is {CPU}")
        return
    names = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fake = folder / "cpuinfo"
    fake.write_text("".join(f"model name\t: {CPU}\n" if line.startswith("model name") else line
                            for line in names.splitlines(keepends=True)), encoding="utf-8")
    mount = f'mount --bind "{fake}" /proc/cpuinfo'
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, check=False).returncode != 0:
        say("the CPU keeps its name: that takes root and `unshare -m`")
        return
    command = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, *sys.argv]
    result = subprocess.run(command, env={**os.environ, "ELSEWHERE_CPU": "1"}, check=False).returncode
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(result)


def locale(folder):
    """The variables of a locale with decimal commas, made in `folder`; of the plain one where its sources are missing."""
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / LANGUAGE], capture_output=True, check=False)
    if made.returncode > 1 or not (folder / LANGUAGE).is_dir():  # 1: with warnings
        say("the locale stays C.UTF-8: de_DE cannot be made (package locales)")
        return {"LC_ALL": "C.UTF-8"}
    return {"LC_ALL": LANGUAGE, "LANG": LANGUAGE, "LOCPATH": str(folder)}


def environment(folder):
    home, temporary = folder / "Jörg Müller" / "heim", folder / "temporary files"
    for made in (home, temporary):
        made.mkdir(parents=True)
    return {**os.environ, **locale(folder), "HOME": str(home), "TMPDIR": str(temporary), "TZ": "Asia/Kathmandu", "COLUMNS": "40",
            "LINES": "12"}


def check_names(listed):
    """Ends with an error if SCRIPTS or SLOW names a test that the build does not have (Python's may be off)."""
    names = {test["name"] for test in listed} | {pathlib.Path(test["command"][0]).name for test in listed if test.get("command")}
    python = any(name.startswith("Python.") for name in names)
    if lost := [n for n in (*SCRIPTS, *SLOW) if n not in names and (python or not n.startswith("Python."))]:
        sys.exit(f"elsewhere: no such test: {', '.join(lost)}; update the lists at the head of {__file__}")


def tests_of(build):
    """(name, command, environment, folder) of the tests to run: each program of GoogleTest's once, with all of its tests."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                                       check=True).stdout)["tests"]
    check_names(listed)
    programs = set()
    for test in listed:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        command = test.get("command", [])
        one_of_many = [a for a in command if a.startswith("--gtest_filter")]
        if one_of_many and "unit" in properties.get("LABELS", []):
            if command[0] not in programs and pathlib.Path(command[0]).name not in SLOW:
                programs.add(command[0])
                yield pathlib.Path(command[0]).name, [command[0], "--gtest_brief=1"], [], properties["WORKING_DIRECTORY"]
        elif test["name"] in SCRIPTS:
            yield test["name"], command, properties.get("ENVIRONMENT", []), properties["WORKING_DIRECTORY"]


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-elsewhere-"))
    rename_cpu(folder)
    build, *arguments = sys.argv[1:]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    elsewhere = environment(folder)
    failed, count, skipped = [], 0, 0
    try:
        if arguments:
            return subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", *arguments], env=elsewhere, check=False).returncode
        for name, command, settings, where in tests_of(build):
            result = subprocess.run(command, env={**elsewhere, **dict(s.split("=", 1) for s in settings)}, cwd=where, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            count += 1
            skipped += result.returncode == 77
            say(f"{name}: { {0: 'passed', 77: 'skipped'}.get(result.returncode, f'ended with {result.returncode}') }")
            if result.returncode not in (0, 77):
                failed.append(name)
                print(result.stdout, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"{count - len(failed) - skipped} of {count} passed, {skipped} skipped" + (f"; not: {', '.join(failed)}" if failed else ""))
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

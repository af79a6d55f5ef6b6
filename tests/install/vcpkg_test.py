"""The vcpkg port, over stand-ins of vcpkg's functions, which install from a build tree: vcpkg_test.py BUILD. What vcpkg's own functions do
stands in its documentation; vcpkg itself and its ports are not needed."""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from commands import run  # noqa: E402

PORT = ROOT / "scripts/packages/vcpkg/tutti"
BUILD = pathlib.Path(sys.argv.pop()).resolve()

# Features become options; the tree of the tests is installed in the place of one that vcpkg would configure.
STAND_INS = r"""
cmake_minimum_required(VERSION 3.22)
set(VCPKG_BUILD_TYPE release)
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(options "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    if(feature IN_LIST FEATURES)
      list(APPEND options -D${option}=ON)
    else()
      list(APPEND options -D${option}=OFF)
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  file(READ "${arg_SOURCE_PATH}/CMakeLists.txt" text)
  if(NOT text MATCHES "project\\(Tutti" OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "not the project, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  message(STATUS "options ${arg_OPTIONS}")
endfunction()
function(vcpkg_cmake_install)
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${CURRENT_PACKAGES_DIR}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*")
  if(NOT files)
    message(FATAL_ERROR "nothing in ${arg_CONFIG_PATH}")
  endif()
  file(COPY ${files} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/cmake")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/share/${PORT}/*.cmake")
  foreach(file IN LISTS files)  # one folder nearer to the prefix than before
    file(READ "${file}" text)
    string(REPLACE "LIST_DIR}/../../../\"" "LIST_DIR}/../../\"" text "${text}")
    string(REPLACE "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\n" "set(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\")\n"
           text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(READ "${arg_FILE_LIST}" text)
  file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright" "${text}")
endfunction()
include("${CURRENT_PORT_DIR}/portfile.cmake")
"""


class Port(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.package = pathlib.Path(folder.name), pathlib.Path(folder.name, "package")
        (cls.folder / "port.cmake").write_text(STAND_INS)
        cls.printed = run("cmake", f"-DBUILD={BUILD}", f"-DCURRENT_PACKAGES_DIR={cls.package}", f"-DCURRENT_PORT_DIR={PORT}", "-DPORT=tutti",
                          "-DFEATURES=core;cpu", "-P", cls.folder / "port.cmake")
        cls.env = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_", "LD_"))}

    def test_its_manifest_agrees_with_the_project_and_the_portfile(self):
        manifest = json.loads((PORT / "vcpkg.json").read_text())
        self.assertEqual(manifest["version"], re.search(r"project\(Tutti VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1])
        checked = re.search(r"FEATURES ([^)]+)\)", (PORT / "portfile.cmake").read_text())[1].split()
        self.assertEqual(set(checked[::2]), set(manifest["features"]))
        self.assertLessEqual(set(manifest["default-features"]), set(manifest["features"]))

    def test_its_options_are_the_project_s(self):
        options = dict(re.findall(r"-D(\w+)=(\w+)", self.printed))
        known = set(re.findall(r"(?m)^(TUTTI_\w+):", (BUILD / "CMakeCache.txt").read_text()))
        self.assertLessEqual({o for o in options if o.startswith("TUTTI_")}, known)
        plugin = "TUTTI_PLUGIN_{}".format
        self.assertEqual((options[plugin("CPU")], options[plugin("OPENCL")]), ("ON", "OFF"))
        own = {plugin(p.parent.name.upper()) for p in (ROOT / "plugins").glob("*/*.json")}
        own = (own | {plugin("MPI")}) & known
        self.assertLessEqual(own, set(options))  # a new plugin is a feature or off, not found by chance

    def test_programs_link_what_it_lays_down(self):
        self.assertTrue(list((self.package / "lib/tutti/plugins").glob("libtutti_*.so")))
        run("cmake", "-S", ROOT / "tests/install/consumer", "-B", self.folder / "consumer", "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.package}", env=self.env)
        run("cmake", "--build", self.folder / "consumer", env=self.env)
        run(self.folder / "consumer/consumer", env=self.env)  # trains on a device that the library finds beside itself
        cache = (self.folder / "consumer/CMakeCache.txt").read_text()
        self.assertIn(f"Tutti_DIR:PATH={self.package}/share/tutti", cache)

    def test_new_plugins_are_made_from_its_template(self):
        run(self.package / "tools/tutti/tutti-new-plugin", "mine", self.folder / "mine", env=self.env)
        self.assertTrue((self.folder / "mine/mine.json").exists())

    def test_what_belongs_to_the_command_is_left_out(self):
        self.assertEqual([str(p) for p in self.package.rglob("*") if p.name in ("bin", "man1", "_tutti", "bench")], [])
        self.assertTrue((self.package / "share/tutti/copyright").exists())


if __name__ == "__main__":
    unittest.main()

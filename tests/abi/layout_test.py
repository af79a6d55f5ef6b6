"""The header's layout is the recorded one, and scripts/abi-layout.py sees whatever could break a plugin."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADER = ROOT / "core/abi/tutti_plugin.h"
LAYOUT = ROOT / "core/abi/layout-1.json"

# (text of the header, what becomes of it, what must be said)
BREAKS = [
    ("uint32_t role, dtype, rank, unused;", "uint32_t dtype, role, rank, unused;",
     "TuttiValue.role: moved from offset 0 to 4"),
    ("  uint32_t before, after;", "  uint64_t before;\n  uint32_t after;", "TuttiState.before: resized from 4 to 8 bytes"),
    ("uint16_t code, dtype;", "int16_t code, dtype;", "TuttiInstr.code: changed its type from 'uint16_t' to 'int16_t'"),
    ("  uint32_t node, unused;\n", "  uint32_t node, line;\n",
     "TuttiError.unused: removed; its bytes at offset 12 are reused by 'line'"),
    ("char message[1008];", "char message[2000];", "TuttiError.message: resized from 1008 to 2000 bytes"),
    ("  uint32_t kind, first, count, unused;", "  uint32_t kind, first, count, unused, flags;",
     "TuttiGroup.flags: added to a struct that is frozen"),
    ("  uint32_t size, flags;\n  uint64_t tuning_bytes;", "  uint32_t size, flags;\n  uint64_t limit;\n  uint64_t tuning_bytes;",
     "TuttiOptions.limit: added at offset 8, inside the recorded 16 bytes"),
    ("  void (*shutdown)(void);\n", "", "TuttiPlugin.shutdown: removed"),
    ("  int32_t (*prepare)(TuttiExecutable*, TuttiError*);", "  int32_t (*warm)(TuttiExecutable*, TuttiError*);\n"
     "  int32_t (*prepare)(TuttiExecutable*, TuttiError*);", "TuttiPlugin.prepare: moved from offset 88 to 96"),
    ("int32_t (*prepare)(TuttiExecutable*, TuttiError*);", "int32_t (*prepare)(TuttiExecutable*, uint64_t, TuttiError*);",
     "TuttiPlugin.prepare: changed its type"),
    ("typedef struct { /* [grows] */\n  uint32_t size, numerics;", "typedef struct {\n  uint32_t size, numerics;",
     "TuttiProgram: is no longer marked [grows]"),
    ("TUTTI_TIMEOUT = 6,", "TUTTI_TIMEOUT = 8,", "TUTTI_TIMEOUT: changed from 6 to 8"),
    ("  TUTTI_X_FLOOR = 22,\n", "", "TUTTI_X_FLOOR: removed"),
    ("  TUTTI_X_FLOOR = 22,\n", "  TUTTI_X_ROUND = 22,\n", "TUTTI_X_FLOOR: removed; its value 22 is reused by TUTTI_X_ROUND"),
    ("TUTTI_X_CAST = 33,\n", "TUTTI_X_CAST = 33,\n  TUTTI_X_TAN = 20,\n", "TUTTI_X_TAN: its value 20 is not behind"),
    ("#define TUTTI_NONE 0xffffffffu", "#define TUTTI_NONE 0xfffffffeu", "TUTTI_NONE: changed from"),
    ("#define TUTTI_ABI 1u", "#define TUTTI_ABI 0u", "TUTTI_ABI: changed from 1 to 0"),
    ("uint32_t host_max, uint32_t mine[2]);\n\n/* ----", "uint32_t host_max, uint64_t mine[2]);\n\n/* ----", "TuttiNegotiate: changed"),
]
GROWS = [
    ("  uint64_t tuning_bytes;", "  uint64_t limit;", "TuttiOptions.limit: added at the end"),
    ("  void (*release)(TuttiExecutable*); /* state stays with the session */", "  int32_t (*trim)(TuttiSession *);",
     "TuttiPlugin.trim: added at the end"),
    ("  TUTTI_X_FMOD = 34", "  ,TUTTI_X_TAN = 35", "TUTTI_X_TAN: added with value 35"),
]


class Layout(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-abi-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_script(self, *args):
        done = subprocess.run([sys.executable, ROOT / "scripts/abi-layout.py", *map(str, args)], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def changed(self, old, new):
        text = HEADER.read_text()
        self.assertEqual(text.count(old), 1, old)
        path = self.folder / "changed.h"
        path.write_text(text.replace(old, new))
        return path

    def test_the_header_is_the_recorded_one(self):
        self.assertEqual(self.run_script()[0], 0, self.run_script()[1])

    def test_it_keeps_all_of_the_header_that_the_recorded_plugin_includes(self):
        layout = self.folder / "v1.json"
        self.assertEqual(self.run_script("--header", HERE / "tutti_plugin_v1.h", "--layout", layout, "--record")[0], 0)
        text = self.run_script("--layout", layout)[1]
        self.assertNotIn("breaks the ABI", text)

    def test_breaks_are_named(self):
        for old, new, message in BREAKS:
            with self.subTest(message=message):
                header = self.changed(old, new)
                code, text = self.run_script("--header", header)
                self.assertEqual(code, 1, text)
                self.assertIn("breaks the ABI: " + message, text)

    def test_a_break_is_not_recorded(self):
        layout = self.folder / "layout.json"
        shutil.copy(LAYOUT, layout)
        code, _ = self.run_script("--header", self.changed(*BREAKS[0][:2]), "--layout", layout, "--record")
        self.assertEqual((code, layout.read_text()), (1, LAYOUT.read_text()))

    def test_growth_must_be_recorded_and_is_then_kept(self):
        for old, more, message in GROWS:
            with self.subTest(message=message):
                header = self.changed(old, f"{old}\n{more}")
                layout = self.folder / "layout.json"
                shutil.copy(LAYOUT, layout)
                code, text = self.run_script("--header", header, "--layout", layout)
                self.assertEqual(code, 1)
                self.assertIn("not recorded: " + message, text)
                self.assertNotIn("breaks", text.replace("0 breaks", ""))
                self.assertEqual(self.run_script("--header", header, "--layout", layout, "--record")[0], 0)
                self.assertEqual(self.run_script("--header", header, "--layout", layout)[0], 0)
                code, text = self.run_script("--layout", layout)
                self.assertEqual(code, 1, "what was recorded must not go again")
                self.assertIn("removed", text)

    def test_what_cannot_be_read(self):
        header = self.folder / "broken.h"
        header.write_text("this is no C\n")
        self.assertEqual(self.run_script("--header", header)[0], 2)
        self.assertEqual(self.run_script("--layout", self.folder / "none.json")[0], 2)


if __name__ == "__main__":
    unittest.main()

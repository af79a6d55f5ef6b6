#include "language.h"

using tutti::sdk::Language;

const Language& glsl_for_naga() {
  static const Language language = [] {
    Language l = Language::glsl();
    l.name = "GLSL for naga";
    // A dispatch may not bind one buffer as both read-only and writable, and the arena is one buffer.
    l.read_only = "";
    // Two variables may not share a binding, so four adjacent elements are accessed individually.
    l.views = {};
    l.neighbours =
        "#define {name}4(i) {type}4({name}_[4 * (i)], {name}_[4 * (i) + 1], {name}_[4 * (i) + 2], {name}_[4 * (i) + "
        "3])\n"
        "#define {name}4_set(i, v) do {{ {type}4 v_ = (v); idx at_ = 4 * (i); {name}_[at_] = v_.x; {name}_[at_ + 1] = "
        "v_.y; "
        "{name}_[at_ + 2] = v_.z; {name}_[at_ + 3] = v_.w; }} while (false)\n";
    l.texels = "";
    // naga translates != to a comparison that is false for NaN.
    l.unequal = "!({a} == {b})";
    // naga drops NoContraction. kept_() never changes the value, because a dispatch has fewer than 65536 groups, but
    // compilers cannot know that.
    l.kept = "kept_({value})";
    l.words.set("PRECISE",
                "float kept_(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ (gl_NumWorkGroups.x >> 16)); }\n");
    l.words.set("MUL_HI", R"(uint MUL_HI(uint a, uint b) {
  uint al = a & 0xffffu, ah = a >> 16, bl = b & 0xffffu, bh = b >> 16;
  uint m = ah * bl + ((al * bl) >> 16), n = al * bh + (m & 0xffffu);
  return ah * bh + (m >> 16) + (n >> 16);
}
)");
    return l;
  }();
  return language;
}

#include "tests/softcuda/decode.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace tutti::softcuda {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw InvalidPtx(what); }

std::string trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blank) - first + 1));
}

/// Parts of a text between separators that are not within brackets.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t k = 0; k <= text.size(); ++k) {
    char c = k < text.size() ? text[k] : separator;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth || (c != separator && k < text.size())) continue;
    parts.push_back(trimmed(text.substr(begin, k - begin)));
    begin = k + 1;
  }
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

/// "{a, b}" as its elements, another operand as the only one.
std::vector<std::string> elements(const std::string& operand) {
  if (operand.empty() || operand.front() != '{') return {operand};
  return split(std::string_view(operand).substr(1, operand.size() - 2), ',');
}

bool has_part(std::string_view opcode, std::string_view part) {
  std::vector<std::string> parts = split(opcode, '.');
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

const std::map<std::string, Special, std::less<>>& specials() {
  static const auto& all = *new std::map<std::string, Special, std::less<>>{
      {"%tid.x", Special::tid_x},       {"%tid.y", Special::tid_y},       {"%tid.z", Special::tid_z},
      {"%ntid.x", Special::ntid_x},     {"%ntid.y", Special::ntid_y},     {"%ntid.z", Special::ntid_z},
      {"%ctaid.x", Special::ctaid_x},   {"%ctaid.y", Special::ctaid_y},   {"%ctaid.z", Special::ctaid_z},
      {"%nctaid.x", Special::nctaid_x}, {"%nctaid.y", Special::nctaid_y}, {"%nctaid.z", Special::nctaid_z},
      {"%laneid", Special::laneid}};
  return all;
}

/// Where in an instruction the sources of a plain opcode go.
int& source_of(Instruction& i, size_t k) {
  switch (k) {
    case 1: return i.a;
    case 2: return i.b;
    case 3: return i.c;
    default: return i.e;
  }
}

}  // namespace

Type type_named(std::string_view name) {
  static const auto& all = *new std::map<std::string, Type, std::less<>>{
      {"pred", Type::pred}, {"b8", Type::b8},   {"b16", Type::b16}, {"b32", Type::b32}, {"b64", Type::b64},
      {"u8", Type::u8},     {"u16", Type::u16}, {"u32", Type::u32}, {"u64", Type::u64}, {"s8", Type::s8},
      {"s16", Type::s16},   {"s32", Type::s32}, {"s64", Type::s64}, {"f32", Type::f32}, {"f64", Type::f64}};
  auto at = all.find(name);
  return at == all.end() ? Type::none : at->second;
}

unsigned bytes_of(Type type) {
  switch (type) {
    case Type::b8:
    case Type::u8:
    case Type::s8: return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16: return 2;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64: return 8;
    default: return 4;
  }
}

int Decoder::allot(bool wide) {
  int slot = function_.slots;
  function_.slots += wide ? 2 : 1;
  return slot;
}

void Decoder::declare(const std::string& name, Type type, int count) {
  if (type == Type::none) refuse("registers of an unknown type: " + name);
  bool wide = is_wide(type);
  if (count < 0) registers_[name] = {allot(wide), wide};
  for (int k = 0; k < count; ++k) registers_[name + std::to_string(k)] = {allot(wide), wide};
}

const Decoder::Register& Decoder::find(const std::string& name) {
  auto at = registers_.find(name);
  if (at != registers_.end()) return at->second;
  auto special = specials().find(name);
  if (special == specials().end()) refuse("an unknown register " + name);
  int slot = allot(false);
  function_.specials.push_back({special->second, slot});
  return registers_[name] = {slot, false};
}

int Decoder::destination(const std::string& name, Type type) {
  const Register& r = find(name);
  if (r.wide != is_wide(type)) refuse("the register " + name + " has another width than the instruction");
  return r.slot;
}

int Decoder::constant(uint64_t bits, bool wide) {
  auto [at, fresh] = constants_.try_emplace({bits, wide}, 0);
  if (fresh) {
    at->second = allot(wide);
    function_.constants.push_back({at->second, wide, bits});
  }
  return at->second;
}

uint64_t Decoder::immediate(const std::string& text) const {
  auto number = [&](size_t skip, int base) {
    uint64_t x = 0;
    auto [end, error] = std::from_chars(text.data() + skip, text.data() + text.size(), x, base);
    if (error != std::errc() || end != text.data() + text.size()) refuse("an unknown operand " + text);
    return x;
  };
  std::string_view prefix = std::string_view(text).substr(0, 2);
  if (prefix == "0f" || prefix == "0F" || prefix == "0d" || prefix == "0D" || prefix == "0x" || prefix == "0X")
    return number(2, 16);
  if (text[0] == '-') return 0 - number(1, 10);
  if (std::isdigit(static_cast<unsigned char>(text[0]))) return number(0, 10);
  auto at = symbols_.find(text);
  if (at == symbols_.end()) refuse("an unknown operand " + text);
  return at->second;
}

int Decoder::source(const std::string& text, Type type) {
  if (text.empty()) refuse("an operand is missing");
  if (text[0] == '%') return destination(text, type);
  uint64_t bits = immediate(text);
  return constant(is_wide(type) ? bits : static_cast<uint32_t>(bits), is_wide(type));
}

void Decoder::address(const std::string& text, Instruction& i) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') refuse("an unknown address " + text);
  std::string base = text.substr(1, text.size() - 2);
  if (size_t plus = base.find('+'); plus != std::string::npos) {
    i.offset = static_cast<int64_t>(immediate(base.substr(plus + 1)));
    base.resize(plus);
  }
  if (base[0] == '%') {
    const Register& r = find(base);
    i.base = r.slot;
    i.base_wide = r.wide;
  } else {
    i.offset += static_cast<int64_t>(immediate(base));
  }
}

void Decoder::instruction(std::string_view text) {
  Instruction i;
  std::string rest = trimmed(text);
  text_ = rest;
  std::replace(text_.begin(), text_.end(), '\t', ' ');
  if (rest[0] == '@') {
    size_t blank = rest.find_first_of(" \t");
    i.negated = rest[1] == '!';
    size_t skip = i.negated ? 2 : 1;
    i.guard = destination(rest.substr(skip, blank - skip), Type::pred);
    rest = trimmed(std::string_view(rest).substr(blank));
  }
  size_t blank = rest.find_first_of(" \t");
  std::string opcode = rest.substr(0, blank);
  Operands operands = blank == std::string::npos ? Operands() : split(std::string_view(rest).substr(blank), ',');
  if (!special(opcode, operands, i)) {
    auto at = opcodes().find(opcode);
    if (at == opcodes().end()) refuse("the instruction " + opcode + " is not implemented");
    const std::vector<Type>& types = at->second.operands;
    if (types.size() != operands.size()) refuse(opcode + " takes " + std::to_string(types.size()) + " operands");
    i.run = at->second.run;
    i.rounding = at->second.rounding;
    i.d = destination(operands[0], types[0]);
    for (size_t k = 1; k < types.size(); ++k) source_of(i, k) = source(operands[k], types[k]);
  }
  function_.code.push_back(i);
  function_.texts.push_back(text_);
}

bool Decoder::special(std::string_view opcode, const Operands& operands, Instruction& i) {
  auto need = [&](size_t n) {
    if (operands.size() != n) refuse(std::string(opcode) + " takes " + std::to_string(n) + " operands");
  };
  if (opcode == "ret" || opcode == "exit") {
    i.flow = Flow::exit;
  } else if (opcode == "bra" || opcode == "bra.uni") {
    need(1);
    branch(operands[0], i);
  } else if (opcode == "bar.sync" || opcode == "barrier.sync") {
    need(1);
    if (operands[0] != "0") refuse("only barrier 0 is implemented, not " + operands[0]);
    i.flow = Flow::barrier;
  } else if (opcode == "shfl.sync.down.b32" || opcode == "shfl.sync.bfly.b32") {
    need(5);
    i.run = opcode == "shfl.sync.down.b32" ? shuffle_down : shuffle_butterfly;
    shuffle(operands, i);
  } else if (opcode.starts_with("mma.")) {
    need(4);
    i.run = product_handler(opcode);
    if (!i.run) refuse("the instruction " + std::string(opcode) + " is not implemented");
    product(operands, i);
  } else if (opcode.starts_with("ldmatrix.")) {
    need(2);
    matrices(opcode, operands, i);
  } else if (opcode == "cp.async.wait_all") {
    need(0);
    i.run = copies_wait;
  } else if (opcode.starts_with("cp.async.")) {
    need(4);
    copy(opcode, operands, i);
  } else if (opcode == "mov.b32" && (operands.at(0)[0] == '{' || operands.at(1)[0] == '{')) {
    need(2);
    move_halves(operands, i);
  } else if (opcode.starts_with("ld.param.")) {
    need(2);
    load_parameter(opcode, operands, i);
  } else if (opcode.starts_with("ld.") || opcode.starts_with("st.")) {
    need(2);
    access(opcode, operands, i);
  } else {
    return false;
  }
  return true;
}

void Decoder::branch(const std::string& to, Instruction& i) {
  i.flow = Flow::branch;
  jumps_.emplace_back(function_.code.size(), to);
}

void Decoder::move_halves(const Operands& operands, Instruction& i) {
  bool pack = operands[1][0] == '{';
  std::vector<std::string> halves = elements(operands[pack ? 1 : 0]);
  if (halves.size() != 2) refuse("mov.b32 of other than two halves");
  for (size_t k = 0; k < 2; ++k) i.data[k] = pack ? source(halves[k], Type::b16) : destination(halves[k], Type::b16);
  if (pack)
    i.d = destination(operands[0], Type::b32);
  else
    i.a = source(operands[1], Type::b32);
  i.run = pack ? pack_halves : unpack_halves;
}

void Decoder::shuffle(const Operands& operands, Instruction& i) {
  std::vector<std::string> results = split(operands[0], '|');
  i.d = destination(results.at(0), Type::b32);
  if (results.size() > 1) i.d2 = destination(results[1], Type::pred);
  i.a = source(operands[1], Type::b32);
  i.b = source(operands[2], Type::u32);
  i.c = source(operands[3], Type::u32);
  i.e = source(operands[4], Type::b32);
}

void Decoder::product(const Operands& operands, Instruction& i) {
  constexpr std::array<size_t, 4> counts = {4, 4, 2, 4};
  size_t at = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    std::vector<std::string> registers = elements(operands[k]);
    if (registers.size() != counts[k]) refuse("mma with fragments of another size");
    for (const std::string& r : registers) i.matrix[at++] = k == 0 ? destination(r, Type::b32) : source(r, Type::b32);
  }
}

void Decoder::matrices(std::string_view opcode, const Operands& operands, Instruction& i) {
  i.run = matrices_handler(opcode);
  if (!i.run) refuse("the instruction " + std::string(opcode) + " is not implemented");
  std::vector<std::string> registers = elements(operands[0]);
  if (registers.size() != i.data.size()) refuse(std::string(opcode) + " loads four matrices");
  for (size_t k = 0; k < registers.size(); ++k) i.data[k] = destination(registers[k], Type::b32);
  i.space = Space::shared;
  address(operands[1], i);
}

/// Two instructions: one for the source, one for the target.
void Decoder::copy(std::string_view opcode, const Operands& operands, Instruction& i) {
  uint64_t bytes = immediate(operands[2]);
  bool four = opcode == "cp.async.ca.shared.global" && bytes == 4;
  if (!four && !(opcode == "cp.async.cg.shared.global" && bytes == 16))
    refuse("the instruction " + std::string(opcode) + " of " + operands[2] + " bytes is not implemented");
  i.count = static_cast<uint8_t>(bytes);
  Instruction from = i;
  address(operands[1], from);
  from.b = source(operands[3], Type::u32);
  from.run = copy_source;
  function_.code.push_back(from);
  function_.texts.push_back(text_);
  i.space = Space::shared;
  address(operands[0], i);
  i.run = copy_begin;
}

void Decoder::load_parameter(std::string_view opcode, const Operands& operands, Instruction& i) {
  Type type = type_named(opcode.substr(std::string_view("ld.param.").size()));
  i.run = parameter_handler(type);
  if (type == Type::none || !i.run) refuse(std::string(opcode) + " is not implemented");
  i.d = destination(operands[0], type);
  std::string name = operands[1].substr(1, operands[1].size() - 2);
  auto at = std::find_if(function_.parameters.begin(), function_.parameters.end(),
                         [&](const Parameter& p) { return p.name == name; });
  if (at == function_.parameters.end()) refuse("an unknown parameter " + name);
  i.offset = at->offset;
}

void Decoder::access(std::string_view opcode, const Operands& operands, Instruction& i) {
  bool store = opcode.starts_with("st.");
  std::string_view space = opcode.substr(3, opcode.find('.', 3) - 3);
  if (space == "shared")
    i.space = Space::shared;
  else if (space == "local")
    i.space = Space::local;
  else if (space != "global")
    refuse("the instruction " + std::string(opcode) + " is not implemented");
  for (const std::string& part : split(opcode.substr(3), '.'))
    if (part != space && part != "nc" && part != "v2" && part != "v4" && type_named(part) == Type::none)
      refuse("the instruction " + std::string(opcode) + " is not implemented");
  Type type = type_named(opcode.substr(opcode.rfind('.') + 1));
  std::vector<std::string> data = elements(operands[store ? 1 : 0]);
  size_t count = has_part(opcode, "v2") ? 2 : has_part(opcode, "v4") ? 4 : 1;
  if (data.size() != count) refuse(std::string(opcode) + " with " + std::to_string(data.size()) + " elements");
  address(operands[store ? 0 : 1], i);
  bool wide = data[0][0] == '%' ? find(data[0]).wide : is_wide(type);
  for (size_t k = 0; k < count; ++k)
    i.data[k] =
        store ? source(data[k], wide ? Type::b64 : Type::b32) : destination(data[k], wide ? Type::b64 : Type::b32);
  i.count = static_cast<uint8_t>(count);
  i.run = access_handler(store, type, wide);
  if (!i.run) refuse("the instruction " + std::string(opcode) + " is not implemented");
}

void Decoder::label(const std::string& name) { labels_[name] = static_cast<int>(function_.code.size()); }

void Decoder::finish() {
  // A function ends as if by ret; a label may stand there.
  if (function_.code.empty() || function_.code.back().flow != Flow::exit || function_.code.back().guard >= 0)
    instruction("ret");
  function_.joins.assign(function_.code.size() + 1, false);
  for (auto& [from, to] : jumps_) {
    auto at = labels_.find(to);
    if (at == labels_.end()) refuse("an unknown label " + to);
    if (at->second >= static_cast<int>(function_.code.size())) refuse("a label behind the last instruction: " + to);
    function_.code[from].target = at->second;
    function_.joins[static_cast<size_t>(at->second)] = true;
    function_.joins[from + 1] = true;
  }
  for (size_t k = 0; k < function_.code.size(); ++k)
    if (function_.code[k].flow == Flow::barrier) function_.joins[k] = function_.joins[k + 1] = true;
}

}  // namespace tutti::softcuda

#include "sdk/rendered/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "core/os/little_memory.h"
#include "kernels/codegen/kernel.h"
#include "sdk/shortage.h"

namespace tutti::sdk {
namespace {

using codegen::Kernel;
using Groups = std::array<uint32_t, 3>;

Error broken(const std::string& what, const std::string& where) { return {Code::internal, what, "check " + where}; }

/// Driver memory (RAII).
class Block {
 public:
  Block(Driver& driver, uint64_t bytes)
      : driver_(driver), bytes_(bytes), id_(driver.allocate(bytes, "the driver's self check")) {}
  ~Block() {
    try {
      driver_.release(id_);
    } catch (const std::exception&) {  // lost device, reported before
    }
  }
  Block(const Block&) = delete;

  Range range() const { return {id_, 0, bytes_}; }
  Range range(uint64_t offset, uint64_t bytes) const { return {id_, offset, bytes}; }
  template <class T>
  void write(const std::vector<T>& all, uint64_t offset = 0) {
    driver_.write({id_, offset, all.size() * sizeof(T)}, all.data());
  }
  template <class T>
  std::vector<T> read(size_t count, uint64_t offset = 0) {
    std::vector<T> all(count);
    driver_.read({id_, offset, count * sizeof(T)}, all.data());
    return all;
  }

 private:
  Driver& driver_;
  uint64_t bytes_;
  MemoryId id_;
};

KernelId built(Driver& driver, const KernelSource& source) {
  std::vector<std::byte> cache;
  return driver.build(source, cache);
}

void run(Driver& driver, KernelId kernel, std::vector<Range> buffers, const Groups& groups) {
  Launch launch{kernel, std::move(buffers), groups, "self check"};
  SequenceId sequence = driver.record({&launch, 1}, nullptr);
  driver.wait(driver.submit(sequence), ~0ull);
  driver.forget(sequence);
}

// ---- groups

void check_groups(Driver& driver) {
  Kernel k = codegen::portable("count_items");
  k.set("NX", 1);
  k.set("NY", 1);
  k.local[0] = std::min(k.local[0], driver.traits().max_local);
  KernelSource source = codegen::render(driver.traits(), k);
  KernelId kernel = built(driver, source);
  uint64_t local = source.local[0];
  // Few and many groups along each dimension; 1025, 5000 and 70000 groups exceed the sizes that drivers handle in one
  // piece.
  for (Groups groups : {Groups{1, 1, 1},
                        {7, 5, 3},
                        {1025, 1, 1},
                        {5000, 1, 1},
                        {1, 1025, 1},
                        {1, 1, 1025},
                        {3, 2, 1400},
                        {2, 1400, 3},
                        {35000, 2, 1}}) {
    uint64_t items = local * groups[0] * groups[1] * groups[2];
    constexpr uint64_t behind = 64;
    Block y(driver, (items + behind) * 4), numbers(driver, 8);
    y.write(std::vector<int32_t>(items + behind));
    numbers.write(std::vector<uint32_t>{groups[0], groups[1]});
    run(driver, kernel, {y.range(), numbers.range()}, groups);
    std::vector<int32_t> got = y.read<int32_t>(items + behind);
    for (uint64_t e = 0; e < got.size(); ++e) {
      int32_t once = static_cast<int32_t>(e) + 1;
      if (got[e] == (e < items ? once : 0)) continue;
      uint64_t group = e / local, row = group / groups[0];
      std::string times = got[e] % once == 0 ? fmt::format("ran {} times", got[e] / once) : "wrote a wrong value";
      throw broken(
          fmt::format("a launch of {} x {} x {} groups: work-item {} of group ({}, {}, {}) {}", groups[0], groups[1],
                      groups[2], e % local, group % groups[0], row % groups[1], row / groups[1], times),
          "how launch iterates over the groups of all three dimensions");
    }
  }
}

// ---- alignment

void check_alignment(Driver& driver) {
  const Traits& t = driver.traits();
  auto hold = [&](uint64_t address, uint64_t alignment, const std::string& what, const char* where) {
    if (address % alignment)
      throw broken(fmt::format("{} starts {} bytes after a multiple of {}", what, address % alignment, alignment),
                   where);
  };
  for (uint64_t bytes : {uint64_t{4}, uint64_t{100}, uint64_t{70000}}) {
    void* host = driver.allocate_host(bytes, "the driver's self check");
    hold(reinterpret_cast<uintptr_t>(host), 64, fmt::format("host memory of {} bytes", bytes), "allocate_host");
    driver.release_host(host);
  }
  std::string address = t.language->low_address;
  if (address.empty()) return;
  Kernel k = codegen::portable("address");
  k.set("ADDRESS(p)", address);
  k.set("GROUP", "IDX(GRP(0))");
  KernelId kernel = built(driver, codegen::render(t, k));
  const char* where =
      "allocate, whose memory starts at a multiple of Traits::alignment, and at how launch adds offsets";
  std::vector<std::unique_ptr<Block>> kept;  // keeps allocations alive, so that each has another address
  for (uint64_t bytes : {4u, 12u, 100u, 4096u, 4u, 100000u, 8u, 1u << 22}) {
    kept.push_back(std::make_unique<Block>(driver, bytes));
    kept.push_back(std::make_unique<Block>(driver, uint64_t{t.alignment} + 8));
    Block &x = *kept[kept.size() - 2], &y = *kept.back();
    for (uint64_t offset : {uint64_t{0}, uint64_t{t.alignment}}) {
      run(driver, kernel, {x.range(), y.range(offset, 8)}, {1, 1, 1});
      std::vector<uint32_t> got = y.read<uint32_t>(2, offset);
      hold(got[0], t.alignment, fmt::format("device memory of {} bytes", bytes), where);
      hold(got[1], t.alignment, fmt::format("device memory at the offset {}", offset), where);
    }
  }
}

// ---- memory

constexpr const char* no_room =
    "allocate: it must return 0 (a Driver must throw Code::no_memory) if there is not enough memory";

/// An allocation, or null if the device has not enough memory.
std::unique_ptr<Block> asked(Driver& driver, uint64_t bytes) {
  try {
    return std::make_unique<Block>(driver, bytes);
  } catch (const Error& e) {
    if (e.code == Code::no_memory) return nullptr;
    throw broken(
        fmt::format("a failed allocation of {} does not report Code::no_memory: {}", size_text(bytes), e.what()),
        no_room);
  } catch (const std::exception& e) {
    throw broken(fmt::format("an allocation of {} throws {}", size_text(bytes), e.what()), no_room);
  }
}

/// Unique words at positions spread over the memory, including the first and the last.
class Marks {
 public:
  Marks(Block& block, uint64_t bytes, uint64_t seed) : block_(block), bytes_(bytes), seed_(seed) {
    for (uint64_t k = 0; k <= count; ++k) block_.write(std::vector<uint64_t>{mark(k)}, place(k));
  }
  void hold(const std::string& when) {
    for (uint64_t k = 0; k <= count; ++k)
      if (block_.read<uint64_t>(1, place(k))[0] != mark(k))
        throw broken(fmt::format("an allocation of {} does not keep the data written at byte {}{}", size_text(bytes_),
                                 place(k), when),
                     "allocate, write and read: allocations must not overlap and must have the requested size");
  }

 private:
  static constexpr uint64_t count = 64;
  uint64_t place(uint64_t k) const {
    return (bytes_ - 8) / count * k / 8 * 8 + (k == count ? (bytes_ - 8) % count / 8 * 8 : 0);
  }
  uint64_t mark(uint64_t k) const { return (seed_ + 1) * 0x9E3779B97F4A7C15u + k * 0xBF58476D1CE4E5B9u; }
  Block& block_;
  uint64_t bytes_, seed_;
};

void check_memory(Driver& driver, const Device& listed) {
  const Traits& t = driver.traits();
  constexpr uint64_t first_bytes = 1 << 16;
  uint64_t most = std::min({t.max_allocation_bytes, t.memory_bytes / 4, listed.memory_free / 4}) / 4096 * 4096;
  Block first(driver, first_bytes);
  Marks kept(first, first_bytes, 0);
  for (int shift = 20; shift <= 32; shift += 2) {
    uint64_t bytes = std::min(uint64_t{1} << shift, most);
    if (bytes < first_bytes) break;
    std::unique_ptr<Block> block = asked(driver, bytes);
    if (!block) break;
    Marks(*block, bytes, static_cast<uint64_t>(shift)).hold("");
    kept.hold(fmt::format(" while another allocation of {} exists", size_text(bytes)));
    if (bytes == most) break;
  }
  // OpenCL and Vulkan drivers of software devices do not survive this (PoCL aborts).
  bool host = t.language == &Language::cpp() && (listed.kind == TUTTI_CPU || listed.kind == TUTTI_SOFTWARE);
  uint64_t refused = std::min<uint64_t>(most, uint64_t{1} << 30);
  if (host && os::can_limit_memory() &&
      refused >= 64 << 20) {  // the allocator refuses, not a comparison with the device's size
    std::unique_ptr<Block> block;
    {
      os::LittleMemory limit(refused / 2);
      block = asked(driver, refused);
    }
    if (block) Marks(*block, refused, 99).hold(", where the process has no room for it");
  }
  Marks(*std::make_unique<Block>(driver, first_bytes), first_bytes, 7).hold(" after memory ran out");
  kept.hold(" after memory ran out");
}

// ---- identity

/// Whether a word contains a dot between two digits.
bool is_version(const std::string& word) {
  auto digit = [&](size_t k) { return k < word.size() && std::isdigit(static_cast<unsigned char>(word[k])); };
  for (size_t k = 1; k < word.size(); ++k)
    if (word[k] == '.' && digit(k - 1) && digit(k + 1)) return true;
  return false;
}

void check_identity_of(const Traits& t, const Device& listed) {
  const char* where =
      "Traits::identity: it must include everything that a compiled kernel depends on besides its source: device, "
      "driver, compiler and versions; otherwise kernels of another device are loaded from the cache";
  std::istringstream words(listed.driver);
  bool any = false;
  auto names = [&](std::string word) {
    while (!word.empty() && (word.back() == ',' || word.back() == ';' || word.back() == ')')) word.pop_back();
    while (!word.empty() && word.front() == '(') word.erase(0, 1);
    if (t.identity.find(word) == std::string::npos)
      throw broken(fmt::format("the identity \"{}\" does not name \"{}\" of the device's driver, \"{}\"", t.identity,
                               word, listed.driver),
                   where);
  };
  for (std::string word; words >> word;)
    if (is_version(word)) {
      names(word);
      any = true;
    }
  if (!any && !listed.driver.empty()) names(listed.driver);
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::string, std::string>;  // identity: device
  std::string device = listed.name + ", " + listed.driver;
  std::lock_guard lock(mutex);
  auto [at, fresh] = known.emplace(t.identity, device);
  if (!fresh && at->second != device)
    throw broken(fmt::format("\"{}\" and \"{}\" have the same identity, \"{}\"", at->second, device, t.identity),
                 where);
}

}  // namespace

void self_check(Driver& driver, const std::string& what, const Device& listed) {
  if (what == "groups") return check_groups(driver);
  if (what == "alignment") return check_alignment(driver);
  if (what == "memory") return check_memory(driver, listed);
  if (what == "identity") return check_identity_of(driver.traits(), listed);
  throw invalid(fmt::format("self_check: unknown check '{}'", what),
                "the checks are groups, alignment, memory and identity");
}

}  // namespace tutti::sdk

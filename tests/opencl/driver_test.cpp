// Memory, sequences and tickets of the OpenCL driver.
#include "core/os/environment.h"
#include "tests/opencl/fixture.h"

#include <algorithm>
#include <cstring>

namespace tutti::opencl {
namespace {

using sdk::Launch;
using sdk::Range;

TEST_F(OpenClTest, describes_its_devices) {
  for (const Found& f : find_devices([](int, const std::string&) {})) {
    SCOPED_TRACE(f.info.name);
    EXPECT_NE(f.info.name.find(": "), std::string::npos);
    EXPECT_NE(f.info.driver.find("OpenCL "), std::string::npos);
    EXPECT_NE(f.info.driver.find("fp16"), std::string::npos);
    EXPECT_GT(f.info.memory_total, 0u);
    EXPECT_LE(f.info.memory_free, f.info.memory_total);
  }
  on_each([](Driver& d) {
    const sdk::Traits& t = d.traits();
    EXPECT_EQ(t.language, &sdk::Language::opencl_c());
    EXPECT_GE(t.max_local, 1u);
    EXPECT_GE(t.compute_units, 1u);
    EXPECT_EQ(t.alignment & (t.alignment - 1), 0u);
    EXPECT_GE(t.max_allocation_bytes, uint64_t{1} << 27);
    EXPECT_NE(t.identity.find("OpenCL"), std::string::npos);
  });
}

TEST_F(OpenClTest, reads_what_was_written) {
  on_each([](Driver& d) {
    auto data = counting(1000);
    auto m = upload(d, data);
    EXPECT_EQ(fetch<uint32_t>(d, m, 1000), data);
    d.write({m, 7, 3}, "abc");  // any offset and size
    char back[5] = {};
    d.read({m, 6, 5}, back);
    EXPECT_EQ(std::string(back + 1, 3), "abc");
    EXPECT_EQ(back[0], static_cast<char>(data[1] >> 16));
    d.release(m);
    EXPECT_EQ(error_from([&] { d.release(m); }).code, Code::invalid);
  });
}

TEST_F(OpenClTest, fills_exactly_the_range) {
  on_each([](Driver& d) {
    struct {
      uint64_t offset, bytes;
    } cases[] = {{0, 256}, {16, 32}, {4, 20}, {6, 10}, {3, 5}, {255, 1}, {10, 0}};
    for (auto [offset, bytes] : cases) {
      auto m = upload(d, std::vector<uint8_t>(256, 0xA5));
      d.fill_zero({m, offset, bytes});
      auto back = fetch<uint8_t>(d, m, 256);
      for (size_t i = 0; i < 256; ++i)
        ASSERT_EQ(back[i], i >= offset && i < offset + bytes ? 0 : 0xA5)
            << "byte " << i << " of " << offset << "+" << bytes;
      d.release(m);
    }
  });
}

TEST_F(OpenClTest, names_what_does_not_fit_a_memory) {
  on_each([](Driver& d) {
    auto m = d.allocate(64, "small");
    uint8_t bytes[128] = {};
    EXPECT_EQ(error_from([&] { d.write({m, 0, 65}, bytes); }).code, Code::invalid);
    EXPECT_EQ(error_from([&] { d.read({m, 60, 8}, bytes); }).code, Code::invalid);
    EXPECT_EQ(error_from([&] { d.fill_zero({m, ~uint64_t{0}, 2}); }).code, Code::invalid);
    EXPECT_EQ(error_from([&] { d.read({m + 100, 0, 1}, bytes); }).code, Code::invalid);
    EXPECT_EQ(error_from([&] { d.allocate(0, "nothing"); }).code, Code::invalid);
  });
}

TEST_F(OpenClTest, says_what_did_not_fit_the_device) {
  on_each([](Driver& d) {
    Error e = error_from([&] { d.allocate(uint64_t{1} << 60, "the arena"); });
    EXPECT_EQ(e.code, Code::no_memory);
    EXPECT_NE(std::string(e.what()).find("the arena"), std::string::npos);
    // Many that fit alone and not together: the total counts too.
    uint64_t one = std::min(d.traits().max_allocation_bytes, uint64_t{1} << 30);
    if (!d.traits().cpu_like || d.traits().memory_bytes / one > 64) return;
    std::vector<sdk::MemoryId> taken;
    Error full = error_from([&] {
      for (int k = 0; k < 100; ++k) taken.push_back(d.allocate(one, "one of many"));
    });
    EXPECT_EQ(full.code, Code::no_memory);
    EXPECT_NE(std::string(full.what()).find("in use"), std::string::npos);
    for (auto m : taken) d.release(m);
    d.release(d.allocate(one, "again"));
  });
}

TEST_F(OpenClTest, runs_launches_in_order_many_times) {
  on_each([](Driver& d) {
    auto add = build(d, map_kernel("y[i] + x[i]")), twice = build(d, map_kernel("x[i] * 2u"));
    auto x = upload(d, counting(64, 1)), y = upload(d, std::vector<uint32_t>(64, 0)),
         z = upload(d, std::vector<uint32_t>(64, 9));
    Range rx{x, 0, 256}, ry{y, 0, 256}, rz{z, 0, 256};
    // Each launch needs the one before it: y += x; z = 2y; y = z (a copy); y += x.
    std::vector<Launch> steps = {{add, {rx, ry}, {8, 1, 1}, "add"},
                                 {twice, {ry, rz}, {8, 1, 1}, "twice"},
                                 {0, {rz, ry}, {1, 1, 1}, "keep", true},
                                 {add, {rx, ry}, {8, 1, 1}, "add again"}};
    auto sequence = d.record(steps, nullptr);
    uint32_t expected = 0;
    uint64_t ticket = 0;
    for (int k = 0; k < 10; ++k) {
      uint64_t next = d.submit(sequence);
      EXPECT_EQ(next, ticket + 1);
      ticket = next;
      expected = (expected + 1) * 2 + 1;  // for x = 1
    }
    d.wait(ticket, forever);
    auto back = fetch<uint32_t>(d, y, 64);
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(back[i], expected * (i + 1));
    d.wait(1, 0);  // long done
    EXPECT_EQ(error_from([&] { d.wait(ticket + 1, forever); }).code, Code::invalid);
    d.forget(sequence);
    EXPECT_EQ(error_from([&] { d.submit(sequence); }).code, Code::invalid);
  });
}

TEST_F(OpenClTest, kernels_see_only_their_range) {
  on_each([](Driver& d) {
    // Three tensors in one arena with guards before, between and after them.
    uint32_t a = d.traits().alignment;
    uint64_t bytes = uint64_t{a} * 8, count = bytes / 4;
    auto arena = upload(d, std::vector<uint32_t>(count, 0xDEADBEEF));
    std::vector<uint32_t> in = counting(16, 100);
    d.write({arena, 2 * a, 64}, in.data());
    auto k = build(d, map_kernel("x[i] + 1u"));
    std::vector<Launch> steps = {{k, {{arena, 2 * a, 64}, {arena, 4 * a, 64}}, {2, 1, 1}, "first"},
                                 {k, {{arena, 4 * a, 64}, {arena, 6 * a, 64}}, {2, 1, 1}, "second"},
                                 {k, {{arena, 6 * a, 64}, {arena, 6 * a, 64}}, {2, 1, 1}, "in place"}};
    auto s = d.record(steps, nullptr);
    d.wait(d.submit(s), forever);
    auto back = fetch<uint32_t>(d, arena, count);
    for (size_t i = 0; i < count; ++i) {
      size_t block = i * 4 / a, at = i * 4 % a / 4;
      uint32_t expected = 0xDEADBEEF;
      if (at < 16 && block == 2) expected = in[at];
      if (at < 16 && block == 4) expected = in[at] + 1;
      if (at < 16 && block == 6) expected = in[at] + 3;
      ASSERT_EQ(back[i], expected) << "word " << i;
    }
    Launch crooked{k, {{arena, 2 * a + 4, 32}, {arena, 4 * a, 32}}, {1, 1, 1}, "crooked"};
    Error e = error_from([&] { d.record(std::span(&crooked, 1), nullptr); });
    EXPECT_EQ(e.code, Code::invalid);
    EXPECT_NE(std::string(e.what()).find("crooked"), std::string::npos);
    Launch beyond{k, {{arena, 2 * a, 32}, {arena, 7 * a, uint64_t{2} * a}}, {1, 1, 1}, "beyond"};
    EXPECT_EQ(error_from([&] { d.record(std::span(&beyond, 1), nullptr); }).code, Code::invalid);
  });
}

TEST_F(OpenClTest, runs_groups_of_three_dimensions) {
  on_each([](Driver& d) {
    sdk::KernelSource source;
    source.text =
        "__kernel __attribute__((reqd_work_group_size(2, 3, 1))) void kernel_main(__global uint* y) {\n"
        "  y[(get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0)] =\n"
        "      get_group_id(0) + 100 * get_group_id(1) + 10000 * get_group_id(2);\n}\n";
    source.local = {2, 3, 1};
    source.written.resize(1, true);
    auto k = build(d, source);
    auto y = d.allocate(8 * 9 * 5 * 4, "y");
    Launch launch{k, {{y, 0, 8 * 9 * 5 * 4}}, {4, 3, 5}, "three"};
    auto s = d.record(std::span(&launch, 1), nullptr);
    d.wait(d.submit(s), forever);
    auto back = fetch<uint32_t>(d, y, 8 * 9 * 5);
    for (uint32_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i % 8 / 2 + 100 * (i / 8 % 9 / 3) + 10000 * (i / 72));
  });
}

TEST_F(OpenClTest, times_launches_between_others_by_its_events) {
  on_each([](Driver& d) {
    auto add = build(d, map_kernel("y[i] + x[i]"));
    auto x = d.allocate(64, "feed"), y = upload(d, std::vector<uint32_t>(16, 0));
    auto* slot = static_cast<uint32_t*>(d.allocate_host(64, "slot"));
    std::fill_n(slot, 16, 3);
    sdk::Upload feed{slot, {x, 0, 64}};
    std::vector<Launch> launches(3, Launch{add, {{x, 0, 64}, {y, 0, 64}}, {2, 1, 1}, "add"});
    sdk::SequenceId plain = d.record(launches, nullptr);
    std::optional<sdk::SequenceId> timed = d.record_timed(launches, &feed);
    ASSERT_TRUE(timed);
    EXPECT_EQ(d.recorded(*timed), 0u);
    EXPECT_EQ(error_from([&] { d.times(plain); }).code, Code::invalid);
    for (int round = 0; round < 2; ++round) {
      d.submit(*timed);
      d.wait(d.submit(plain), forever);
    }
    EXPECT_EQ(fetch<uint32_t>(d, y, 16), std::vector<uint32_t>(16, 2 * (9 + 9)));
    std::vector<sdk::Interval> times = d.times(*timed);
    ASSERT_EQ(times.size(), 4u) << "the upload, then each launch";
    for (size_t k = 0; k < times.size(); ++k) {
      EXPECT_GT(times[k].begin, 0u);
      EXPECT_GE(times[k].end, times[k].begin);
      EXPECT_TRUE(k == 0 || times[k].begin >= times[k - 1].begin);
    }
    d.forget(*timed);
    EXPECT_EQ(error_from([&] { d.times(*timed); }).code, Code::invalid);
    d.forget(plain), d.release_host(slot);
  });
}

TEST_F(OpenClTest, uploads_the_slot_of_each_sequence) {
  on_each([](Driver& d) {
    auto add = build(d, map_kernel("y[i] + x[i]"));
    auto x = d.allocate(64, "feed"), y = upload(d, std::vector<uint32_t>(16, 0));
    uint32_t* slots[2];
    sdk::SequenceId sequences[2];
    Launch launch{add, {{x, 0, 64}, {y, 0, 64}}, {2, 1, 1}, "add"};
    for (int k = 0; k < 2; ++k) {
      slots[k] = static_cast<uint32_t*>(d.allocate_host(64, "slot"));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(slots[k]) % 64, 0u);
      sdk::Upload upload{slots[k], {x, 0, 64}};
      sequences[k] = d.record(std::span(&launch, 1), &upload);
    }
    uint64_t tickets[2] = {0, 0};
    uint32_t sum = 0;
    for (uint32_t step = 0; step < 20; ++step) {
      d.wait(tickets[step % 2], forever);
      std::fill_n(slots[step % 2], 16, step);
      tickets[step % 2] = d.submit(sequences[step % 2]);
      sum += step;
    }
    EXPECT_EQ(fetch<uint32_t>(d, y, 16), std::vector<uint32_t>(16, sum));  // read waits by itself
    d.wait(tickets[1], forever);
    for (int k = 0; k < 2; ++k) d.forget(sequences[k]), d.release_host(slots[k]);
    EXPECT_EQ(error_from([&] { d.release_host(slots[0]); }).code, Code::invalid);
    // Nothing but an upload, and nothing at all, are sequences too.
    uint32_t one = 41;
    auto* slot = static_cast<uint32_t*>(d.allocate_host(4, "slot"));
    *slot = one;
    sdk::Upload only{slot, {x, 0, 4}};
    d.wait(d.submit(d.record({}, &only)), forever);
    EXPECT_EQ(fetch<uint32_t>(d, x, 1)[0], one);
    d.wait(d.submit(d.record({}, nullptr)), forever);
  });
}

TEST_F(OpenClTest, a_wait_can_run_out_of_time) {
  on_each([](Driver& d) {
    if (!d.traits().cpu_like) return;  // how long this takes is known of CPUs alone
    auto slow = build(d, map_kernel("0; for (uint k = 0; k < x[0]; ++k) y[i] = y[i] * 1664525u + k"));
    auto x = upload(d, std::vector<uint32_t>(8, 10'000'000u)), y = upload(d, std::vector<uint32_t>(8, 1));
    Launch launch{slow, {{x, 0, 32}, {y, 0, 32}}, {1, 1, 1}, "slow"};
    auto s = d.record(std::span(&launch, 1), nullptr);
    uint64_t ticket = d.submit(s);
    Error e = error_from([&] { d.wait(ticket, 1'000'000); });
    EXPECT_EQ(e.code, Code::timeout);
    EXPECT_NE(std::string(e.what()).find("slow"), std::string::npos);
    d.wait(ticket, uint64_t{120} * 1'000'000'000);
  });
}

/// 40 launches of which each needs the one before, a copy among them: y = 2y + x, twenty times.
std::vector<Launch> chain(sdk::KernelId add, sdk::KernelId twice, Range x, Range y, Range z) {
  std::vector<Launch> steps;
  for (int k = 0; k < 20; ++k) {
    steps.push_back({twice, {y, z}, {8, 1, 1}, "twice"});
    if (k == 7)
      steps.push_back({0, {z, y}, {1, 1, 1}, "copy", true});
    else
      steps.push_back({twice, {z, y}, {8, 1, 1}, "again"});
    steps.push_back({add, {x, y}, {8, 1, 1}, "add"});
  }
  return steps;
}

std::vector<uint32_t> run_chain(Driver& d, int times, size_t& recorded) {
  auto add = build(d, map_kernel("y[i] + x[i]")), twice = build(d, map_kernel("x[i] * 2u"));
  auto x = upload(d, counting(64, 1)), y = upload(d, std::vector<uint32_t>(64, 0)), z = d.allocate(256, "z");
  auto s = d.record(chain(add, twice, {x, 0, 256}, {y, 0, 256}, {z, 0, 256}), nullptr);
  recorded = d.recorded(s);
  for (int k = 0; k < times; ++k) d.submit(s);  // without a wait: the last one may still be in flight
  auto back = fetch<uint32_t>(d, y, 64);
  d.forget(s);
  return back;
}

TEST_F(OpenClTest, recorded_launches_give_what_single_ones_give) {
  for (const Found& f : usable_devices()) {
    SCOPED_TRACE(f.info.name);
    size_t none = 0, all = 0;
    os::set_variable("TUTTI_OPENCL_COMMAND_BUFFER", "0");
    Driver plain(f, sdk::Host());
    std::vector<uint32_t> expected = run_chain(plain, 25, none);
    EXPECT_EQ(none, 0u);
    os::set_variable("TUTTI_OPENCL_COMMAND_BUFFER", "1");
    Driver recording(f, sdk::Host());
    os::unset_variable("TUTTI_OPENCL_COMMAND_BUFFER");
    EXPECT_EQ(run_chain(recording, 25, all), expected);
    EXPECT_EQ(all, has_extension(f.device, "cl_khr_command_buffer") ? 59u : 0u) << "all but the copy";
    uint32_t y = 0;
    for (int k = 0; k < 25 * 20; ++k) y = (k % 20 == 7 ? 2 : 4) * y + 1;
    EXPECT_EQ(expected[0], y);
  }
}

TEST_F(OpenClTest, outlives_a_thousand_submits_without_a_wait) {
  on_each([](Driver& d) {
    auto add = build(d, map_kernel("y[i] + x[i]"));
    auto x = upload(d, std::vector<uint32_t>(8, 1)), y = upload(d, std::vector<uint32_t>(8, 0));
    Launch launch{add, {{x, 0, 32}, {y, 0, 32}}, {1, 1, 1}, "add"};
    auto s = d.record(std::span(&launch, 1), nullptr);
    for (int k = 0; k < 1000; ++k) d.submit(s);
    EXPECT_EQ(fetch<uint32_t>(d, y, 8), std::vector<uint32_t>(8, 1000));
  });
}

}  // namespace
}  // namespace tutti::opencl

// The blocks of GGUF's quantized types, taken apart.
#pragma once
#include "data/files/gguf_types.h"

namespace tutti {

void take_apart_q4_0(const std::byte* from, GgufBlock& to);
void take_apart_q4_1(const std::byte* from, GgufBlock& to);
void take_apart_q5_0(const std::byte* from, GgufBlock& to);
void take_apart_q5_1(const std::byte* from, GgufBlock& to);
void take_apart_q8_0(const std::byte* from, GgufBlock& to);
void take_apart_q2_k(const std::byte* from, GgufBlock& to);
void take_apart_q3_k(const std::byte* from, GgufBlock& to);
void take_apart_q4_k(const std::byte* from, GgufBlock& to);
void take_apart_q5_k(const std::byte* from, GgufBlock& to);
void take_apart_q6_k(const std::byte* from, GgufBlock& to);
void take_apart_iq4_nl(const std::byte* from, GgufBlock& to);
void take_apart_iq4_xs(const std::byte* from, GgufBlock& to);

}  // namespace tutti

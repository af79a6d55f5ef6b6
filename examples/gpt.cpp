// Defines a small GPT and trains it on the bytes of a file.
#include <tutti/tutti.h>
#include <cstdio>

using namespace tutti;

struct Block {
  int64_t width, heads;
  Value forward(nn::Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1];
    auto cut = [&](Value v) { return transpose(reshape(v, {n, t, heads, width / heads}), {0, 2, 1, 3}); };
    Values qkv = split(b("qkv", nn::Linear(3 * width), b("ln_1", nn::LayerNorm(), x)), width, 2);
    Value y = attention(cut(qkv[0]), cut(qkv[1]), cut(qkv[2]), {.causal = true});
    x = x + b("proj", nn::Linear(width), reshape(transpose(y, {0, 2, 1, 3}), {n, t, width}));
    nn::Sequential mlp = {nn::Linear(4 * width), nn::GeluTanh(), nn::Linear(width)};
    return x + b("mlp", mlp, b("ln_2", nn::LayerNorm(), x));
  }
};

struct Gpt {
  int64_t vocabulary, width, heads, layers;
  Value forward(nn::Builder& b, Value tokens) const {
    Value positions = arange(b.graph(), 0, static_cast<double>(tokens.shape()[1]));
    Value x = b("token", nn::Embedding(vocabulary, width, {nn::Init::normal, 0, 0.02}), tokens) +
              b("place", nn::Embedding(1024, width, {nn::Init::normal, 0, 0.02}), positions);
    for (int64_t i = 0; i < layers; ++i) x = b("block" + std::to_string(i), Block{width, heads}, x);
    return b("head", nn::Linear(vocabulary), b("ln", nn::LayerNorm(), x));
  }
};

int main(int argc, char** argv) try {
  if (argc < 2) throw invalid("no text named", "gpt FILE [DEVICE]");
  auto [train, test] = data::open_data("text:" + std::string(argv[1]), {.context = 64, .tokenizer = "bytes"});
  Trainer trainer(
      select_device(argc > 2 ? argv[2] : "auto"), language_model(Gpt{256, 64, 4, 2}),
      {.optimizer = AdamW{.lr = 1e-3}, .schedule = warmup_schedule(50), .clip_norm = 1, .batch = 16, .eval_batch = 16});
  for (int epoch = 1; epoch <= 3; ++epoch) {
    TrainResult t = trainer.train(*train);
    std::printf("epoch %d  loss %.3f  test loss %.3f\n", epoch, t.loss, trainer.evaluate(*test).loss);
  }
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}

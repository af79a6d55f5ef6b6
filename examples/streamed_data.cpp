// A data set of one's own that does not fit in memory: the trainer asks for samples, batch by batch, while a step runs.
#include <tutti/tutti.h>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace tutti;

/// Pieces of 64 numbers of a noisy wave whose period is the class. Here they are computed; a file would be read.
class Waves : public data::Source {
 public:
  explicit Waves(int64_t count) : Source("waves"), count_(count) {}
  int64_t size() const override { return count_; }
  std::vector<data::Column> columns() const override {
    return {{.name = "input", .type = {DType::f32, {length}}, .table = ""},
            {.name = "label", .type = {DType::i32, {}}, .table = "", .classes = 3}};
  }
  /// Copies some samples of a column; several threads may call it at once, as parallel() says.
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    auto* out = static_cast<std::byte*>(to);
    for (int32_t i : samples) {
      const int32_t label = i % 3;
      if (column == "label") {
        std::memcpy(out, &label, sizeof label);
        out += sizeof label;
        continue;
      }
      for (int64_t k = 0; k < length; ++k) {
        const double noise = std::sin(12.9898 * (i + 1) * static_cast<double>(k + 1));
        const double angle = (0.2 + 0.1 * label) * static_cast<double>(k) + 0.7 * i;
        const auto x = static_cast<float>(std::sin(angle) + 0.5 * noise);
        std::memcpy(out, &x, sizeof x);
        out += sizeof x;
      }
    }
  }
  bool parallel() const override { return true; }

 private:
  static constexpr int64_t length = 64;
  int64_t count_;
};

int main(int argc, char** argv) try {
  nn::Sequential model = {nn::Linear(64), nn::Relu(), nn::Linear(3)};
  Trainer trainer(select_device(argc > 1 ? argv[1] : "auto"), classification(model),
                  {.optimizer = Adam{.lr = 3e-3}, .batch = 64, .workers = 2});
  Waves waves(6000);
  for (int epoch = 1; epoch <= 3; ++epoch) std::printf("epoch %d  loss %.4f\n", epoch, trainer.train(waves).loss);
  std::printf("steps waited for data in %.1f %% of the time\n", 100 * trainer.data_wait());
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}

// Training in a thread of a server: other threads see the progress, and cancel it.
#include <tutti/tutti.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

using namespace tutti;

/// One training run. Only its thread uses the trainer; what others ask for is copied under a lock.
class Job {
 public:
  Job(Device device, std::string file) : thread_([this, device, file] { run(device, file); }) {}
  ~Job() {
    cancel();
    thread_.join();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void cancel() { cancelled_ = true; }
  bool done() const { return done_; }
  Progress progress() const {
    std::lock_guard hold(mutex_);
    return progress_;
  }
  /// The error that ended it, or null.
  std::exception_ptr error() const {
    std::lock_guard hold(mutex_);
    return error_;
  }

 private:
  void run(const Device& device, const std::string& file) {
    try {
      nn::Sequential model = {nn::Linear(256), nn::Relu(), nn::Linear(4)};
      data::Dataset set = data::synthetic({16}, 4, 4000, 10).train;
      Trainer trainer(device, classification(model), {.batch = 20});
      // Called about ten times a second, in this thread; false ends the run after the current step.
      auto watch = [this](const Progress& p) {
        std::lock_guard hold(mutex_);
        progress_ = p;
        return !cancelled_;
      };
      for (int epoch = 0; epoch < 1000 && !cancelled_; ++epoch) trainer.train(set, 0, watch);
      trainer.save(file);  // also of a cancelled run: Trainer::load() resumes it
    } catch (...) {
      std::lock_guard hold(mutex_);
      error_ = std::current_exception();
    }
    done_ = true;
  }
  std::atomic<bool> cancelled_ = false, done_ = false;
  mutable std::mutex mutex_;
  Progress progress_ = {};
  std::exception_ptr error_;
  std::thread thread_;  // the last member: it uses the others
};

int main(int argc, char** argv) try {
  Job job(select_device(argc > 1 ? argv[1] : "auto"), "job.safetensors");
  for (int seen = 0; seen < 3 && !job.done(); ++seen) {  // a server would answer requests here
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    Progress p = job.progress();
    std::printf("step %lld, epoch %lld, loss %.4f\n", static_cast<long long>(p.step), static_cast<long long>(p.epoch),
                p.loss);
  }
  job.cancel();
  while (!job.done()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (job.error()) std::rethrow_exception(job.error());
  std::printf("cancelled and saved\n");
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}

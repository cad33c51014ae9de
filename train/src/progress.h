#pragma once
// Progress output: a bar in a terminal, one line per epoch elsewhere.

#include <penstock/train/model.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

namespace penstock::train {

inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

class Progress {
 public:
  explicit Progress(Show show, std::FILE* out = stdout);

  void begin_epoch(std::uint64_t epoch, std::uint64_t epochs, std::optional<std::uint64_t> steps,
                   std::uint64_t done);
  void step(std::uint64_t done, const Scores& so_far, double input_wait);
  void end_epoch(const EpochLog& log);
  void nothing_to_resume(const std::string& folder);
  void resumed(const std::string& path, std::uint64_t epoch, std::uint64_t step);

 private:
  void put(const std::string& text);
  void line(const std::string& text, bool stays);

  Show show_;
  std::FILE* out_;
  std::uint64_t epochs_ = 0;
  std::optional<std::uint64_t> steps_;
  std::uint64_t first_step_ = 0;
  std::size_t width_ = 0;  // of the current line of the terminal
  std::string name_;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point shown_;
};

/// "37/100 [=====>       ] loss 0.1234  accuracy 0.91  812 samples/s  12 s left  input 1 %"
std::string bar_text(std::uint64_t done, std::optional<std::uint64_t> steps, const Scores& scores,
                     double samples_per_second, double seconds_per_step, double input_wait);

}  // namespace penstock::train

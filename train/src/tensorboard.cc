// Event files for TensorBoard: records of [length, its checksum, bytes, their checksum], each a
// protobuf Event {1: wall_time, 2: step, 3: file_version, 5: summary {1: value {1: tag, 2:
// simple}}}.
#include "tensorboard.h"

#include <fmt/format.h>
#include <penstock/error.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "log_file.h"

namespace penstock::train {
namespace {

/// Protobuf's wire format, as far as events need it.
class Message {
 public:
  Message& varint(unsigned field, std::uint64_t value) {
    number(field << 3U);
    number(value);
    return *this;
  }
  Message& bytes(unsigned field, const std::string& value) {
    number(field << 3U | 2U);
    number(value.size());
    text_.append(value);
    return *this;
  }
  Message& fixed(unsigned field, double value) { return raw(field << 3U | 1U, value); }
  Message& fixed(unsigned field, float value) { return raw(field << 3U | 5U, value); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <typename T>
  Message& raw(unsigned key, T value) {
    number(key);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) text_.push_back(static_cast<char>(value | 0x80U));
    text_.push_back(static_cast<char>(value));
  }
  std::string text_;
};

/// The checksum in the form of these files, masked so that a file may contain its own checksums.
std::uint32_t masked_crc(const std::string& bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

template <typename T>
std::string raw_bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

std::string event_record(const std::string& event) {
  std::string record = raw_bytes<std::uint64_t>(event.size());
  record.append(raw_bytes(masked_crc(record)));
  record.append(event);
  record.append(raw_bytes(masked_crc(event)));
  return record;
}

std::string version_event(double wall_time) {
  return Message().fixed(1, wall_time).bytes(3, "brain.Event:2").text();
}

std::string scalar_event(double wall_time, std::uint64_t step, const std::string& tag,
                         double value) {
  const std::string entry = Message().bytes(1, tag).fixed(2, static_cast<float>(value)).text();
  return Message()
      .fixed(1, wall_time)
      .varint(2, step)
      .bytes(5, Message().bytes(1, entry).text())
      .text();
}

namespace {

class TensorBoard final : public Callback {
 public:
  explicit TensorBoard(std::string folder) : folder_(std::move(folder)) {}

  void on_begin(Training& training) override {
    if (!training.writes()) return;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error)
      throw ConfigError(fmt::format("tensorboard: cannot create {}: {}", folder_, error.message()),
                        {}, "pass a writable folder");
    const std::string file =
        fmt::format("{}/events.out.tfevents.{:.0f}.penstock.{}", folder_, now(), ::getpid());
    std::string name = file;  // with a suffix if two runs of this process start in one second
    for (int i = 1; std::filesystem::exists(name, error); ++i) name = fmt::format("{}.{}", file, i);
    log_.emplace("tensorboard " + folder_, name);
    log_->begin(event_record(version_event(now())));
  }
  void on_step_end(Training& training, const Scores& so_far) override {
    if (!training.writes()) return;
    // `so_far` is a mean over the epoch; the value of this step alone is the difference.
    const double samples = static_cast<double>(so_far.samples);
    const bool first = samples < samples_;
    const double loss = so_far.loss * samples - (first ? 0 : loss_);
    const double of = samples - (first ? 0 : samples_);
    loss_ = so_far.loss * samples;
    samples_ = samples;
    if (of > 0) scalar(training.iteration(), "step/loss", loss / of);
    scalar(training.iteration(), "step/learning_rate", training.learning_rate());
    if (pending_.size() > 65536) flush();
  }
  void on_epoch_end(Training& training, const EpochLog& log) override {
    if (!training.writes()) return;
    samples_ = loss_ = 0;
    const auto all = [&](const Scores& scores, const std::string& side) {
      scalar(log.epoch, "epoch/loss/" + side, scores.loss);
      for (const auto& [name, value] : scores.metrics)
        scalar(log.epoch, fmt::format("epoch/{}/{}", name, side), value);
    };
    all(log.train, "train");
    if (log.validation) all(*log.validation, "validation");
    scalar(log.epoch, "epoch/input_wait", log.input_wait);
    flush();
  }
  void on_end(Training& training) override {
    if (training.writes()) flush();
  }
  [[nodiscard]] std::string problem() const override { return log_ ? log_->problem() : ""; }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  void scalar(std::uint64_t step, const std::string& tag, double value) {
    pending_ += event_record(scalar_event(now(), step, tag, value));
  }
  void flush() { log_->add(std::exchange(pending_, {})); }

  std::string folder_;
  std::optional<LogFile> log_;  // in the process that writes
  std::string pending_;
  double loss_ = 0;
  double samples_ = 0;
};

}  // namespace

std::shared_ptr<Callback> tensorboard(const std::string& folder) {
  return std::make_shared<TensorBoard>(folder);
}

}  // namespace penstock::train

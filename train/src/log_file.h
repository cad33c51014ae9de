#pragma once
// A log matters less than the training it describes: what cannot be written is kept, reported, and
// retried with the next line.

#include <cstdint>
#include <deque>
#include <string>

namespace penstock::train {

/// True for the 1st, 4th, 16th ... failure in a row: often enough to be noticed in a long log.
bool is_time_to_report(std::uint64_t failures);

class LogFile {
 public:
  /// `what` names the log in reports, `path` the file.
  LogFile(std::string what, std::string path);

  /// Replaces the content of the file by `text`. Throws ConfigError if the folder is missing or the
  /// file is not writable: that is a mistake in the set-up, and nothing is lost yet.
  void begin(const std::string& text);
  /// Appends `text`, and whatever could not be written before.
  void add(std::string text);
  /// What is missing in the file, or "".
  [[nodiscard]] std::string problem() const;

  /// The most that is kept; beyond it the oldest parts except the first are dropped.
  static constexpr std::uint64_t kKeptBytesMax = std::uint64_t{16} << 20U;

 private:
  void flush();
  /// Returns the reason of a failure, or "".
  [[nodiscard]] std::string write(const std::string& text);

  std::string what_;
  std::string path_;
  bool regular_ = true;              // false: a pipe or a device, which has no content to replace
  bool begun_ = false;               // the previous content of the file is gone
  std::uint64_t written_ = 0;        // bytes of the file that are complete
  std::deque<std::string> waiting_;  // parts that are not in the file
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t dropped_ = 0;   // parts
  std::uint64_t failures_ = 0;  // in a row
  std::string why_;             // the last one
};

}  // namespace penstock::train

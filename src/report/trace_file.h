#pragma once
// Traces as files: JSON that Chrome's tracing page and Perfetto open, one event a line. What
// Recording has besides events is an event too, named "penstock_totals", which those programs
// ignore; the last one counts. So a file can be written while a run goes on, and one that ends
// early can be read.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/io.h"
#include "penstock/result.h"
#include "trace/recording.h"

namespace penstock {

/// Writes a file while a run goes on. Errors do not end the run: after the first one nothing more
/// is written, and `failure` says why.
class TraceWriter {
 public:
  /// Events after `bytes_max` are left out and counted. A file that exists is a failure.
  TraceWriter(Io& io, const std::string& path, std::uint64_t bytes_max);

  void add(const std::vector<trace::Event>& events, const std::vector<std::string>& op_titles,
           const std::vector<std::string>& threads);
  /// `totals.events` are not written.
  void add_totals(trace::Recording totals);
  /// Completes the file.
  void close();
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  void write(const std::string& text);

  const std::uint64_t bytes_max_;
  std::unique_ptr<FileAppender> file_;
  std::string failure_;
  std::uint64_t event_bytes_ = 0;
  std::uint64_t left_out_ = 0;
  std::size_t threads_named_ = 0;
};

/// Writes all of a recording at once. Throws ResourceError if the file cannot be written.
void write_trace(const std::string& path, const trace::Recording& recording);
/// Reads such a file, whole or cut. Throws ConfigError if it is none.
trace::Recording read_trace(const std::string& path);
/// The same, of a text; `name` is for errors.
trace::Recording parse_trace(std::string_view text, const std::string& name);

}  // namespace penstock

#pragma once
// For tests: what was reported.

#include <string>
#include <utility>

#include "base/mutex.h"
#include "penstock/report_sink.h"

namespace penstock::train {

/// What was reported while it lives.
class Heard {
 public:
  Heard()
      : before_(set_report_sink([this](const std::string& text) {
          Lock lock(mutex_);
          text_ += text + "\n";
          changed_.notify_all();
        })) {}
  ~Heard() { set_report_sink(before_); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  [[nodiscard]] std::string text() const {
    Lock lock(mutex_);
    return text_;
  }
  /// Blocks until something was reported that holds `part`.
  void wait_for(const std::string& part) const {
    Lock lock(mutex_);
    while (text_.find(part) == std::string::npos) changed_.wait(mutex_);
  }
  [[nodiscard]] std::size_t count(const std::string& part) const {
    Lock lock(mutex_);
    std::size_t found = 0;
    for (std::size_t at = text_.find(part); at != std::string::npos; at = text_.find(part, at + 1))
      ++found;
    return found;
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  std::string text_ PENSTOCK_GUARDED_BY(mutex_);
  ReportSink before_;
};

}  // namespace penstock::train

// tested in train/tests/log_file_test.cc
#include "log_file.h"

#include <fmt/format.h>
#include <penstock/error.h>
#include <unistd.h>

#include <bit>
#include <filesystem>

#include "base/fault.h"
#include "base/printable.h"
#include "base/report.h"
#include "penstock/io.h"

namespace penstock::train {
namespace fs = std::filesystem;

bool is_time_to_report(std::uint64_t failures) {
  return std::has_single_bit(failures) && std::countr_zero(failures) % 2 == 0;
}

LogFile::LogFile(std::string what, std::string path)
    : what_(std::move(what)), path_(std::move(path)) {}

void LogFile::begin(const std::string& text) {
  std::error_code error;
  const fs::file_status is = fs::status(path_, error);
  const fs::path parent = fs::path(path_).parent_path();
  if (fs::is_directory(is))
    throw ConfigError(fmt::format("{}: {} is a folder", what_, printable(path_)), {},
                      "pass a file");
  if (!parent.empty() && !fs::is_directory(parent, error))
    throw ConfigError(fmt::format("{}: the folder of {} does not exist", what_, printable(path_)),
                      {}, fmt::format("create the folder {}", printable(parent.string())));
  regular_ = !fs::exists(is) || fs::is_regular_file(is);
  const std::string needed = regular_ ? (parent.empty() ? "." : parent.string()) : path_;
  if (::access(needed.c_str(), W_OK) != 0)
    throw ConfigError(fmt::format("{}: this user may not write to {}", what_, printable(needed)),
                      {}, "pass a file in a writable folder");
  waiting_.clear();
  waiting_bytes_ = dropped_ = failures_ = written_ = 0;
  why_.clear();
  begun_ = !regular_;
  add(text);
}

void LogFile::add(std::string text) {
  waiting_bytes_ += text.size();
  waiting_.push_back(std::move(text));
  flush();
  // The first part has the names of the columns, or the version of the format.
  for (; waiting_bytes_ > kKeptBytesMax && waiting_.size() > 1; ++dropped_) {
    waiting_bytes_ -= waiting_[1].size();
    waiting_.erase(waiting_.begin() + 1);
  }
}

std::string LogFile::write(const std::string& text) {
  if (PENSTOCK_FAULT("log.write")) return "No space left on device";
  if (!begun_) {
    const auto done = Io::real().publish(path_, text);
    if (!done) return done.failure().message;
    begun_ = true;
    written_ = text.size();
    return "";
  }
  std::error_code error;
  // The remains of a failed write would garble the log.
  if (regular_ && fs::file_size(path_, error) > written_ && !error)
    fs::resize_file(path_, written_, error);
  if (const auto done = Io::real().append(path_, text); !done) {
    if (regular_) fs::resize_file(path_, written_, error);
    return done.failure().message;
  }
  written_ += text.size();
  return "";
}

void LogFile::flush() {
  std::string text;
  for (const std::string& one : waiting_) text += one;
  if (text.empty() && begun_) return waiting_.clear();
  std::string why = write(text);
  if (why.empty()) {
    waiting_.clear();
    waiting_bytes_ = 0;
    if (failures_ > 0) report(fmt::format("{}: written again", what_));
    failures_ = 0;
    return;
  }
  why_ = std::move(why);
  if (is_time_to_report(++failures_))
    report(fmt::format("{}: {}; training continues, and the missing entries are retried", what_,
                       why_));
}

std::string LogFile::problem() const {
  if (failures_ > 0) return fmt::format("{} is not complete: {}", what_, why_);
  if (dropped_ > 0)
    return fmt::format("{} is not complete: {} entries were dropped while it could not be written",
                       what_, dropped_);
  return "";
}

}  // namespace penstock::train

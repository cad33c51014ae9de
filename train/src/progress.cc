#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace penstock::train {
namespace {

std::string scores_text(const Scores& scores, const char* prefix = "") {
  std::string text = fmt::format("{}loss {:.4f}", prefix, scores.loss);
  for (const auto& [name, value] : scores.metrics)
    text += fmt::format("  {}{} {:.4f}", prefix, name, value);
  return text;
}

/// "12 s", "3:05 min", "2:10 h"
std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string bar_text(std::uint64_t done, std::optional<std::uint64_t> steps, const Scores& scores,
                     double samples_per_second, double seconds_per_step, double input_wait) {
  constexpr std::size_t kWidth = 20;
  std::string text = fmt::format("{}", done);
  if (steps && *steps > 0) {
    const std::size_t filled = std::min<std::size_t>(kWidth, kWidth * done / *steps);
    std::string bar(filled, '=');
    if (filled < kWidth) bar += '>';
    bar.resize(kWidth, ' ');
    text += fmt::format("/{} [{}]", *steps, bar);
  } else {
    text += " steps";
  }
  text += fmt::format("  {}  {:.0f} samples/s", scores_text(scores), samples_per_second);
  if (steps && done < *steps)
    text += fmt::format("  {} left",
                        duration_text(seconds_per_step * static_cast<double>(*steps - done)));
  return text + fmt::format("  input {:.0f} %", 100 * input_wait);
}

Progress::Progress(Show show, std::FILE* out) : show_(show), out_(out) {
  if (show == Show::automatic) show_ = ::isatty(::fileno(out)) != 0 ? Show::bar : Show::lines;
}

/// What cannot be shown, as on a full disk, is lost; training continues. (fmt::print would throw.)
void Progress::put(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), out_);
}

void Progress::line(const std::string& text, bool stays) {
  if (show_ == Show::bar) {
    // Overwrites the rest of a longer line.
    std::string padded = text;
    padded.resize(std::max(text.size(), width_), ' ');
    width_ = stays ? 0 : text.size();
    put(fmt::format("\r{}{}", padded, stays ? "\n" : ""));
  } else if (stays) {
    put(text + "\n");
  }
  std::fflush(out_);
}

void Progress::begin_epoch(std::uint64_t epoch, std::uint64_t epochs,
                           std::optional<std::uint64_t> steps, std::uint64_t done) {
  epochs_ = epochs;
  steps_ = steps;
  first_step_ = done;
  name_ = fmt::format("epoch {}/{}", epoch + 1, epochs);
  began_ = shown_ = std::chrono::steady_clock::now();
}

void Progress::step(std::uint64_t done, const Scores& so_far, double input_wait) {
  if (show_ != Show::bar) return;
  // Often enough for a person.
  if (seconds_since(shown_) < 0.1 && !(steps_ && done == *steps_)) return;
  shown_ = std::chrono::steady_clock::now();
  const double seconds = std::max(1e-9, seconds_since(began_));
  const auto steps = static_cast<double>(std::max<std::uint64_t>(1, done - first_step_));
  const double per_step = static_cast<double>(so_far.samples) / static_cast<double>(done);
  line(fmt::format(
           "{}  {}", name_,
           bar_text(done, steps_, so_far, per_step * steps / seconds, seconds / steps, input_wait)),
       false);
}

void Progress::end_epoch(const EpochLog& log) {
  if (show_ == Show::nothing) return;
  std::string text = fmt::format("epoch {}/{}  {} steps  {} samples  {}", log.epoch + 1, epochs_,
                                 log.steps, log.train.samples, scores_text(log.train));
  if (log.validation) text += "  " + scores_text(*log.validation, "val_");
  text += fmt::format("  {}  input {:.0f} %", duration_text(log.seconds), 100 * log.input_wait);
  if (log.skipped_steps > 0)
    text += fmt::format("  {} steps skipped: their loss was not a number", log.skipped_steps);
  line(text, true);
}

void Progress::nothing_to_resume(const std::string& folder) {
  if (show_ != Show::nothing)
    line(fmt::format("nothing to resume in {}, starting from the beginning", folder), true);
}

void Progress::resumed(const std::string& path, std::uint64_t epoch, std::uint64_t step) {
  if (show_ != Show::nothing)
    line(fmt::format("resumed from {}: epoch {}, after step {}", path, epoch + 1, step), true);
}

}  // namespace penstock::train

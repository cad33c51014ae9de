#include "replica/team.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/report.h"
#include "trace/blocked.h"

namespace penstock {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CancelledError&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// "replica 2", "replicas 0, 2"
std::string replicas_text(const std::vector<std::uint32_t>& members) {
  return fmt::format("{} {}", members.size() == 1 ? "replica" : "replicas",
                     fmt::join(members, ", "));
}

}  // namespace

Team::Team(std::uint32_t size, const Options& options)
    : size_(size),
      clock_(options.clock != nullptr ? *options.clock : Clock::real()),
      stall_after_(options.stall_after),
      while_waiting_(options.while_waiting),
      members_(size) {}

thread_local const Team::Run* Team::run_here = nullptr;

Team::~Team() {
  stop();
}

void Team::stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  threads_.clear();
}

void Team::start_threads() {
  threads_.resize(size_ - 1);
  for (std::uint32_t member = 1; member < size_; ++member) {
    std::unique_ptr<Thread>& thread = threads_[member - 1];
    if (thread) continue;
    try {
      thread = std::make_unique<Thread>(fmt::format("replica {}", member),
                                        [this, member] { thread_body(member); });
    } catch (const std::exception& error) {
      throw ResourceError(
          fmt::format("run: no thread for replica {} of {}: {}", member, size_, error.what()), {},
          "use fewer devices, or allow more threads");
    }
  }
}

void Team::thread_body(std::uint32_t member) {
  std::uint64_t seen = 0;
  while (true) {
    std::shared_ptr<Run> run;
    {
      Lock lock(mutex_);
      while (!stopping_ && (runs_ == seen || !current_)) changed_.wait(mutex_);
      if (stopping_) return;
      seen = runs_;
      if (members_[member].doing == Doing::absent) continue;
      run = current_;
    }
    // Abandoned: nothing may be accessed from here on, since the team may be destroyed with the
    // run.
    if (!perform(member, run)) return;
  }
}

bool Team::perform(std::uint32_t member, const std::shared_ptr<Run>& run) {
  std::exception_ptr failure;
  const Run* const before = std::exchange(run_here, run.get());
  try {
    run->body(member);
  } catch (...) {
    failure = std::current_exception();
  }
  run_here = before;
  Lock lock(mutex_);
  if (run->abandoned) {
    --abandoned_threads();
    return false;
  }
  members_[member].doing = Doing::returned;
  if (failure) {
    fail(member, std::move(failure));
  } else if (!first_) {
    if (auto missing = absence()) fail(member, std::move(missing));
  }
  --running_;
  changed_.notify_all();
  return true;
}

/// The first failure is the cause, and wakes every member that waits; later ones are kept for the
/// report.
void Team::fail(std::uint32_t member, std::exception_ptr cause) {
  if (first_) {
    // A cancellation follows from the first cause and adds nothing.
    if (cause != first_ && !is_cancelled(cause)) members_[member].further = std::move(cause);
    return;
  }
  first_ = std::move(cause);
  first_member_ = member;
  changed_.notify_all();
}

std::vector<std::uint32_t> Team::members(Doing doing) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t member = 0; member < size_; ++member)
    if (members_[member].doing == doing) found.push_back(member);
  return found;
}

/// An error if a member waits for one that has returned.
std::exception_ptr Team::absence() const {
  const auto waiting = members(Doing::waiting);
  const auto returned = members(Doing::returned);
  if (waiting.empty() || returned.empty()) return nullptr;
  return std::make_exception_ptr(ConfigError(
      fmt::format("{}: {} returned without it, {} called it", members_[waiting.front()].word,
                  replicas_text(returned), replicas_text(waiting)),
      {}, "call it on every replica that has rows, or use reduce after run"));
}

void Team::throw_cancelled(std::uint32_t member, const std::string& word) const {
  throw CancelledError(fmt::format("{}: replica {} was cancelled: replica {} failed first: {}",
                                   word, member, first_member_, text_of(first_)));
}

void Team::complete(std::uint32_t member, const Combine& combine) {
  std::vector<detail::Part> parts;
  for (std::uint32_t other = 0; other < size_; ++other) {
    Member& its = members_[other];
    parts.push_back(its.doing == Doing::waiting ? std::move(its.part) : detail::Part{});
    if (its.doing == Doing::waiting && its.word != members_[member].word)
      throw ConfigError(fmt::format("replica {} is in {}, replica {} in {}", member,
                                    members_[member].word, other, its.word),
                        {}, "call the same collectives in the same order on every replica");
  }
  outcome_ = combine(parts);
  for (Member& its : members_)
    if (its.doing == Doing::waiting) its.doing = Doing::computing;
  ++meeting_;
  changed_.notify_all();
}

Tensor Team::meet(std::uint32_t member, const std::string& word, const detail::Part& part,
                  const Combine& combine) {
  Lock lock(mutex_);
  const Run* const run = run_here;
  const auto throw_if_abandoned = [&] {
    if (run != nullptr && run->abandoned)
      throw CancelledError(
          fmt::format("{}: replica {} was cancelled: the step was interrupted", word, member));
  };
  throw_if_abandoned();
  if (first_) throw_cancelled(member, word);
  const std::uint64_t meeting = meeting_;
  Member& own = members_[member];
  own.word = word;
  own.part = part;
  own.doing = Doing::waiting;
  if (members(Doing::computing).empty()) {
    try {
      if (auto missing = absence()) std::rethrow_exception(missing);
      complete(member, combine);
    } catch (...) {
      own.doing = Doing::computing;
      fail(member, std::current_exception());
      throw;
    }
    return outcome_;
  }
  // A member that has returned will not call it, regardless of the others.
  if (auto missing = absence()) {
    own.doing = Doing::computing;
    fail(member, missing);
    std::rethrow_exception(missing);
  }
  try {
    const trace::BlockedSpan waiting(trace::blocked_here().replicas);
    wait(word.c_str(), [&]() PENSTOCK_REQUIRES(mutex_) {
      return meeting_ != meeting || first_ || (run != nullptr && run->abandoned);
    });
  } catch (...) {  // of `while_waiting`
    throw_if_abandoned();
    own.doing = Doing::computing;
    if (current_) current_->interrupted = true;
    throw;
  }
  throw_if_abandoned();
  // All must arrive before the next collective can end, so the outcome is still that of this one.
  if (meeting_ != meeting) return outcome_;
  own.doing = Doing::computing;
  throw_cancelled(member, word);
}

bool Team::cancelled() const {
  Lock lock(mutex_);
  return first_ != nullptr || (run_here != nullptr && run_here->abandoned);
}

/// Calls `while_waiting`, without the lock.
void Team::look_up() {
  if (!while_waiting_) return;
  mutex_.unlock();
  try {
    while_waiting_();
  } catch (...) {
    mutex_.lock();
    throw;
  }
  mutex_.lock();
}

/// Waits until `done`, and reports which members it waits for if that takes long.
template <typename Done>
void Team::wait(const char* who, Done done) {
  // A virtual clock wakes no thread, so the wait polls it.
  constexpr std::chrono::milliseconds kLook{100};
  const Nanoseconds start = clock_.now();
  Nanoseconds next = stall_after_;
  while (!done()) {
    changed_.wait_for(mutex_, std::min<std::chrono::nanoseconds>(kLook, stall_after_));
    if (!done()) look_up();
    const Nanoseconds waited = clock_.now() - start;
    if (waited < next || done()) continue;
    next *= 2;
    const std::string text =
        fmt::format("{}: waiting for {} s for {}, which is still computing", who,
                    std::chrono::duration_cast<std::chrono::seconds>(waited).count(),
                    replicas_text(members(Doing::computing)));
    // The sink is a user's function.
    mutex_.unlock();
    report(text);
    mutex_.lock();
  }
}

std::string Team::further_text() const {
  std::vector<std::string> lines;
  for (std::uint32_t member = 0; member < size_; ++member)
    if (members_[member].further)
      lines.push_back(fmt::format("replica {}: {}", member, text_of(members_[member].further)));
  if (lines.empty()) return {};
  return fmt::format("run: replica {} failed first: {}; then\n  {}", first_member_, text_of(first_),
                     fmt::join(lines, "\n  "));
}

/// Waits until every member has returned. After an interruption the others have half a second.
void Team::await_others(Run& run) {
  try {
    wait("run",
         [&]() PENSTOCK_REQUIRES(mutex_) { return running_ == 0 || (first_ && run.interrupted); });
  } catch (...) {
    run.interrupted = true;
    if (!first_) fail(0, std::current_exception());
  }
  constexpr auto kPatience = std::chrono::milliseconds(500);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (running_ > 0) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return abandon(run);
    changed_.wait_for(mutex_, left);
  }
}

void Team::abandon(Run& run) {
  run.abandoned = true;
  std::vector<std::uint32_t> stuck;
  for (std::uint32_t member = 1; member < size_; ++member) {
    const Doing doing = members_[member].doing;
    if (doing != Doing::computing && doing != Doing::waiting) continue;
    stuck.push_back(member);
    threads_[member - 1]->detach();
    threads_[member - 1].reset();
    ++abandoned_threads();
  }
  running_ = 0;
  changed_.notify_all();
  const std::string text = fmt::format(
      "run: interrupted; {} did not return within 0.5 s and was abandoned", replicas_text(stuck));
  mutex_.unlock();  // the sink is a user's function
  report(text);
  mutex_.lock();
}

void Team::run(const std::vector<bool>& takes_part, std::function<void(std::uint32_t)> body) {
  const auto run = std::make_shared<Run>(std::move(body));
  {
    Lock lock(mutex_);
    if (busy_)
      throw ConfigError("run: a step of this strategy is running in another thread", {},
                        "run steps one after the other");
    busy_ = true;
  }
  std::exception_ptr cause;
  std::string further;
  try {
    if (size_ > 1) start_threads();
  } catch (...) {
    Lock lock(mutex_);
    busy_ = false;
    throw;
  }
  {
    Lock lock(mutex_);
    for (std::uint32_t member = 0; member < size_; ++member) {
      members_[member].doing = takes_part[member] ? Doing::computing : Doing::absent;
      if (takes_part[member]) ++running_;
    }
    current_ = run;
    ++runs_;
    changed_.notify_all();
  }
  if (takes_part[0]) perform(0, run);
  {
    Lock lock(mutex_);
    await_others(*run);
    further = further_text();
    cause = std::exchange(first_, nullptr);
    for (Member& member : members_) member = Member{};
    outcome_ = Tensor();
    current_ = nullptr;
    busy_ = false;
  }
  if (!further.empty()) report(further);
  if (cause) std::rethrow_exception(cause);
}

}  // namespace penstock

#include "penstock/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "penstock/error.h"

namespace penstock {
namespace {

class Alone final : public Coordinator {
 public:
  [[nodiscard]] std::uint32_t rank() const override { return 0; }
  [[nodiscard]] std::uint32_t world() const override { return 1; }
  [[nodiscard]] std::vector<std::string> gather(const std::string&,
                                                const std::string& text) override {
    return {text};
  }
};

}  // namespace

void Coordinator::barrier() {
  (void)gather("barrier", "");
}

void Coordinator::compare(const std::string& what, const std::string& value) {
  const auto values = gather("compare " + what, value);
  for (std::size_t other = 1; other < values.size(); ++other)
    if (values[other] != values[0])
      throw ConfigError(fmt::format("the ranks differ in {}: rank 0 has {}, rank {} has {}", what,
                                    values[0], other, values[other]),
                        {}, "every rank must run the same program on the same data");
}

std::uint64_t Coordinator::share(std::uint64_t value) {
  return std::stoull(gather("share", std::to_string(value))[0]);
}

std::uint64_t Coordinator::agree(std::uint64_t count) {
  std::uint64_t smallest = count;
  for (const std::string& other : gather("agree", std::to_string(count)))
    smallest = std::min<std::uint64_t>(smallest, std::stoull(other));
  return smallest;
}

double Coordinator::sum(double value) {
  // In rank order, not in order of arrival, so that the result is bit-identical each time.
  double total = 0;
  for (const std::string& bits : gather("sum", std::to_string(std::bit_cast<std::uint64_t>(value))))
    total += std::bit_cast<double>(std::uint64_t{std::stoull(bits)});
  return total;
}

Coordinator& Coordinator::alone() {
  static Alone coordinator;
  return coordinator;
}

/// Each rank contributes a word and a text, and receives all texts in rank order.
class LocalGroup::Meeting {
 public:
  explicit Meeting(std::uint32_t world) : world_(world), seats_(world) {}

  [[nodiscard]] std::uint32_t world() const { return world_; }

  void take_seat(std::uint32_t rank) {
    Lock lock(mutex_);
    if (seats_[rank].taken)
      throw ConfigError(fmt::format("coordinator: two ranks have the id {}", rank), {},
                        "give every process its own rank, from 0 on");
    seats_[rank].taken = true;
  }

  void leave(std::uint32_t rank) {
    Lock lock(mutex_);
    seats_[rank].left = true;
    changed_.notify_all();
  }

  std::vector<std::string> gather(std::uint32_t rank, const std::string& word, std::string text) {
    Lock lock(mutex_);
    const std::uint64_t round = round_;
    seats_[rank].word = word;
    seats_[rank].text = std::move(text);
    if (++present_ == world_) {
      outcome_ = seats_;
      present_ = 0;
      ++round_;
      changed_.notify_all();
    }
    while (round_ == round) {
      for (std::size_t other = 0; other < seats_.size(); ++other)
        if (seats_[other].left) {
          --present_;
          throw CancelledError(fmt::format("coordinator: rank {} waits in {}, but rank {} has left",
                                           rank, word, other));
        }
      changed_.wait(mutex_);
    }
    // The next round cannot end before this rank has joined it, so the outcome is still this
    // round's.
    std::vector<std::string> texts;
    for (std::size_t other = 0; other < outcome_.size(); ++other) {
      if (outcome_[other].word != outcome_[0].word)
        throw ConfigError(fmt::format("coordinator: rank 0 is in {}, rank {} in {}",
                                      outcome_[0].word, other, outcome_[other].word),
                          {}, "every rank must run the same program on the same data");
      texts.push_back(outcome_[other].text);
    }
    return texts;
  }

 private:
  struct Seat {
    bool taken = false;
    bool left = false;
    std::string word;
    std::string text;
  };
  const std::uint32_t world_;
  Mutex mutex_;
  Condition changed_;
  std::vector<Seat> seats_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<Seat> outcome_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t present_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t round_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

class LocalGroup::Member final : public Coordinator {
 public:
  Member(std::shared_ptr<Meeting> meeting, std::uint32_t rank, std::uint32_t world)
      : meeting_(std::move(meeting)), rank_(rank), world_(world) {}
  ~Member() override { meeting_->leave(rank_); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t world() const override { return world_; }
  [[nodiscard]] std::vector<std::string> gather(const std::string& word,
                                                const std::string& text) override {
    return meeting_->gather(rank_, word, text);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  std::uint32_t rank_;
  std::uint32_t world_;
};

LocalGroup::LocalGroup(std::uint32_t world) : meeting_(std::make_shared<Meeting>(world)) {
  if (world == 0) throw ConfigError("coordinator: the world has no ranks");
}

std::unique_ptr<Coordinator> LocalGroup::join(std::uint32_t rank) {
  const std::uint32_t world = meeting_->world();
  if (rank >= world)
    throw ConfigError(fmt::format("coordinator: rank {} is out of range: {} ranks", rank, world),
                      {}, "ranks count from 0");
  meeting_->take_seat(rank);
  return std::make_unique<Member>(meeting_, rank, world);
}

}  // namespace penstock

#pragma once
// Flows one after the other: the parts of a concatenate, or the rounds of a repeat.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plan/flow_kinds.h"

namespace penstock {

/// One part repeated in `rounds` turns, or several parts in one turn.
template <typename Kind>
struct Series {
  std::vector<std::unique_ptr<const typename Kind::InputFlow>> parts;
  std::uint64_t rounds = 1;

  [[nodiscard]] bool repeats() const { return parts.size() == 1; }
};

template <typename Kind>
class SeriesCursor final : public Kind::Input {
 public:
  SeriesCursor(const Series<Kind>& series, Turn turn)
      : series_(series), turn_(turn), end_(series.rounds * series.parts.size()) {}

  typename Kind::Pulled pull(typename Kind::Out out, Pulling& pulling) override {
    return Kind::pulled(next(out, pulling));
  }
  void save(Anchor& anchor) override {
    anchor.numbers.push_back(part_);
    if (saves_any()) anchor.numbers.push_back(any_ ? 1 : 0);
    anchor.numbers.push_back(input_ ? 1 : 0);
    if (input_) input_->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    part_ = std::min(anchor.number(), end_);
    any_ = saves_any() && anchor.number() != 0;
    if (anchor.number() == 0 || part_ == end_) return {};
    open_part();
    return input_->restore(anchor, pulling);
  }

 private:
  Result<std::size_t> next(typename Kind::Out out, Pulling& pulling) {
    const std::size_t size = Kind::size(out);
    std::size_t done = 0;
    while (done < size && part_ < end_) {
      if (!input_) open_part();
      auto got = series_.repeats()
                     ? Kind::pull(*input_, out, done, size - done, pulling)
                     : Kind::pull_as(*series_.parts[part_], *input_, out, done, pulling);
      if (!got) return got;
      done += *got;
      any_ = any_ || *got > 0;
      if (done == size) break;
      input_.reset();
      ++part_;
      // An empty round ends a repeat: 10^12 of them would take forever.
      if (!any_ && series_.repeats()) part_ = end_;
      any_ = false;
    }
    return done;
  }

  /// Saved if a state needs it; always for steps, for compatibility with the first state format.
  [[nodiscard]] bool saves_any() const {
    return std::is_same_v<Kind, OverSteps> || series_.repeats();
  }
  void open_part() {
    if (series_.repeats()) {
      input_ = series_.parts.front()->open(
          {turn_.pass, nested_round(turn_.round, series_.rounds, part_)});
    } else {
      input_ = series_.parts[part_]->open(turn_);
    }
  }

  const Series<Kind>& series_;
  const Turn turn_;
  const std::uint64_t end_;
  std::unique_ptr<typename Kind::Input> input_;
  std::uint64_t part_ = 0;
  bool any_ = false;  // this part has delivered elements
};

template <typename Kind>
class SeriesFlow final : public Kind::InputFlow {
 public:
  template <typename... Base>
  explicit SeriesFlow(Series<Kind> series, Base&&... base)
      : Kind::InputFlow(std::forward<Base>(base)...), series_(std::move(series)) {}
  [[nodiscard]] std::unique_ptr<typename Kind::Input> open(Turn turn) const override {
    return std::make_unique<SeriesCursor<Kind>>(series_, turn);
  }

 private:
  const Series<Kind> series_;
};

inline FlowPtr series_flow(Series<OverRows> series, const ElementSpec& spec) {
  IdSpace ids;
  for (const FlowPtr& part : series.parts)
    ids.parts.insert(ids.parts.end(), part->ids().parts.begin(), part->ids().parts.end());
  return std::make_unique<SeriesFlow<OverRows>>(std::move(series), spec, std::move(ids));
}
inline StepFlowPtr series_flow(Series<OverSteps> series) {
  return std::make_unique<SeriesFlow<OverSteps>>(std::move(series));
}

}  // namespace penstock

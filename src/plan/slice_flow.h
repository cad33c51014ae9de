#pragma once
// Every n-th row or step from a start on, up to a limit: take, skip and shard.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "plan/flow_kinds.h"

namespace penstock {

struct Slice {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
  std::uint64_t count = UINT64_MAX;
};

/// Pulls nothing beyond the last requested element.
template <typename Kind>
class SliceCursor final : public CursorOver<typename Kind::Input, typename Kind::Input> {
 public:
  SliceCursor(const typename Kind::InputFlow& input, Turn turn, const Slice& slice)
      : CursorOver<typename Kind::Input, typename Kind::Input>(input.open(turn)),
        flow_(input),
        slice_(slice),
        place_{slice.first, slice.count} {}

  typename Kind::Pulled pull(typename Kind::Out out, Pulling& pulling) override {
    return Kind::pulled(next(out, pulling));
  }

 private:
  Result<std::size_t> next(typename Kind::Out out, Pulling& pulling) {
    const std::size_t wanted = std::min<std::uint64_t>(Kind::size(out), left_);
    if (wanted == 0) return std::size_t{0};
    auto got = slice_.stride == 1 ? following(out, wanted, pulling) : every(out, wanted, pulling);
    if (got) left_ -= *got;
    return got;
  }

  Result<std::size_t> following(typename Kind::Out out, std::size_t wanted, Pulling& pulling) {
    if (before_ > 0) {
      auto done = discard(out, pulling);
      if (!done) return std::move(done.failure());
      if (before_ > 0) return std::size_t{0};  // the input has ended
    }
    return Kind::pull(*this->input_, out, 0, wanted, pulling);
  }

  Result<void> discard(typename Kind::Out out, Pulling& pulling) {
    if constexpr (std::is_same_v<Kind, OverRows>) {
      auto skipped = skip_rows(*this->input_, flow_.spec(), before_, pulling);
      if (!skipped) return std::move(skipped.failure());
      before_ = 0;
    } else {
      for (; before_ > 0; --before_) {
        auto more = this->input_->pull(out, pulling);
        if (!more) return std::move(more.failure());
        if (!*more) break;
      }
    }
    return {};
  }

  Result<std::size_t> every(typename Kind::Out out, std::size_t wanted, Pulling& pulling) {
    if constexpr (std::is_same_v<Kind, OverRows>) {
      return every_row(out, wanted, pulling);
    } else {
      auto got = following(out, wanted, pulling);
      if (got && *got > 0) before_ = slice_.stride - 1;
      return got;
    }
  }

  /// Pulls many rows at a time and picks the requested ones.
  Result<std::size_t> every_row(const BlockView& out, std::size_t all, Pulling& pulling) {
    constexpr std::uint64_t kAtOnce = 1024;
    if (!buffer_) buffer_.emplace(flow_.spec());
    std::size_t done = 0;
    while (done < all) {
      // Stops at the last row that is needed.
      const std::uint64_t more = std::min(all - done - 1, kAtOnce);
      const std::uint64_t needed = before_ >= kAtOnce || slice_.stride >= kAtOnce
                                       ? kAtOnce
                                       : before_ + more * slice_.stride + 1;
      const std::size_t wanted =
          before_ < kAtOnce && more == 0 ? before_ + 1 : std::min(needed, kAtOnce);
      buffer_->reserve(wanted);
      auto got = this->input_->pull(buffer_->rows(0, wanted), pulling);
      if (!got) return got;
      const Scratch::Frame frame(pulling.context.scratch);
      auto* const picks = pulling.context.scratch.array<std::uint64_t>(*got);
      std::size_t picked = 0;
      for (std::uint64_t row = before_; row < *got; row += slice_.stride) picks[picked++] = row;
      pick_rows(buffer_->rows(0, *got), {picks, picked},
                cut_rows(out, done, picked, pulling.context.scratch));
      before_ = before_ + picked * slice_.stride - *got;
      done += picked;
      if (*got < wanted) break;
    }
    return done;
  }

  /// Rows write only the number that changes, for compatibility with the first state format.
  std::span<std::uint64_t> place() override {
    if constexpr (std::is_same_v<Kind, OverSteps>) return place_;
    return {slice_.count == UINT64_MAX ? &before_ : &left_, 1};
  }

  const typename Kind::InputFlow& flow_;
  const Slice& slice_;
  std::array<std::uint64_t, 2> place_;
  std::uint64_t& before_ = place_[0];  // elements to discard before the next one
  std::uint64_t& left_ = place_[1];
  std::optional<RowBuffer> buffer_;
};

inline FlowPtr slice_flow(FlowPtr input, const Slice& slice) {
  const ElementSpec spec = input->spec();
  return same_rows_over<SliceCursor<OverRows>>(std::move(input), spec, slice);
}
inline StepFlowPtr slice_flow(StepFlowPtr input, const Slice& slice) {
  return steps_over<SliceCursor<OverSteps>>(std::move(input), slice);
}

}  // namespace penstock

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <penstock/detail/replica_value.h>

namespace penstock {

/// One value for each replica of this process, and the number of samples that each value covers.
template <typename T>
class PerReplica {
 public:
  /// `values[r]` covers `counts[r]` samples; counts default to one each.
  explicit PerReplica(std::vector<T> values, std::vector<std::uint64_t> counts = {})
      : shares_(values.size()) {
    for (T& value : values) values_.emplace_back(std::move(value));
    for (std::size_t r = 0; r < shares_.size(); ++r)
      shares_[r].rows = shares_[r].valid = r < counts.size() ? counts[r] : 1;
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// False if the replica's share was empty and nothing was computed there.
  [[nodiscard]] bool has(std::size_t replica) const {
    return replica < size() && values_[replica].has_value();
  }
  /// Throws ConfigError if the replica has no value.
  [[nodiscard]] const T& operator[](std::size_t replica) const {
    if (!has(replica)) detail::throw_no_value(replica, size());
    return *values_[replica];
  }
  [[nodiscard]] std::uint64_t count(std::size_t replica) const { return shares_.at(replica).valid; }
  /// Samples of all replicas of this process.
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const detail::ShareCount& share : shares_) all += share.valid;
    return all;
  }

 private:
  friend class Strategy;
  explicit PerReplica(std::vector<detail::ShareCount> shares)
      : values_(shares.size()), shares_(std::move(shares)) {}
  [[nodiscard]] std::vector<detail::Part> parts() const {
    std::vector<detail::Part> parts(size());
    for (std::size_t r = 0; r < size(); ++r) {
      if (values_[r]) parts[r] = detail::part_of(*values_[r], shares_[r].valid);
      parts[r].share = &shares_[r];
    }
    return parts;
  }

  std::vector<std::optional<T>> values_;
  std::vector<detail::ShareCount> shares_;
};

}  // namespace penstock

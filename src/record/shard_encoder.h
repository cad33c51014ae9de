#pragma once
// Samples as records of a file: the counterpart of a decoder.

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/spec.h"

namespace penstock {

/// Used by one thread.
class ShardEncoder {
 public:
  virtual ~ShardEncoder() = default;
  /// True if `set_spec` must be called before the first sample.
  [[nodiscard]] virtual bool needs_spec() const { return false; }
  /// What the samples of all files are. Throws ConfigError for what the format cannot hold.
  virtual void set_spec(const ElementSpec& /*spec*/) {}
  /// Appends sample `number` of the dataset. Throws ConfigError for what the format cannot hold.
  virtual void append(std::string& out, const Sample& sample, std::uint64_t number) = 0;
  /// Bytes of samples that `append` keeps back, about.
  [[nodiscard]] virtual std::uint64_t pending_bytes() const { return 0; }
  /// Appends the end of a file; the next sample begins another one.
  virtual void finish(std::string& /*out*/) {}
};

/// Throws ConfigError for an unknown format.
std::unique_ptr<ShardEncoder> make_shard_encoder(const std::string& format);

}  // namespace penstock

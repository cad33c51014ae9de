#pragma once
// Samples as records of a file: the counterpart of a decoder.

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/sample.h"

namespace penstock {

/// Used by one thread.
class ShardEncoder {
 public:
  virtual ~ShardEncoder() = default;
  /// Appends sample `number` of the dataset. Throws ConfigError for what the format cannot hold.
  virtual void append(std::string& out, const Sample& sample, std::uint64_t number) = 0;
  /// Appends the end of a file.
  virtual void finish(std::string& /*out*/) {}
};

/// Throws ConfigError for an unknown format.
std::unique_ptr<ShardEncoder> make_shard_encoder(const std::string& format);

}  // namespace penstock

#pragma once
// Rows of an array that differ in length, or that overlap.

#include <memory>
#include <string>

#include "source/source.h"

namespace penstock {

/// Row i is values[offsets[i] .. offsets[i + 1]).
std::shared_ptr<const Source> make_ragged(Tensor values, Tensor offsets, std::string name);
/// Row i is values[i * stride .. i * stride + length).
std::shared_ptr<const Source> make_windows(Tensor values, std::int64_t length, std::int64_t stride,
                                           std::string name);
/// Windows of mapped files.
std::shared_ptr<const Source> make_tokens(Io& io, const std::string& pattern, Dtype dtype,
                                          std::int64_t length, std::int64_t stride);
/// The documents of a .bin file by its .idx file.
std::shared_ptr<const Source> make_megatron(const std::string& prefix);
/// The same with the bytes of both files.
std::shared_ptr<const Source> read_megatron(const std::string& prefix, Tensor index,
                                            const Tensor& tokens);

}  // namespace penstock

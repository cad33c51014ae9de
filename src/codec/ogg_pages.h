#pragma once
// The pages of an Ogg file, checked before a library sees them: libsndfile and libvorbis lose
// memory and frames on damaged ones.

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/result.h"

namespace penstock {

/// What follows from the pages of a file.
struct OggPages {
  std::int64_t position = 0;  // of the last complete page: frames so far
  bool ended = false;         // the last page says that it is the last
};
/// Walks through all pages. A page that does not match its checksum, bytes between pages, and more
/// than one stream are a Failure; a file that ends early is not.
Result<OggPages> check_ogg_pages(std::span<const std::byte> bytes);

/// The checksum of a page whose own four bytes of it are taken for zero.
std::uint32_t ogg_checksum(std::span<const std::byte> page);

}  // namespace penstock

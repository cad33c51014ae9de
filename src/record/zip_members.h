#pragma once
// The members of a zip archive, as npz files are. Stored ones are where their bytes are in the
// file; those packed with deflate are unpacked as a whole. Opens nothing: the caller reads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "penstock/io.h"
#include "penstock/result.h"

namespace penstock {

/// Reads out.size() bytes of the archive from `offset`.
using ReadPart = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> out)>;

struct ZipMember {
  std::string name;
  std::uint64_t at = 0;            // of its bytes, in the archive
  std::uint64_t packed_bytes = 0;  // in the archive
  std::uint64_t bytes = 0;         // unpacked
  std::uint32_t crc = 0;           // of the unpacked bytes
  bool deflated = false;           // if not, it is stored as it is
};

/// The members of an archive of `archive_bytes` bytes, without folders, in the order of its
/// directory; zip64 too. All are within the archive, and no two have one name. A Failure for
/// damage, encryption, methods other than stored and deflate, archives in several files, and sizes
/// that cannot be true.
Result<std::vector<ZipMember>> list_zip_members(const ReadPart& read, std::uint64_t archive_bytes);

/// The bytes of a member, whether stored or deflated, with its checksum checked. Takes
/// `member.bytes` of memory, which the caller has compared with its limit, and a little more.
Result<Bytes> unpack_zip_member(const ReadPart& read, const ZipMember& member);

}  // namespace penstock

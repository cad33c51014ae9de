#include "record/zip_members.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "codec/formats.h"

namespace penstock {
namespace {

constexpr std::uint64_t kDirectoryBytesMax = std::uint64_t{64} << 20;
constexpr std::uint64_t kMembersMax = 100'000;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kLocatorBytes = 20;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::uint32_t kWhole16 = 0xFFFF;  // the number is in the zip64 part
constexpr std::uint32_t kWhole32 = 0xFFFFFFFF;

std::uint64_t little64(EncodedBytes bytes, std::size_t at) {
  return little32(bytes, at) | std::uint64_t{little32(bytes, at + 4)} << 32U;
}

Failure damaged(const std::string& what) {
  return Failure{fmt::format("the zip archive is damaged: {}", what),
                 {},
                 "write it again, or fetch it again if it was copied"};
}

Result<Bytes> read_part(const ReadPart& read, std::uint64_t offset, std::uint64_t length) {
  Bytes bytes(length);
  if (auto done = read(offset, bytes); !done) return std::move(done.failure());
  return bytes;
}

/// The part of the archive that lists its members.
struct Directory {
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  std::uint64_t members = 0;
  std::uint64_t end = 0;  // what follows it begins here
};

/// The position of the end record in `tail`, the end of the archive. Its comment is the last thing
/// in the archive, and may contain anything.
std::optional<std::size_t> find_end(EncodedBytes tail) {
  if (tail.size() < kEndBytes) return std::nullopt;
  for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;)
    if (little32(tail, at) == 0x06054b50 && at + kEndBytes + little16(tail, at + 20) == tail.size())
      return at;
  return std::nullopt;
}

/// Replaces the numbers that did not fit by those of the zip64 part, if there is one.
Result<void> read_end64(const ReadPart& read, std::uint64_t end_at, Directory& directory) {
  if (end_at < kLocatorBytes + kEnd64Bytes) return {};
  const auto locator = read_part(read, end_at - kLocatorBytes, kLocatorBytes);
  if (!locator) return locator.failure();
  if (little32(*locator, 0) != 0x07064b50) return {};
  const std::uint64_t at = little64(*locator, 8);
  if (at > end_at - kLocatorBytes - kEnd64Bytes) return damaged("its zip64 end is outside of it");
  const auto end = read_part(read, at, kEnd64Bytes);
  if (!end) return end.failure();
  if (little32(*end, 0) != 0x06064b50) return damaged("its zip64 end is missing");
  directory = {little64(*end, 48), little64(*end, 40), little64(*end, 32), at};
  return {};
}

Result<Directory> find_directory(const ReadPart& read, std::uint64_t archive_bytes) {
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(archive_bytes, kWhole16 + kEndBytes);
  const auto tail = read_part(read, archive_bytes - tail_bytes, tail_bytes);
  if (!tail) return tail.failure();
  const auto found = find_end(*tail);
  if (!found) return damaged("it has no end, so it may be truncated");
  const EncodedBytes end((*tail).data() + *found, kEndBytes);
  const std::uint64_t end_at = archive_bytes - tail_bytes + *found;
  Directory directory{little32(end, 16), little32(end, 12), little16(end, 10), end_at};
  if (little16(end, 4) != little16(end, 6) ||
      (little16(end, 4) != 0 && little16(end, 4) != kWhole16))
    return Failure{"the zip archive is one of several parts", {}, "join them to one archive"};
  if (directory.at == kWhole32 || directory.bytes == kWhole32 || directory.members == kWhole16)
    if (auto done = read_end64(read, end_at, directory); !done) return std::move(done.failure());
  if (directory.bytes > directory.end || directory.at > directory.end - directory.bytes)
    return damaged("its directory is not within it");
  if (directory.bytes > kDirectoryBytesMax || directory.members > kMembersMax)
    return Failure{fmt::format("the zip archive lists {} members in {} bytes; the limits are {} "
                               "and {}",
                               directory.members, directory.bytes, kMembersMax, kDirectoryBytesMax),
                   {},
                   "store the arrays in several archives"};
  return directory;
}

/// The numbers of an entry that did not fit into it, from its extra fields.
Result<void> read_extra64(EncodedBytes extra, ZipMember& member, std::uint64_t& local_at) {
  while (extra.size() >= 4) {
    const std::uint32_t id = little16(extra, 0);
    const std::size_t size = little16(extra, 2);
    extra = extra.subspan(4);
    if (size > extra.size()) return damaged("an extra field is cut");
    EncodedBytes field = extra.first(size);
    extra = extra.subspan(size);
    if (id != 1) continue;
    for (std::uint64_t* const number : {&member.bytes, &member.packed_bytes, &local_at}) {
      if (*number != kWhole32) continue;
      if (field.size() < 8) return damaged("a zip64 field is cut");
      *number = little64(field, 0);
      field = field.subspan(8);
    }
    return {};
  }
  return {};
}

Result<void> check_member(const ZipMember& member, unsigned method, unsigned flags) {
  const std::string name = printable(member.name);
  if ((flags & (1U | 1U << 6U | 1U << 13U)) != 0)
    return Failure{
        fmt::format("the zip archive's {} is encrypted", name), {}, "store it without a password"};
  if (method != 0 && method != 8)
    return Failure{
        fmt::format("the zip archive's {} is compressed by method {}; only stored and deflate "
                    "(0 and 8) are supported",
                    name, method),
        {},
        "write it with np.savez or np.savez_compressed"};
  if (method == 0 && member.packed_bytes != member.bytes)
    return damaged(fmt::format("{} is stored, but has two sizes", name));
  // Deflate cannot do better than 1032 to 1.
  if (member.bytes / 1032 > member.packed_bytes + 1)
    return damaged(
        fmt::format("{} claims to be {} bytes in {}", name, member.bytes, member.packed_bytes));
  if (!is_utf8(member.name) || member.name.empty() || member.name.find('\0') != std::string::npos)
    return damaged(fmt::format("\"{}\" is not a name", name));
  return {};
}

/// Finds the bytes of a member behind its local header, which repeats its name.
Result<void> locate(const ReadPart& read, std::uint64_t local_at, std::uint64_t limit,
                    ZipMember& member) {
  const auto outside = [&] {
    return damaged(fmt::format("{} is not within it", printable(member.name)));
  };
  const std::uint64_t least = kLocalBytes + member.name.size();
  if (local_at > limit || limit - local_at < least) return outside();
  const auto local = read_part(read, local_at, least);
  if (!local) return local.failure();
  const std::size_t name_bytes = little16(*local, 26);
  const std::string_view name(reinterpret_cast<const char*>((*local).data()) + kLocalBytes,
                              member.name.size());
  if (little32(*local, 0) != 0x04034b50 || name_bytes != member.name.size() || name != member.name)
    return damaged(fmt::format("{} is not where the directory says", printable(member.name)));
  member.at = local_at + least + little16(*local, 28);
  if (member.at > limit || member.packed_bytes > limit - member.at) return outside();
  return {};
}

}  // namespace

Result<std::vector<ZipMember>> list_zip_members(const ReadPart& read, std::uint64_t archive_bytes) {
  const auto found = find_directory(read, archive_bytes);
  if (!found) return found.failure();
  const Directory& directory = *found;
  const auto listed = read_part(read, directory.at, directory.bytes);
  if (!listed) return listed.failure();
  std::vector<ZipMember> members;
  std::set<std::string> names;
  EncodedBytes left(*listed);
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    if (left.size() < kEntryBytes || little32(left, 0) != 0x02014b50)
      return damaged(fmt::format("entry {} of its directory is cut", i));
    const std::size_t name_bytes = little16(left, 28);
    const std::size_t extra_bytes = little16(left, 30);
    const std::size_t entry_bytes = kEntryBytes + name_bytes + extra_bytes + little16(left, 32);
    if (entry_bytes > left.size()) return damaged(fmt::format("entry {} is cut", i));
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(left.data()) + kEntryBytes, name_bytes);
    member.crc = little32(left, 16);
    member.packed_bytes = little32(left, 20);
    member.bytes = little32(left, 24);
    member.deflated = little16(left, 10) == 8;
    std::uint64_t local_at = little32(left, 42);
    if (auto done =
            read_extra64(left.subspan(kEntryBytes + name_bytes, extra_bytes), member, local_at);
        !done)
      return std::move(done.failure());
    if (auto done = check_member(member, little16(left, 10), little16(left, 8)); !done)
      return std::move(done.failure());
    left = left.subspan(entry_bytes);
    if (member.name.ends_with('/')) continue;  // a folder
    if (!names.insert(member.name).second)
      return damaged(fmt::format("two members are called {}", printable(member.name)));
    if (auto done = locate(read, local_at, directory.at, member); !done)
      return std::move(done.failure());
    members.push_back(std::move(member));
  }
  return members;
}

namespace {

/// Unpacks a deflated member into `out`, which has its size.
Result<void> inflate_into(const ReadPart& read, const ZipMember& member, Bytes& out) {
  constexpr std::uint64_t kAtOnce = std::uint64_t{256} << 10;
  constexpr std::uint64_t kOutAtOnce = std::uint64_t{1} << 30;  // zlib counts in 32 bits
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closed(&stream, &inflateEnd);
  const std::string name = printable(member.name);
  Bytes packed(std::min(kAtOnce, member.packed_bytes));
  std::uint64_t taken = 0;
  std::uint64_t done = 0;
  int state = Z_OK;
  std::byte none{};  // an empty member has no memory to point to
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && taken < member.packed_bytes) {
      const std::span part(packed.data(), std::min(kAtOnce, member.packed_bytes - taken));
      if (auto got = read(member.at + taken, part); !got) return got;
      taken += part.size();
      stream.next_in = reinterpret_cast<Bytef*>(part.data());
      stream.avail_in = static_cast<uInt>(part.size());
    }
    const std::uint64_t space = std::min(kOutAtOnce, out.size() - done);
    stream.next_out = reinterpret_cast<Bytef*>(space == 0 ? &none : out.data() + done);
    stream.avail_out = static_cast<uInt>(space);
    const uInt before = stream.avail_in;
    state = inflate(&stream, Z_NO_FLUSH);
    const std::uint64_t wrote = space - stream.avail_out;
    done += wrote;
    const bool stuck = wrote == 0 && before == stream.avail_in && stream.avail_in == 0 &&
                       taken == member.packed_bytes;
    if (state == Z_STREAM_END) break;
    if ((state != Z_OK && state != Z_BUF_ERROR) || stuck ||
        (state == Z_BUF_ERROR && stream.avail_in > 0))
      return damaged(
          fmt::format("{} cannot be unpacked, after {} of {} bytes", name, done, out.size()));
  }
  if (done != out.size())
    return damaged(fmt::format("{} unpacks to {} bytes, expected {}", name, done, out.size()));
  return {};
}

std::uint32_t crc_of(const Bytes& bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

Result<Bytes> unpack_zip_member(const ReadPart& read, const ZipMember& member) {
  Bytes bytes(member.bytes);
  auto done = member.deflated ? inflate_into(read, member, bytes) : read(member.at, bytes);
  if (!done) return std::move(done.failure());
  if (!bytes.empty() && crc_of(bytes) != member.crc)
    return damaged(
        fmt::format("the bytes of {} do not match their checksum", printable(member.name)));
  return bytes;
}

}  // namespace penstock

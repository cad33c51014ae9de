#pragma once
// Zip archives and npy files, written by hand.

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::testing {

/// `number` in `bytes` bytes, the low one first.
inline std::string little(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xFF);
  return text;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// An npy file: npy("<f4", "(2, 3)", values).
inline std::string npy(std::string_view descr, std::string_view shape, std::string_view values,
                       std::string_view fortran = "False", int version = 1) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
  header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(version), 2) +
         little(header.size(), version == 1 ? 2 : 4) + header + std::string(values);
}

inline std::string deflated(std::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// What is written about a member; each number may be a lie.
struct ZipPart {
  std::string name;
  std::string stored;  // as it is in the archive
  unsigned method = 0;
  std::uint64_t bytes = 0;  // unpacked
  std::uint32_t crc = 0;
  unsigned flags = 0;
  std::string local_name = name;
};

inline ZipPart zip_part(std::string name, const std::string& content, bool deflate_it = false) {
  const auto crc = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
  return {.name = std::move(name),
          .stored = deflate_it ? deflated(content) : content,
          .method = deflate_it ? 8U : 0U,
          .bytes = content.size(),
          .crc = crc};
}

/// With `zip64` every number that may be in the zip64 part is there.
inline std::string zip(const std::vector<ZipPart>& parts, bool zip64 = false,
                       std::string_view comment = "") {
  constexpr std::uint64_t kThere = 0xFFFFFFFF;
  std::string archive;
  std::string directory;
  for (const ZipPart& part : parts) {
    const std::uint64_t at = archive.size();
    const std::uint64_t packed = part.stored.size();
    const std::string sizes64 =
        little(1, 2) + little(16, 2) + little(part.bytes, 8) + little(packed, 8);
    const std::string numbers = little(part.flags, 2) + little(part.method, 2) + little(0, 4) +
                                little(part.crc, 4) + little(zip64 ? kThere : packed, 4) +
                                little(zip64 ? kThere : part.bytes, 4);
    archive += "PK\x03\x04" + little(20, 2) + numbers + little(part.local_name.size(), 2) +
               little(zip64 ? sizes64.size() : 0, 2) + part.local_name + (zip64 ? sizes64 : "") +
               part.stored;
    const std::string extra = zip64 ? little(0x5455, 2) + little(1, 2) + "x" + little(1, 2) +
                                          little(24, 2) + sizes64.substr(4) + little(at, 8)
                                    : "";
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + numbers +
                 little(part.name.size(), 2) + little(extra.size(), 2) + little(0, 2) +
                 little(0, 2) + little(0, 2) + little(0, 4) + little(zip64 ? kThere : at, 4) +
                 part.name + extra;
  }
  const std::uint64_t at = archive.size();
  archive += directory;
  if (zip64)
    archive += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
               little(parts.size(), 8) + little(parts.size(), 8) + little(directory.size(), 8) +
               little(at, 8) + "PK\x06\x07" + little(0, 4) + little(at + directory.size(), 8) +
               little(1, 4);
  const std::uint64_t members = zip64 ? 0xFFFF : parts.size();
  return archive + "PK\x05\x06" + little(0, 4) + little(members, 2) + little(members, 2) +
         little(zip64 ? kThere : directory.size(), 4) + little(zip64 ? kThere : at, 4) +
         little(comment.size(), 2) + std::string(comment);
}

}  // namespace penstock::testing

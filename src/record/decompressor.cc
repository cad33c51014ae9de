#include "record/decompressor.h"

#include <fmt/format.h>
#include <zlib.h>
#ifdef PENSTOCK_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>

#include "base/check.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using Progress = Decompressor::Progress;

constexpr std::string_view kFetchAgain = "fetch the file again, or write it again";

Failure damaged(Compression kind, std::uint64_t offset, std::string_view reason) {
  return {.message = fmt::format("the {} data is damaged at byte {} of the file: {}",
                                 compression_word(kind), offset, reason),
          .remedy = std::string(kFetchAgain)};
}

Failure ends_early(Compression kind, std::uint64_t offset) {
  if (offset == 0)
    return {
        .message = fmt::format("the file is empty, which is no {} data", compression_word(kind)),
        .remedy = std::string(kFetchAgain)};
  return {.message = fmt::format("the {} data ends in the middle, at byte {} of the file",
                                 compression_word(kind), offset),
          .remedy = std::string(kFetchAgain)};
}

/// Copies the bytes.
class Plain final : public Decompressor {
 public:
  Result<Progress> run(std::span<const std::byte> in, std::span<std::byte> out) override {
    const std::size_t count = std::min(in.size(), out.size());
    if (count != 0) std::memcpy(out.data(), in.data(), count);
    return Progress{count, count};
  }
  Result<void> finish() override { return {}; }
};

/// gzip and zlib.
class Inflater final : public Decompressor {
 public:
  explicit Inflater(Compression kind) : kind_(kind) {
    constexpr int kGzipOnly = 16;  // zlib.h: added to the bits of the window
    const int bits = MAX_WBITS + (kind == Compression::gzip ? kGzipOnly : 0);
    const int status = inflateInit2(&stream_, bits);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    PENSTOCK_CHECK_EQ(status, Z_OK);
  }
  ~Inflater() override { inflateEnd(&stream_); }
  // zlib holds the address of the stream.
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Result<Progress> run(std::span<const std::byte> in, std::span<std::byte> out) override {
    Progress all;
    while (true) {
      if (place_ == Place::between) {
        if (Result<bool> more = start_member(in, all); !more.ok())
          return std::move(more.failure());
        else if (!*more)
          return all;
      }
      const std::size_t read = all.read;
      const std::size_t written = all.written;
      if (Result<void> inflated = inflate_some(in, out, all); !inflated.ok())
        return std::move(inflated.failure());
      const bool stands = all.read == read && all.written == written;
      if (place_ == Place::within && (stands || all.written == out.size())) return all;
    }
  }

  Result<void> finish() override {
    if (place_ == Place::between) return {};
    return ends_early(kind_, offset_);
  }

 private:
  enum class Place : std::uint8_t { within, between };

  /// Whether another member begins in `in`; skips the zeros before it.
  Result<bool> start_member(std::span<const std::byte> in, Progress& all) {
    const std::span<const std::byte> left = in.subspan(all.read);
    const auto zeros = static_cast<std::size_t>(
        std::ranges::find_if(left, [](std::byte byte) { return byte != std::byte{0}; }) -
        left.begin());
    all.read += zeros;
    offset_ += zeros;
    if (zeros == left.size()) return false;
    if (kind_ == Compression::zlib) return damaged(kind_, offset_, "more bytes follow its end");
    PENSTOCK_CHECK_EQ(inflateReset(&stream_), Z_OK);
    place_ = Place::within;
    return true;
  }

  Result<void> inflate_some(std::span<const std::byte> in, std::span<std::byte> out,
                            Progress& all) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const std::size_t in_bytes = std::min(in.size() - all.read, kMost);
    const std::size_t out_bytes = std::min(out.size() - all.written, kMost);
    // zlib does not write to its input; ZLIB_CONST, which says so, is not set everywhere.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data() + all.read));
    stream_.avail_in = static_cast<uInt>(in_bytes);
    Bytef nothing = 0;  // zlib takes no null pointer
    stream_.next_out = out_bytes == 0 ? &nothing : reinterpret_cast<Bytef*>(&out[all.written]);
    stream_.avail_out = static_cast<uInt>(out_bytes);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const std::size_t read = in_bytes - stream_.avail_in;
    all.read += read;
    all.written += out_bytes - stream_.avail_out;
    offset_ += read;
    switch (status) {
      case Z_OK:
      case Z_BUF_ERROR:
        return {};  // there was nothing to read, or no room
      case Z_STREAM_END:
        place_ = Place::between;
        return {};
      case Z_NEED_DICT:
        return damaged(kind_, offset_, "it needs a dictionary, which no file has");
      case Z_MEM_ERROR:
        throw std::bad_alloc();
      default:
        return damaged(kind_, offset_, stream_.msg == nullptr ? "unknown" : stream_.msg);
    }
  }

  const Compression kind_;
  z_stream stream_{};
  Place place_ = Place::within;
  std::uint64_t offset_ = 0;  // of the next byte to read
};

#ifdef PENSTOCK_ZSTD
class ZstdFrames final : public Decompressor {
 public:
  ZstdFrames() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    constexpr int kWindowBits = 27;  // what `zstd -d` takes, too
    const std::size_t status =
        ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kWindowBits);
    PENSTOCK_CHECK(ZSTD_isError(status) == 0);
  }

  Result<Progress> run(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (!(between_ && from.pos == from.size)) {
      const std::size_t read = from.pos;
      const std::size_t written = to.pos;
      if (between_) frame_ = {};
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &to, &from);
      offset_ += from.pos - read;
      if (ZSTD_isError(status) != 0) return failure(status);
      between_ = status == 0;
      frame_.add(in.subspan(read, from.pos - read), to.pos - written);
      if (between_ && !frame_.has_its_size())
        return damaged(Compression::zstd, offset_, "a frame has another size than it says");
      // At the end of a frame, that of an empty frame for example, there may be room for the next.
      const bool stands = from.pos == read && to.pos == written;
      if (!between_ && (stands || to.pos == to.size)) break;
    }
    return Progress{from.pos, to.pos};
  }

  Result<void> finish() override {
    if (between_ && offset_ != 0) return {};
    return ends_early(Compression::zstd, offset_);
  }

 private:
  [[nodiscard]] Failure failure(std::size_t status) const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(status);
    if (code == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (code == ZSTD_error_frameParameter_windowTooLarge)
      return {.message = fmt::format("the zstd data at byte {} of the file needs a window of more "
                                     "than 128 MiB",
                                     offset_),
              .remedy = "compress the file again without --long, or with --long=27"};
    return damaged(Compression::zstd, offset_, ZSTD_getErrorName(status));
  }

  /// The library compares the size that a frame states with that of its content only if it gets all
  /// of the frame at once.
  struct Frame {
    std::array<std::byte, 18> head{};  // a frame's header has at most that many bytes
    std::size_t head_bytes = 0;
    std::uint64_t content_bytes = 0;

    void add(std::span<const std::byte> in, std::size_t content) {
      const std::size_t count = std::min(in.size(), head.size() - head_bytes);
      std::copy_n(in.begin(), count, head.begin() + static_cast<std::ptrdiff_t>(head_bytes));
      head_bytes += count;
      content_bytes += content;
    }
    [[nodiscard]] bool has_its_size() const {
      const unsigned long long stated = ZSTD_getFrameContentSize(head.data(), head_bytes);
      return stated == ZSTD_CONTENTSIZE_UNKNOWN || stated == ZSTD_CONTENTSIZE_ERROR ||
             stated == content_bytes;
    }
  };

  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  const std::unique_ptr<ZSTD_DStream, Free> stream_;
  Frame frame_;               // that is being read
  bool between_ = true;       // frames
  std::uint64_t offset_ = 0;  // of the next byte to read
};
#endif

}  // namespace

std::string_view compression_word(Compression kind) {
  switch (kind) {
    case Compression::none:
      return "none";
    case Compression::gzip:
      return "gzip";
    case Compression::zlib:
      return "zlib";
    case Compression::zstd:
      return "zstd";
  }
  return "none";
}

Compression compression_of(std::string_view first_bytes, bool zlib_allowed) {
  // RFC 1952: two bytes and the only method there is.
  if (first_bytes.starts_with("\x1f\x8b\x08")) return Compression::gzip;
  // RFC 8878: a frame, or one to skip, which may come first.
  if (first_bytes.size() >= 4) {
    if (first_bytes.starts_with("\x28\xb5\x2f\xfd")) return Compression::zstd;
    const auto low = static_cast<unsigned char>(first_bytes[0]);
    if (first_bytes.substr(1, 3) == "\x2a\x4d\x18" && (low & 0xf0U) == 0x50U)
      return Compression::zstd;
  }
  // RFC 1950: method 8, a window of at most 32 KB, and both bytes a multiple of 31.
  if (zlib_allowed && first_bytes.size() >= 2) {
    const auto first = static_cast<unsigned char>(first_bytes[0]);
    const auto second = static_cast<unsigned char>(first_bytes[1]);
    if ((first & 0x0fU) == 8 && first >> 4U <= 7 && (first * 256U + second) % 31 == 0)
      return Compression::zlib;
  }
  return Compression::none;
}

bool can_decompress(Compression kind) {
#ifdef PENSTOCK_ZSTD
  static_cast<void>(kind);
  return true;
#else
  return kind != Compression::zstd;
#endif
}

std::unique_ptr<Decompressor> Decompressor::make(Compression kind) {
  switch (kind) {
    case Compression::none:
      return std::make_unique<Plain>();
    case Compression::gzip:
    case Compression::zlib:
      return std::make_unique<Inflater>(kind);
    case Compression::zstd:
      break;
  }
#ifdef PENSTOCK_ZSTD
  return std::make_unique<ZstdFrames>();
#else
  throw ConfigError("the file is compressed with zstd, and this penstock was built without it", {},
                    "install libzstd and build again, or decompress the file");
#endif
}

}  // namespace penstock

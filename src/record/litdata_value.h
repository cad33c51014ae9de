#pragma once
// The values in an item of LitData, as each serializer stores them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/dtype.h"
#include "penstock/result.h"

namespace penstock {

struct LitDataType {
  enum class Kind : std::uint8_t {
    unknown,
    text,     // UTF-8
    json,     // a nested list or dict
    file,     // bytes of any number
    number,   // of fixed size
    list,     // the values of an array of one dimension
    numpy,    // an array after its dtype and shape
    tensor,   // the same, in another order of bytes
    picture,  // pixels after their size and mode
  };
  Kind kind = Kind::unknown;
  Dtype dtype = Dtype::bytes;  // u8 for arrays after their dtype

  /// Whether it is an array whose dtype or rank only a value tells.
  [[nodiscard]] bool described() const { return kind >= Kind::numpy; }
  [[nodiscard]] bool array() const { return kind >= Kind::list; }
};

/// Of a name in `data_format`: "int", "no_header_numpy:9", "image:jpg".
LitDataType litdata_type(std::string_view serializer);

struct LitDataArray {
  static constexpr std::size_t kRankMax = 32;  // that of NumPy before version 2
  Dtype dtype = Dtype::u8;
  std::size_t rank = 0;
  std::array<std::uint64_t, kRankMax> sizes{};
  std::string_view values = {};
};

/// For types that are an `array()`. A failure continues a sentence about a field.
Result<LitDataArray> read_litdata_array(std::string_view bytes, const LitDataType& type);

/// JSON text of a nested list or dict. A failure continues a sentence about a field.
Result<std::string> litdata_json_text(std::string_view bytes);

}  // namespace penstock

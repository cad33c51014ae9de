#include "codec/formats.h"

namespace penstock {

Result<ImageInfo> probe_webp(EncodedBytes) {
  return Failure{.message = "this format cannot be read yet"};
}
Result<Pixels> decode_webp(EncodedBytes, const ImageInfo&, const StoredRequest&, Scratch&) {
  return Failure{.message = "this format cannot be read yet"};
}

}  // namespace penstock

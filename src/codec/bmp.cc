#include "codec/formats.h"

namespace penstock {

Result<ImageInfo> probe_bmp(EncodedBytes) {
  return Failure{.message = "this format cannot be read yet"};
}
Result<Pixels> decode_bmp(EncodedBytes, const ImageInfo&, const StoredRequest&, Scratch&) {
  return Failure{.message = "this format cannot be read yet"};
}

}  // namespace penstock

// The index of a folder is a file that anybody may have written: any bytes are an index or a
// Failure, and cost no more memory than they are long.
#include <cstdlib>
#include <string>

#include "base/digest.h"
#include "source/folder_listing.h"

namespace {

/// The bytes with their check sum made right, so that what lies behind it is tried too.
std::string checked(std::string bytes) {
  penstock::Digest digest;
  digest.add(bytes);
  const std::uint64_t value = digest.value();
  return bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& each : {bytes, checked(bytes), checked("pstkfix1" + bytes)}) {
    const auto listing = penstock::decode_listing(each, "root");
    // What is accepted is written again as it was.
    if (listing && penstock::encode_listing(*listing) != each) std::abort();
  }
  return 0;
}

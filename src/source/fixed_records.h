#pragma once
// Records of one length, in files.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/fixed_records.h"
#include "penstock/io.h"
#include "source/source.h"

namespace penstock {

std::shared_ptr<const Source> make_fixed_records(Io& io, const std::vector<std::string>& paths,
                                                 std::uint64_t record_bytes,
                                                 const FixedRecordOptions& options);

}  // namespace penstock

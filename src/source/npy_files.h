#pragma once
// Arrays in npy and npz files.

#include <memory>
#include <string>
#include <vector>

#include "penstock/io.h"
#include "penstock/npy_files.h"
#include "source/source.h"

namespace penstock {

std::shared_ptr<const Source> make_npy_files(Io& io, const std::vector<std::string>& paths,
                                             const NpyFileOptions& options);

}  // namespace penstock

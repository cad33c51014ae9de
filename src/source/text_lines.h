#pragma once
// The lines of text files.

#include <memory>
#include <string>
#include <vector>

#include "source/source.h"

namespace penstock {

std::shared_ptr<const Source> make_text_lines(Io& io, const std::vector<std::string>& paths);

}  // namespace penstock

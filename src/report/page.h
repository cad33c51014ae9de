#pragma once
// A report as one HTML file that needs nothing else.

#include <string>
#include <string_view>

#include "penstock/report.h"

namespace penstock {

/// The files of src/report/page.
struct PageAssets {
  std::string_view html;
  std::string_view css;
  std::string_view js;
};
const PageAssets& page_assets();

/// The page of a report that has a recording. Shows its latest 1.5 million events.
std::string page_of(const Report& report);

}  // namespace penstock

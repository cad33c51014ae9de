#pragma once
// What loaders and feeds share: options and ledgers.

#include <vector>

#include "interpreter.h"
#include "penstock/loader.h"

namespace penstock::python {

/// From the keywords that penstock.loader has checked.
LoaderOptions loader_options(const nb::dict& given);
nb::list entries_of(const std::vector<LedgerEntry>& ledger);

}  // namespace penstock::python

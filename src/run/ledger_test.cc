#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/temp_folder_for_tests.h"
#include "penstock/io.h"
#include "penstock/loader.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

LedgerEntry entry(std::uint64_t number) {
  LedgerEntry made;
  made.sample.number = number;
  made.op = "decode";
  made.reason = "truncated";
  return made;
}

TEST(LedgerTest, AnUnwritableFileIsReportedOnceAndWrittenLater) {
  const TempFolder folder;
  const std::string missing = folder.path() + "/not/there";
  std::vector<std::string> reports;
  const auto before = set_report_sink([&](const std::string& text) { reports.push_back(text); });
  {
    Ledger ledger(missing + "/ledger.json", 100);
    ledger.add({entry(1)});
    ledger.add({entry(2), entry(3)});
    EXPECT_THAT(ledger.entries(), SizeIs(3)) << "included although not written yet";
    std::filesystem::create_directories(missing);
    ledger.add({entry(4)});
  }
  set_report_sink(before);
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports.front(), HasSubstr("ledger.json"));
  const auto text = Io::real().read_text(missing + "/ledger.json", 1 << 20);
  ASSERT_TRUE(text);
  for (int number = 1; number <= 4; ++number)
    EXPECT_THAT(*text, HasSubstr("\"number\":" + std::to_string(number)));
}

TEST(LedgerTest, PendingEntriesAreWrittenByTheDestructor) {
  const TempFolder folder;
  const std::string missing = folder.path() + "/later";
  const auto before = set_report_sink([](const std::string&) {});
  {
    Ledger ledger(missing + "/ledger.json", 100);
    ledger.add({entry(7)});
    std::filesystem::create_directories(missing);
  }
  set_report_sink(before);
  const auto text = Io::real().read_text(missing + "/ledger.json", 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("\"number\":7"));
}

}  // namespace
}  // namespace penstock

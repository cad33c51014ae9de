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

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::ThrowsMessage;

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

TEST(LedgerTest, TheLimitIsForEachEpoch) {
  Ledger ledger("", 2);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    LedgerEntry skipped = entry(epoch);
    skipped.epoch = epoch;
    ledger.add({skipped, skipped});
  }
  LedgerEntry one_more = entry(77);
  one_more.epoch = 4;
  EXPECT_THAT([&] { ledger.add({one_more}); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("3 samples of epoch 4"),
                                               HasSubstr("sample 77"), Not(HasSubstr("epoch 3")))));
  EXPECT_EQ(ledger.count(), 11U) << "the one too many is listed, too";
}

TEST(LedgerTest, TheLatestThousandEntriesAreListedAndAllAreCounted) {
  Ledger ledger("", 5000);
  for (std::uint64_t number = 0; number < 1500; ++number) ledger.add({entry(number)});
  const auto entries = ledger.entries();
  ASSERT_THAT(entries, SizeIs(1000));
  EXPECT_EQ(entries.front().sample.number, 500U);
  EXPECT_EQ(entries.back().sample.number, 1499U);
  EXPECT_EQ(ledger.count(), 1500U);
  EXPECT_THAT(ledger.text(), HasSubstr("1500 samples skipped"));
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

#include "base/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/launch_table_for_tests.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Table = LaunchTable::Variables;

Environment environment_of(const Table& table) {
  return LaunchTable::environment_of(table);
}

std::string refusal(const Table& table, const WorldOptions& options = {}) {
  try {
    const World world = find_world(options, environment_of(table));
    return "accepted, from " + world.source;
  } catch (const ConfigError& error) {
    return error.what();
  }
}

/// TF_CONFIG of a cluster, as `"worker": ["a:1"]`, and a task.
std::string tf_config(const std::string& cluster, const std::string& type,
                      const std::string& index) {
  const std::string task = "{\"type\": \"" + type + "\", \"index\": " + index + "}";
  return "{\"cluster\": {" + cluster + "}, \"task\": " + task + "}";
}

const std::string kTwoWorkers =
    tf_config(R"("chief": ["a:1"], "worker": ["b:1", "c:1"])", "worker", "1");

TEST(WorldTest, TheFirstCompleteProviderWins) {
  const Table torchrun{
      {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
  const Table slurm{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_LOCALID", "2"}};
  const Table mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}};
  const Table pods{{"JOB_COMPLETION_INDEX", "2"}, {"PENSTOCK_WORLD_SIZE", "3"}};
  const auto joined = [](std::vector<Table> tables) {
    Table all;
    for (const Table& table : tables) all.insert(table.begin(), table.end());
    return all;
  };
  struct Case {
    Table table;
    std::uint32_t rank;
    std::uint32_t size;
    std::optional<std::uint32_t> local_rank;
    std::string source;
  };
  const std::vector<Case> cases{
      {{}, 0, 1, 0, "one process"},
      {{{"RANK", ""}, {"WORLD_SIZE", ""}}, 0, 1, 0, "one process"},
      {torchrun, 3, 8, 1, "torchrun"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 0, 1, std::nullopt, "torchrun"},
      // torchrun inside srun, in a pod: the agent's rank is not the worker's
      {joined({torchrun, {{"TF_CONFIG", kTwoWorkers}}, slurm, mpi, pods}), 3, 8, 1, "torchrun"},
      {joined({{{"TF_CONFIG", kTwoWorkers}}, slurm, mpi, pods}), 2, 3, std::nullopt, "TF_CONFIG"},
      {joined({slurm, mpi, pods}), 5, 6, 2, "srun"},
      {joined({mpi, pods}), 1, 4, 0, "Open MPI"},
      {pods, 2, 3, std::nullopt, "Kubernetes"},
  };
  for (const Case& one : cases) {
    const World world = find_world({}, environment_of(one.table));
    EXPECT_EQ(world.source, one.source);
    EXPECT_EQ(world.rank, one.rank) << one.source;
    EXPECT_EQ(world.size, one.size) << one.source;
    EXPECT_EQ(world.local_rank, one.local_rank) << one.source;
    EXPECT_EQ(world.data_rank, one.rank) << one.source;
    EXPECT_EQ(world.data_size, one.size) << one.source;
  }
}

TEST(WorldTest, AStepOfSrunIsNotItsJob) {
  // A batch script and an interactive shell run once, regardless of the job's tasks.
  for (const char* const step : {"", "4294967290", "4294967291"}) {
    const Table table{{"SLURM_STEP_ID", step}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
    EXPECT_EQ(find_world({}, environment_of(table)).source, "one process") << step;
  }
  const Table smaller{{"SLURM_STEP_ID", "1"},
                      {"SLURM_PROCID", "1"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_STEP_NUM_TASKS", "2"}};
  EXPECT_EQ(find_world({}, environment_of(smaller)).size, 2U);
}

TEST(WorldTest, TfConfigPutsTheChiefFirst) {
  struct Case {
    std::string text;
    std::uint32_t rank;
    std::uint32_t size;
  };
  const std::vector<Case> cases{
      {"{}", 0, 1},
      {tf_config("", "worker", "0"), 0, 1},
      {tf_config(R"("worker": ["a:1", "b:1"])", "worker", R"("1")"), 1, 2},
      {tf_config(R"("chief": ["a:1"], "worker": ["b:1"])", "chief", "0"), 0, 2},
      {tf_config(R"("chief": ["a:1"], "worker": ["b:1"])", "worker", "0"), 1, 2},
      {tf_config(R"("worker": ["a:1", "b:1"])", "evaluator", "0"), 0, 1},
  };
  for (const Case& one : cases) {
    const World world = find_world({}, environment_of({{"TF_CONFIG", one.text}}));
    EXPECT_EQ(world.rank, one.rank) << one.text;
    EXPECT_EQ(world.size, one.size) << one.text;
  }
}

TEST(WorldTest, IncompleteGarbledOrContradictoryVariablesThrowWithNameAndValue) {
  struct Case {
    Table table;
    std::vector<std::string> words;
  };
  const auto tf = [](const std::string& text) { return Table{{"TF_CONFIG", text}}; };
  const std::vector<Case> cases{
      {{{"RANK", "3"}}, {"RANK=3", "WORLD_SIZE is not"}},
      {{{"WORLD_SIZE", "3"}}, {"WORLD_SIZE=3", "RANK is not"}},
      {{{"LOCAL_RANK", "1"}}, {"LOCAL_RANK=1", "RANK is not"}},
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, {"RANK=one", "not a number"}},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, {"RANK=-1", "not a number"}},
      {{{"RANK", "1 "}, {"WORLD_SIZE", "2"}}, {"RANK=1 ", "not a number"}},
      {{{"RANK", "99999999999"}, {"WORLD_SIZE", "2"}}, {"RANK=99999999999"}},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK=2", "out of range", "WORLD_SIZE=2"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE=0"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}, {"LOCAL_RANK=2"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "4"}},
       {"LOCAL_WORLD_SIZE=4", "contradicts", "WORLD_SIZE=2"}},
      {{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
       {"LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"}},
      {tf("{"), {"TF_CONFIG={", "not a JSON object"}},
      {tf("[1]"), {"TF_CONFIG=[1]"}},
      {tf(R"({"cluster": 3})"), {"\"cluster\" is not an object"}},
      {tf(R"({"cluster": {"worker": ["a:1"]}})"), {"no \"task\""}},
      {tf(R"({"cluster": {"worker": ["a:1"]}, "task": {"index": 0}})"), {"no \"type\""}},
      {tf(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})"), {"\"index\""}},
      {tf(tf_config(R"("worker": ["a:1"])", "worker", "-1")), {"\"index\""}},
      {tf(tf_config(R"("worker": ["a:1"])", "worker", "1")), {"worker 1 is out of range", "has 1"}},
      {tf(tf_config(R"("worker": ["a:1"])", "chief", "0")), {"chief 0 is out of range", "has 0"}},
      {tf(tf_config(R"("worker": ["a:1", "a:1"])", "worker", "0")), {"names a:1 twice"}},
      {tf(tf_config(R"("worker": "a:1")", "worker", "0")), {"not a list"}},
      {tf(tf_config(R"("worker": [1])", "worker", "0")), {"not a list"}},
      {tf(tf_config(R"("worker": ["a:1"])", "tpu", "0")), {"\"tpu\" does not train"}},
      {tf(tf_config(R"("ps": ["p:1"], "worker": ["a:1"])", "worker", "0")), {"parameter servers"}},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}}, {"SLURM_PROCID=1", "SLURM_NTASKS is not"}},
      {{{"SLURM_STEP_ID", "0"}}, {"SLURM_STEP_ID=0", "SLURM_PROCID is not"}},
      {{{"SLURM_STEP_ID", "x"}}, {"SLURM_STEP_ID=x"}},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK is not"}},
      {{{"JOB_COMPLETION_INDEX", "4"}}, {"JOB_COMPLETION_INDEX=4", "PENSTOCK_WORLD_SIZE is not"}},
      {{{"JOB_COMPLETION_INDEX", "4"}, {"PENSTOCK_WORLD_SIZE", "4"}},
       {"JOB_COMPLETION_INDEX=4", "out of range"}},
  };
  for (const Case& one : cases) {
    for (const std::string& word : one.words) EXPECT_THAT(refusal(one.table), HasSubstr(word));
    EXPECT_THAT(refusal(one.table), HasSubstr("->"));
  }
}

TEST(WorldTest, AnExplicitWorldWinsAndIsChecked) {
  const Table torchrun{{"RANK", "3"}, {"WORLD_SIZE", "8"}};
  const World world = find_world({.rank = 1, .size = 2}, environment_of(torchrun));
  EXPECT_EQ(world.rank, 1U);
  EXPECT_EQ(world.source, "explicit argument");
  EXPECT_THAT(refusal({}, {.rank = 2, .size = 2}), AllOf(HasSubstr("rank=2"), HasSubstr("size=2")));
  EXPECT_THAT(refusal({}, {.rank = 2}), HasSubstr("size was not"));
  EXPECT_THAT(refusal({}, {.size = 2}), HasSubstr("rank was not"));
  EXPECT_THAT(refusal({}, {.rank = 0, .size = 0}), HasSubstr("size=0"));
  EXPECT_THAT(refusal({}, {.rank = 0, .size = 1, .local_rank = 1}), HasSubstr("local_rank=1"));
}

TEST(WorldTest, TheDataRankMayDifferFromTheRank) {
  // Eight processes, two per model replica: four parts of the data.
  const Table torchrun{{"RANK", "5"}, {"WORLD_SIZE", "8"}};
  const World world = find_world({.data_rank = 2, .data_size = 4}, environment_of(torchrun));
  EXPECT_EQ(world.rank, 5U);
  EXPECT_EQ(world.data_rank, 2U);
  EXPECT_EQ(world.data_size, 4U);
  EXPECT_THAT(refusal(torchrun, {.data_rank = 2}), HasSubstr("without data_size"));
  EXPECT_THAT(refusal(torchrun, {.data_size = 2}), HasSubstr("without data_rank"));
  EXPECT_THAT(refusal(torchrun, {.data_rank = 4, .data_size = 4}), HasSubstr("out of range"));
  EXPECT_THAT(refusal(torchrun, {.data_rank = 0, .data_size = 9}), HasSubstr("8 processes"));
}

TEST(WorldTest, AProcessGroupThatContradictsTorchrunIsAnError) {
  World group;
  group.rank = 1;
  group.size = 2;
  WorldOptions options;
  options.process_group = [&group] { return std::optional<World>(group); };
  EXPECT_EQ(find_world(options, environment_of({})).source, "process group");
  const Table same{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}};
  EXPECT_EQ(find_world(options, environment_of(same)).local_rank, 1U);
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, options),
              AllOf(HasSubstr("rank 1 of 2"), HasSubstr("RANK=0")));
  // Other launchers start agents, which have their own ranks.
  EXPECT_EQ(find_world(options, environment_of({{"JOB_COMPLETION_INDEX", "7"}})).rank, 1U);
  options.process_group = [] { return std::optional<World>(); };
  EXPECT_EQ(find_world(options, environment_of(same)).source, "torchrun");
}

TEST(WorldTest, TheProcessHasAnEnvironmentThatTestsReplace) {
  const Environment before = set_process_environment({});
  setenv("PENSTOCK_WORLD_TEST", "7", 1);
  EXPECT_EQ(process_environment()("PENSTOCK_WORLD_TEST"), "7");
  {
    const LaunchTable table({{"RANK", "1"}, {"WORLD_SIZE", "3"}});
    EXPECT_EQ(process_environment()("PENSTOCK_WORLD_TEST"), std::nullopt);
    EXPECT_EQ(find_world().rank, 1U);
  }
  EXPECT_EQ(process_environment()("PENSTOCK_WORLD_TEST"), "7");
  unsetenv("PENSTOCK_WORLD_TEST");
  EXPECT_EQ(process_environment()("PENSTOCK_WORLD_TEST"), std::nullopt);
  set_process_environment(before);
}

TEST(WorldTest, AWorldNamesItsSource) {
  const auto text = [](const Table& table) { return find_world({}, environment_of(table)).text(); };
  EXPECT_EQ(text({}), "one process");
  EXPECT_EQ(text(LaunchTable::torchrun(1, 3)), "3 processes, this is 1 (torchrun)");
  EXPECT_EQ(text(LaunchTable::torchrun(0, 1)), "1 process, this is 0 (torchrun)");
}

}  // namespace
}  // namespace penstock

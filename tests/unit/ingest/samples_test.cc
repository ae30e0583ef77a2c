// SPDX-License-Identifier: Apache-2.0
// Series and files of several objects, as wbscope record writes them.
#include "sidecar/samples.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace wbscope {
namespace {

using Values = std::map<std::string, std::int64_t>;

template <typename Parse>
std::pair<Values, TextProblems> values_of(Parse parse, std::string_view text) {
  Values values;
  const TextProblems problems =
      parse(text, [&values](const NamedValue& v) { values[std::string(v.name)] = v.value; });
  return {values, problems};
}

TEST(Samples, TimeAndTextOfEach) {
  std::vector<std::pair<std::int64_t, std::string>> parts;
  const auto problems = each_sample("# ts=7\na 1\nb 2\n# ts=11\n# ts=13\na 3", [&](const auto& p) {
    parts.emplace_back(p.ts, p.text);
    return TextProblems{};
  });
  EXPECT_EQ(problems.lines, 0u);
  const decltype(parts) wanted{{7, "a 1\nb 2\n"}, {11, ""}, {13, "a 3"}};
  EXPECT_EQ(parts, wanted);
}

TEST(Samples, ProblemsHaveTheLineOfTheWholeFile) {
  const auto problems = each_sample("# ts=7\na 1\n# ts=8\na 1\nb x\n", [](const auto& p) {
    return parse_vmstat(p.text, [](const NamedValue&) {});
  });
  EXPECT_EQ(problems.lines, 1u);
  EXPECT_EQ(problems.first_line, 5u);
}

TEST(Samples, TextBeforeTheFirstAndHeadsThatAreNone) {
  int parts = 0;
  const auto problems = each_sample("cut line\na 1\n# ts=x\nb 2\n# ts=3\n", [&](const auto&) {
    ++parts;
    return TextProblems{};
  });
  EXPECT_EQ(parts, 1);
  EXPECT_EQ(problems.lines, 4u);
  EXPECT_EQ(problems.first_line, 1u);
}

TEST(Objects, NamesAndTexts) {
  Values values;
  const auto problems = each_object("== vda\n1 2\n== 0:45\n3", [&](const TextPart& p) {
    return parse_block_stat(p.text, [&](const NamedValue& v) {
      values[std::string(p.object) + "/" + std::string(v.name)] = v.value;
    });
  });
  EXPECT_EQ(problems.lines, 0u);
  const Values wanted{{"vda/read_ios", 1}, {"vda/read_merges", 2}, {"0:45/read_ios", 3}};
  EXPECT_EQ(values, wanted);
}

TEST(BlockStat, ElevenToSeventeenNumbers) {
  const auto [values, problems] =
      values_of(parse_block_stat, "  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n");
  EXPECT_EQ(values.size(), 17u);
  EXPECT_EQ(values.at("write_sectors"), 7);
  EXPECT_EQ(values.at("flush_ticks"), 17);
  EXPECT_EQ(problems.lines, 0u);
  EXPECT_EQ(values_of(parse_block_stat, "1 x 3\n").second.lines, 1u);
}

TEST(BlockStat, NumberOfTheDevice) {
  const auto [values, problems] = values_of(parse_block_stat, "dev 254:16\n 5 7\n");
  EXPECT_EQ(values, (Values{{"dev_major", 254}, {"dev_minor", 16}, {"read_ios", 5},
                            {"read_merges", 7}}));
  EXPECT_EQ(problems.lines, 0u);
  for (const auto* text : {"dev 254", "dev 254:", "dev :1", "dev 254:1x", "dev ", "dev a:1"}) {
    const auto [none, bad] = values_of(parse_block_stat, text);
    EXPECT_TRUE(none.empty()) << text;
    EXPECT_EQ(bad.lines, 1u) << text;
  }
}

std::pair<Values, TextProblems> of_cgroup(std::string_view file, std::string_view text) {
  return values_of(
      [file](std::string_view part, const OnNamedValue& on_value) {
        return parse_cgroup_file(file, part, on_value);
      },
      text);
}

TEST(CgroupFile, EachByItsName) {
  EXPECT_EQ(of_cgroup("memory.stat", "file_dirty 8192\nfile_writeback 0\n").first,
            (Values{{"file_dirty", 8192}, {"file_writeback", 0}}));
  EXPECT_EQ(of_cgroup("memory.events", "max 3\n").first, (Values{{"max", 3}}));
  EXPECT_EQ(of_cgroup("memory.current", "4096\n").first, (Values{{"memory.current", 4096}}));
  EXPECT_EQ(of_cgroup("memory.max", "max\n").second.lines, 1u);
  EXPECT_EQ(of_cgroup("memory.high", "").second.lines, 1u);
  EXPECT_EQ(of_cgroup("io.pressure", "full avg10=0.00 total=7\n").first,
            (Values{{"full_total", 7}}));
  EXPECT_EQ(of_cgroup("", "7").first, (Values{{"", 7}}));
}

TEST(CgroupFile, IoOfEachDevice) {
  const auto [values, problems] = of_cgroup(
      "io.stat", "254:0 rbytes=1 wbytes=2 cost.vrate=100.00\n8:0 \n254:16 dios=3 x= =4\n\n");
  EXPECT_EQ(values, (Values{{"254:0 rbytes", 1}, {"254:0 wbytes", 2}, {"254:16 dios", 3},
                            {"254:16 ", 4}}));
  EXPECT_EQ(problems.lines, 0u);
  const auto [none, cut] = of_cgroup("io.stat", "254:0 rbytes=1\n254:0 rby");
  EXPECT_EQ(none.size(), 1u);
  EXPECT_EQ(cut.lines, 1u);
  EXPECT_EQ(cut.first_line, 2u);
}

TEST(Objects, ALongNameIsNone) {
  const std::string name(kMostNameBytes + 1, 'A');
  int parts = 0;
  const auto problems = each_object("== " + name + "\na: 1\n== " + name.substr(1) + "\na: 2\n",
                                    [&](const TextPart&) {
                                      ++parts;
                                      return TextProblems{};
                                    });
  EXPECT_EQ(parts, 1);
  EXPECT_EQ(problems.lines, 2u);
  const auto [values, cut] = of_cgroup("io.stat", name + " r=1 w=2\n8:0 r=3\n");
  EXPECT_EQ(values, (Values{{"8:0 r", 3}}));
  EXPECT_EQ(cut.lines, 1u);
}

TEST(BdiStats, StateIsHexadecimal) {
  const auto [values, problems] =
      values_of(parse_bdi_stats, "BdiDirtied:   12 kB\nbdi_list:   1\nstate:     f\n");
  EXPECT_EQ(values, (Values{{"BdiDirtied", 12}, {"bdi_list", 1}, {"state", 15}}));
  EXPECT_EQ(problems.lines, 0u);
  EXPECT_EQ(values_of(parse_bdi_stats, "state: x\n").second.lines, 1u);
  EXPECT_EQ(values_of(parse_bdi_stats, "state:").second.lines, 1u);
}

TEST(Pressure, TotalsOfBothKinds) {
  const auto [values, problems] = values_of(
      parse_pressure, "some avg10=0.46 avg60=1.13 avg300=1.66 total=402409364\nfull total=5\n");
  EXPECT_EQ(values, (Values{{"some_total", 402409364}, {"full_total", 5}}));
  EXPECT_EQ(problems.lines, 0u);
  EXPECT_EQ(values_of(parse_pressure, "some avg10=1\nmost total=1\n\n").second.lines, 2u);
}

}  // namespace
}  // namespace wbscope

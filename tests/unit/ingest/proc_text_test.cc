// SPDX-License-Identifier: Apache-2.0
// Parsers of sidecar texts: good lines, lines that are none, and the files of
// a real run.
#include "sidecar/proc_text.h"

#include <gtest/gtest.h>

#include <map>

#include "support.h"

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

std::string example(const char* name) {
  return testing::read_file(std::string(WBSCOPE_EXAMPLES_DIR "/four-equal-writers-7.2/") + name);
}

TEST(Vmstat, NamesAndValues) {
  const auto [values, problems] = values_of(parse_vmstat, "nr_dirty 23\nnr_writeback -1\n");
  EXPECT_EQ(values, (Values{{"nr_dirty", 23}, {"nr_writeback", -1}}));
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Vmstat, LinesThatAreNoneAreCounted) {
  const auto [values, problems] =
      values_of(parse_vmstat, "a 1\n\nb\nc x\nd 1 2\ne 99999999999999999999\nf 0x10\ng 2");
  EXPECT_EQ(values, (Values{{"a", 1}, {"g", 2}}));
  EXPECT_EQ(problems.lines, 5u);
  EXPECT_EQ(problems.first_line, 3u);
}

TEST(Vmstat, RealFile) {
  const auto [values, problems] = values_of(parse_vmstat, example("vmstat.before"));
  EXPECT_EQ(problems.lines, 0u);
  EXPECT_GT(values.size(), 100u);
  EXPECT_TRUE(values.contains("nr_vmscan_write"));
}

TEST(Meminfo, ValuesWithAndWithoutUnit) {
  std::map<std::string, std::string> units;
  const auto problems =
      parse_meminfo("MemTotal:  474712 kB\nHugePages_Total:   0\n",
                    [&units](const NamedValue& v) { units[std::string(v.name)] = v.unit; });
  EXPECT_EQ(units.at("MemTotal"), "kB");
  EXPECT_EQ(units.at("HugePages_Total"), "");
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Meminfo, LinesThatAreNoneAreCounted) {
  const auto [values, problems] =
      values_of(parse_meminfo, "Dirty 5 kB\nDirty: x kB\nDirty: 7 kB\n");
  EXPECT_EQ(values, (Values{{"Dirty", 7}}));
  EXPECT_EQ(problems.lines, 2u);
  EXPECT_EQ(problems.first_line, 1u);
}

TEST(Meminfo, RealFile) {
  const auto [values, problems] = values_of(parse_meminfo, example("meminfo"));
  EXPECT_EQ(problems.lines, 0u);
  EXPECT_EQ(values.at("MemTotal"), 470864);
}

// "node/zone/name" -> value; a value of the node has no zone.
std::pair<Values, TextProblems> zones_of(std::string_view text) {
  Values values;
  const auto problems = parse_zoneinfo(text, [&values](const ZoneValue& v) {
    values[std::to_string(v.node) + "/" + std::string(v.zone) + "/" + std::string(v.name)] =
        v.value;
  });
  return {values, problems};
}

constexpr std::string_view kZones =
    "Node 0, zone      DMA\n"
    "  per-node stats\n"
    "      nr_dirty     17\n"
    "  pages free     3840\n"
    "        min      67\n"
    "        spanned  4095\n"
    "        protection: (0, 441, 441, 441)\n"
    "      nr_free_pages 3840\n"
    "  pagesets\n"
    "    cpu: 0\n"
    "              count:    19\n"
    "              high:     92\n"
    "  vm stats threshold: 4\n"
    "  node_unreclaimable:  0\n"
    "  start_pfn:           1\n"
    "Node 1, zone    DMA32\n"
    "  pages free     100\n"
    "  start_pfn:           4096\n";

TEST(Zoneinfo, ZonesAndNodes) {
  const auto [values, problems] = zones_of(kZones);
  EXPECT_EQ(values, (Values{{"0//nr_dirty", 17},
                            {"0/DMA/free", 3840},
                            {"0/DMA/min", 67},
                            {"0/DMA/spanned", 4095},
                            {"0/DMA/nr_free_pages", 3840},
                            {"0/DMA/node_unreclaimable", 0},
                            {"0/DMA/start_pfn", 1},
                            {"1/DMA32/free", 100},
                            {"1/DMA32/start_pfn", 4096}}));
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Zoneinfo, LinesThatAreNoneAreCounted) {
  const auto [before, early] = zones_of("  pages free 5\nNode x, zone DMA\n  pages free 6\n");
  EXPECT_TRUE(before.empty());
  EXPECT_EQ(early.lines, 3u);
  const auto [values, problems] = zones_of("Node 0, zone DMA\n  odd one here too\n  min 5\n");
  EXPECT_EQ(values, (Values{{"0/DMA/min", 5}}));
  EXPECT_EQ(problems.lines, 1u);
  EXPECT_EQ(problems.first_line, 2u);
}

TEST(Zoneinfo, ALongNameIsNoZone) {
  const std::string name(kMostNameBytes + 1, 'Z');
  const auto [values, problems] = zones_of("Node 0, zone " + name + "\n  min 5\n  max 6\n");
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(problems.lines, 3u);
}

TEST(Zoneinfo, RealFile) {
  const auto [values, problems] = zones_of(example("zoneinfo"));
  EXPECT_EQ(problems.lines, 0u);
  EXPECT_EQ(values.at("0//nr_vmscan_write"), 0);
  EXPECT_EQ(values.at("0/DMA/start_pfn"), 1);
  EXPECT_TRUE(values.contains("0/DMA32/spanned"));
}

struct Listed {
  std::optional<std::int64_t> inode;
  std::int64_t bytes;
  std::string name;
  friend bool operator==(const Listed&, const Listed&) = default;
};

std::pair<std::vector<Listed>, TextProblems> files_of(std::string_view text) {
  std::vector<Listed> files;
  const auto problems = parse_ls(text, [&files](const ListedFile& file) {
    files.push_back({file.inode, file.bytes, std::string(file.name)});
  });
  return {files, problems};
}

TEST(Ls, RegularFilesWithAndWithoutInode) {
  const auto [files, problems] =
      files_of("total 8\n"
               "     14 -rw-r--r--    1 0   0   100663296 Nov 21 11:03 zero-1\n"
               "     11 drwx------    2 0   0       16384 Nov 21 11:02 lost+found\n"
               "-rw-r--r-- 1 root root 5 Nov 21 2023 two words  and more\n");
  EXPECT_EQ(files, (std::vector<Listed>{{14, 100663296, "zero-1"},
                                        {std::nullopt, 5, "two words  and more"}}));
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Ls, LinesThatAreNoneAreCounted) {
  const auto [files, problems] =
      files_of("ls: cannot access x\n-rw-r--r-- 1 root root many Nov 21 2023 x\n14\n");
  EXPECT_TRUE(files.empty());
  EXPECT_EQ(problems.lines, 3u);
}

TEST(Ls, RealFile) {
  const auto [files, problems] = files_of(example("ls-files"));
  EXPECT_EQ(problems.lines, 0u);
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0], (Listed{14, 100663296, "zero-1"}));
}

TEST(InodePaths, InodeThenPath) {
  const auto [values, problems] =
      values_of(parse_inode_paths, "      1 /sys/fs/cgroup\n     27 /sys/fs/cgroup/small\nx /y\n");
  EXPECT_EQ(values, (Values{{"/sys/fs/cgroup", 1}, {"/sys/fs/cgroup/small", 27}}));
  EXPECT_EQ(problems.lines, 1u);
}

TEST(ProcText, TextsWithoutLines) {
  for (const char* text : {"", "\n", " \t\r\n\n"}) {
    EXPECT_EQ(values_of(parse_vmstat, text).second.lines, 0u);
    EXPECT_EQ(zones_of(text).second.lines, 0u);
    EXPECT_EQ(files_of(text).second.lines, 0u);
  }
}

}  // namespace
}  // namespace wbscope

// SPDX-License-Identifier: Apache-2.0
// What the recorder noted of the machine, also as strangers write it.
#include "sidecar/machine_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wbscope {
namespace {

using Rows = std::vector<std::string>;

struct Parsed {
  Rows rows;
  TextProblems problems;
};

Parsed sysctls(std::string_view text) {
  Parsed out;
  out.problems = parse_sysctls(text, [&](const Setting& s) {
    out.rows.push_back(std::string(s.name) + "|" + std::string(s.value) + "|" +
                       (s.number ? std::to_string(*s.number) : "none"));
  });
  return out;
}

void add(Rows& rows, const Mount& m) {
  rows.push_back(std::to_string(m.line) + "|" + std::string(m.device) + "|" + m.source + "|" +
                 m.mount + "|" + std::string(m.type) + "|" + std::string(m.options));
}

Parsed mounts(std::string_view text) {
  Parsed out;
  out.problems = parse_mounts(text, [&](const Mount& m) { add(out.rows, m); });
  return out;
}

Parsed bdis(std::string_view text) {
  Parsed out;
  out.problems = parse_bdis(text, [&](const Mount& m) { add(out.rows, m); });
  return out;
}

Parsed swaps(std::string_view text) {
  Parsed out;
  out.problems = parse_swaps(text, [&](const SwapArea& a) {
    out.rows.push_back(a.path + "|" + std::string(a.type) + "|" + std::to_string(a.size_kib) +
                       "|" + std::to_string(a.used_kib) + "|" + std::to_string(a.priority));
  });
  return out;
}

Parsed stacks(std::string_view text) {
  Parsed out;
  out.problems = parse_stacks(text, [&](const Stacked& s) {
    out.rows.push_back(std::string(s.bdi) + "|" + std::string(s.disk));
  });
  return out;
}

constexpr auto kParsers = {sysctls, mounts, bdis, swaps, stacks};

// A good line of each, in the same order.
constexpr std::string_view kGood[] = {
    "vm.dirty_ratio = 20", "25 31 254:0 / /data rw,relatime shared:1 - ext4 /dev/vda rw",
    "254:0 vda /data ext4", "/dev/vdb partition 8 0 -2", "253:0 8:0"};

TEST(Sysctls, NamesValuesAndNumbers) {
  const auto [rows, problems] = sysctls(
      "vm.dirty_bytes = 0\n"
      "vm.lowmem_reserve_ratio = 256\t256 32\n"
      "kernel.core_pattern = |/bin/x %P = 1\n"
      "kernel.sched_rt_runtime_us = -1\r\n"
      "kernel.modprobe = \n"
      "kernel.shmmax = 18446744073692774399\n"
      "vm.odd = 10x");
  EXPECT_EQ(rows, (Rows{"vm.dirty_bytes|0|0", "vm.lowmem_reserve_ratio|256\t256 32|256",
                        "kernel.core_pattern||/bin/x %P = 1|none",
                        "kernel.sched_rt_runtime_us|-1|-1", "kernel.modprobe||none",
                        "kernel.shmmax|18446744073692774399|none", "vm.odd|10x|none"}));
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Sysctls, LinesThatAreNone) {
  for (const char* line : {"vm.x", "vm.x: 1", "vm.x=1", " = 1", "two words = 1", "vm.x =1"}) {
    const auto [rows, problems] = sysctls(line);
    EXPECT_EQ(rows, Rows{}) << line;
    EXPECT_EQ(problems.lines, 1u) << line;
  }
}

TEST(Mounts, WithAndWithoutTagsAndSource) {
  const auto [rows, problems] = mounts(
      "25 31 254:0 / /data rw,relatime - ext4 /dev/vda rw,data=ordered\n"
      "26 25 0:35 /@home /home rw shared:1 master:2 - btrfs /dev/mapper/a-b rw,subvol=/@home\n"
      "27 25 0:36 / /tmp rw - tmpfs  rw,size=1k\n"
      "28 25 0:4 net:[4026531992] /run/netns/x rw - nsfs nsfs rw\n"
      "29 25 0:5 / /c ro - 9p C:\\ rw,aname=drvfs;path=C:\\ x\n"
      "30 25 8:1 / /last rw - xfs /dev/sda1");
  EXPECT_EQ(rows, (Rows{"1|254:0|/dev/vda|/data|ext4|rw,data=ordered",
                        "2|0:35|/dev/mapper/a-b|/home|btrfs|rw,subvol=/@home",
                        "3|0:36||/tmp|tmpfs|rw,size=1k", "4|0:4|nsfs|/run/netns/x|nsfs|rw",
                        "5|0:5|C:\\|/c|9p|rw,aname=drvfs;path=C:\\ x",
                        "6|8:1|/dev/sda1|/last|xfs|"}));
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Mounts, EscapesAreUndone) {
  const auto [rows, problems] = mounts(
      "1 0 8:0 / /a\\040b\\011\\012\\134040\\043 rw - ext4 /dev/\\040 rw,x=\\054\n"
      "2 0 8:0 / /\\000\\377\\200\\4\\08x\\ rw - ext4 x\\04 rw");
  EXPECT_EQ(rows, (Rows{"1|8:0|/dev/ |/a b\t\n\\040#|ext4|rw,x=\\054",
                        "2|8:0|x\\04|/\\000\\377\\200\\4\\08x\\|ext4|rw"}));
  EXPECT_EQ(problems.lines, 0u);
}

TEST(Mounts, LinesThatAreNone) {
  for (const char* line :
       {"25", "25 31 254:0 / /data rw", "25 31 254:0 / /data rw -", "25 31 254:0 / /data rw - ext4",
        "25 31 254:0 / /data rw - ext4 ", "x 31 254:0 / /data rw - ext4 /dev/vda rw",
        "25  254:0 / /data rw - ext4 /dev/vda rw", "25 31 254 / /data rw - ext4 /dev/vda rw",
        "25 31 254: / /data rw - ext4 /dev/vda rw", "25 31 -1:0 / /data rw - ext4 /dev/vda rw",
        "25 31 99999999999999999999:0 / /data rw - ext4 /dev/vda rw",
        "25 31 254:0  /data rw - ext4 /dev/vda rw", "25 31 254:0 /  rw - ext4 /dev/vda rw",
        "25 31 254:0 / /data rw ext4 /dev/vda rw", "/dev/vda /data ext4 rw,relatime 0 0"}) {
    const auto [rows, problems] = mounts(line);
    EXPECT_EQ(rows, Rows{}) << line;
    EXPECT_EQ(problems.lines, 1u) << line;
  }
}

TEST(Bdis, FourFields) {
  const auto [rows, problems] = bdis(
      "8:0 sda1 / ext4\nbtrfs-1 vdb /my\\040data btrfs\n0:45 server:/export /net nfs4\n"
      "8:0 sda1 /\n8:0 sda1 / ext4 more\n8:0  / ext4\n\n8:16 sdb - swap");
  EXPECT_EQ(rows, (Rows{"1|8:0|sda1|/|ext4|", "2|btrfs-1|vdb|/my data|btrfs|",
                        "3|0:45|server:/export|/net|nfs4|", "8|8:16|sdb|-|swap|"}));
  EXPECT_EQ(problems.lines, 3u);
  EXPECT_EQ(problems.first_line, 4u);
}

TEST(Swaps, BelowTheHeading) {
  const auto [rows, problems] = swaps(
      "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
      "/dev/vdb                                partition\t976892\t\t1000\t\t-2\n"
      "/my\\040swap\\040(deleted) file 8 0 5\n"
      "/dev/vdc partition 8 0\n/dev/vdc partition 9223372036854775808 0 1\n"
      "swap file 8 0 1\n/dev/vdc partition -8 0 1\nFilename Type Size Used Priority\n");
  EXPECT_EQ(rows, (Rows{"/dev/vdb|partition|976892|1000|-2", "/my swap (deleted)|file|8|0|5"}));
  EXPECT_EQ(problems.lines, 5u);
  EXPECT_EQ(problems.first_line, 4u);
}

TEST(Stacks, DeviceAndDisk) {
  const auto [rows, problems] = stacks("253:0 8:0\nbtrfs-1 253:0\n253:0\n253:0 sda\n253:0 8:0 x\n");
  EXPECT_EQ(rows, (Rows{"253:0|8:0", "btrfs-1|253:0"}));
  EXPECT_EQ(problems.lines, 3u);
  EXPECT_EQ(problems.first_line, 3u);
}

TEST(MachineText, NoFileLosesItsGoodLines) {
  const std::string_view* good = kGood;
  for (const auto parse : kParsers) {
    const std::string line(*good++);
    const std::string bad[] = {std::string(1u << 20, 'x'), std::string(1u << 20, ' ') + "x",
                               line + std::string(1, '\0'), std::string(4096, '\0'),
                               line.substr(0, 3) + std::string(1u << 17, '9') + line.substr(3)};
    std::string text = line + "\n";
    for (const auto& each : bad) text += each + "\n" + line + "\n";
    const auto [rows, problems] = parse(text + line);
    EXPECT_EQ(rows.size(), 7u) << line;
    EXPECT_EQ(problems.lines, 5u) << line;
    EXPECT_EQ(problems.first_line, 2u) << line;
  }
}

TEST(MachineText, LongFilesAreReadToTheirEnd) {
  const std::string_view* good = kGood;
  for (const auto parse : kParsers) {
    const std::string line(*good++);
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += line + "\n";
    EXPECT_EQ(parse(text).rows.size(), 100'000u) << line;
  }
}

TEST(MachineText, TextsWithoutLines) {
  for (const auto parse : kParsers) {
    for (const char* text : {"", "\n", " \t\r\n\n"}) {
      EXPECT_EQ(parse(text).problems.lines, 0u);
      EXPECT_TRUE(parse(text).rows.empty());
    }
  }
}

}  // namespace
}  // namespace wbscope

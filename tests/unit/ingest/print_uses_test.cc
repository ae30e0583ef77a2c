// SPDX-License-Identifier: Apache-2.0
// What a print format does with its fields, and texts of binary printk.
#include "format/print_uses.h"

#include <gtest/gtest.h>

#include "format/printk_text.h"
#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;

std::set<std::string, std::less<>> symbols_of(const std::string& print) {
  return scan_print("name: x\n\nprint fmt: " + print).symbols;
}

TEST(PrintUses, SymbolsBelongToTheirConversion) {
  using Names = std::set<std::string, std::less<>>;
  EXPECT_EQ(symbols_of("\"%d %pS\", REC->a, REC->b"), Names{"b"});
  EXPECT_EQ(symbols_of("\"%*d %ps\", REC->w, REC->a, (void *)REC->b"), Names{"b"});
  EXPECT_EQ(symbols_of("\"100%% \" \"%-8.3lld|%pF\", f(REC->a, \"),\"), REC->b"), Names{"b"});
  EXPECT_EQ(symbols_of("\"%p %pK %pfw %pI4\", REC->a, REC->b, REC->c, REC->d"), Names{});
  EXPECT_EQ(symbols_of("\"%pS"), Names{});
  EXPECT_EQ(symbols_of("\"%pS\\"), Names{});
  EXPECT_EQ(symbols_of("\"%\", REC->a"), Names{});
}

TEST(PrintUses, HelpersOfDynamicFields) {
  const PrintUses uses = scan_print(
      "\nprint fmt: \"%s\", __get_bitmask(m), __get_rel_cpumask( c ), __get_sockaddr_rel(s), "
      "__get_bitmask(");
  EXPECT_TRUE(uses.bitmasks.contains("m"));
  EXPECT_TRUE(uses.cpumasks.contains("c"));
  EXPECT_TRUE(uses.sockaddrs.contains("s"));
  EXPECT_EQ(uses.bitmasks.size(), 1u);
}

// Whatever the arguments are cut at, the text is there or it is not.
TEST(PrintkText, CutArguments) {
  const std::string format = "%d %s %lld %c %5u %p %pI4 %hhx %%";
  Bytes args(ByteOrder::kLittle);
  args.u32(1).cstring("abc").u64(7).u8('x').align(4).u32(5).u64(0xbeef).cstring("1.2.3.4").u8(255);
  const auto whole = printk_text(format, args.span(), 8, ByteOrder::kLittle);
  EXPECT_EQ(whole, "1 abc 7 x     5 0xbeef 1.2.3.4 ff %");
  for (std::size_t bytes = 0; bytes < args.size(); ++bytes) {
    (void)printk_text(format, args.span().first(bytes), 8, ByteOrder::kLittle);
  }
  EXPECT_FALSE(printk_text("%d", {}, 8, ByteOrder::kLittle));
  const Bytes unended = Bytes(ByteOrder::kLittle).text("abc");
  EXPECT_FALSE(printk_text("%s", unended.span(), 8, ByteOrder::kLittle));
}

TEST(PrintkText, HostileFormats) {
  const Bytes args = Bytes(ByteOrder::kBig).u32(0x80000000).u64(~0ull).pad_to(256);
  for (const char* format : {"%", "%-", "%*", "%.*", "%999999999999d", "%.999999999d", "%lllllld",
                             "%hhhhd", "%n", "%+-# 0+-# 0+-# 0d", "%*.*s", "%pX"}) {
    const auto text = printk_text(format, args.span(), 4, ByteOrder::kBig);
    EXPECT_LT(text.value_or("").size(), 2048u) << format;
  }
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "%%abcdefgh";
  EXPECT_LE(printk_text(many, {}, 8, ByteOrder::kLittle)->size(), 65u << 10);
}

TEST(PrintkText, Formats) {
  const auto formats = parse_printk_formats(
      "0xffffffff82000000 : \"a \\\"b\\\" \\\\ %d\\n\"\nnonsense\n0x10 : \"\"\n0x20 \"x\"\n0x30 : \"y");
  EXPECT_EQ(formats.size(), 2u);
  EXPECT_EQ(formats.at(0xffffffff82000000), "a \"b\" \\ %d");
  EXPECT_EQ(formats.at(0x10), "");
}

}  // namespace
}  // namespace wbscope

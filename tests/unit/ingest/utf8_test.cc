// SPDX-License-Identifier: Apache-2.0
// UTF-8: the table "Well-Formed UTF-8 Byte Sequences" (RFC 3629, section 4),
// at the borders of each of its rows.
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace wbscope {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

class WellFormed : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Rfc3629, WellFormed,
                         ::testing::Values("", "dd", std::string("a\0b", 3), "\x7f",
                                           "\xc2\x80", "\xdf\xbf",          // U+0080, U+07FF
                                           "\xe0\xa0\x80", "\xef\xbf\xbf",  // U+0800, U+FFFF
                                           "\xed\x9f\xbf", "\xee\x80\x80",  // about surrogates
                                           "\xf0\x90\x80\x80",              // U+10000
                                           "\xf4\x8f\xbf\xbf",              // U+10FFFF
                                           "gr\xc3\xbc\xc3\x9f"));

TEST_P(WellFormed, IsKept) {
  EXPECT_TRUE(is_utf8(GetParam()));
  EXPECT_EQ(replace_invalid_utf8(GetParam()), GetParam());
}

class IllFormed : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Rfc3629, IllFormed,
                         ::testing::Values("\x80", "\xbf",            // continuation alone
                                           "\xc0\x80", "\xc1\xbf",    // 2 bytes for ASCII
                                           "\xe0\x80\x80",            // 3 bytes for U+0000
                                           "\xe0\x9f\xbf",            // 3 bytes for U+07FF
                                           "\xf0\x8f\xbf\xbf",        // 4 bytes for U+FFFF
                                           "\xed\xa0\x80",            // U+D800
                                           "\xed\xbf\xbf",            // U+DFFF
                                           "\xf4\x90\x80\x80",        // U+110000
                                           "\xf5\x80\x80\x80", "\xfe", "\xff"));

// No part of these is well-formed, so each byte is replaced by itself.
TEST_P(IllFormed, EachByteIsReplaced) {
  EXPECT_FALSE(is_utf8(GetParam()));
  std::string wanted;
  for (std::size_t i = 0; i < GetParam().size(); ++i) wanted += kReplacement;
  EXPECT_EQ(replace_invalid_utf8(GetParam()), wanted);
}

TEST(Utf8, TruncatedCharacters) {
  for (const std::string whole : {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    for (std::size_t have = 1; have < whole.size(); ++have) {
      EXPECT_FALSE(is_utf8(whole.substr(0, have)));
      EXPECT_FALSE(is_utf8(whole.substr(0, have) + "x"));
      EXPECT_FALSE(is_utf8("x" + whole.substr(0, have)));
    }
    EXPECT_TRUE(is_utf8("x" + whole + "x"));
  }
}

TEST(Utf8, GoodTextAroundABadByteIsKept) {
  const std::string good = "\xc3\xbc";
  EXPECT_EQ(replace_invalid_utf8("a" + good + "\xff" + good + "b"),
            "a" + good + kReplacement + good + "b");
  // A lead byte without its continuation does not eat what follows.
  EXPECT_EQ(replace_invalid_utf8("\xe2\x82z"), std::string(kReplacement) + kReplacement + "z");
}

TEST(Utf8, WhatWasReplacedIsUtf8) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_FALSE(is_utf8(all));
  EXPECT_TRUE(is_utf8(replace_invalid_utf8(all)));
}

}  // namespace
}  // namespace wbscope

/* SPDX-License-Identifier: GPL-2.0-only */
/* One event for each way in which a field can lie in a record. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM wbscope_samples

#if !defined(WBSCOPE_SAMPLES_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WBSCOPE_SAMPLES_TRACE_H

#include <linux/tracepoint.h>
#include <linux/version.h>

#ifndef WBSCOPE_SAMPLES_TYPES
#define WBSCOPE_SAMPLES_TYPES
enum sample_kind { SAMPLE_ONE = 1, SAMPLE_TWO, SAMPLE_MINUS = -3 };

struct sample_pair {
	u16 first;
	u32 second;
};

struct sample {
	int round;
	const char *text;
	int list[8];
	int list_len;
	u64 longs[4];
	u8 blob[3001];
	int blob_len;
	unsigned long mask[2];
	int mask_bits;
	u8 address[28];
	int address_len;
};
#endif

/* From 6.10 on __assign_str() takes the source from __string(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define assign_text(field, text) __assign_str(field)
#define assign_rel_text(field, text) __assign_rel_str(field)
#else
#define assign_text(field, text) __assign_str(field, text)
#define assign_rel_text(field, text) __assign_rel_str(field, text)
#endif

TRACE_DEFINE_ENUM(SAMPLE_ONE);
TRACE_DEFINE_ENUM(SAMPLE_TWO);
TRACE_DEFINE_ENUM(SAMPLE_MINUS);

TRACE_EVENT(sample_fixed,
	TP_PROTO(int round),
	TP_ARGS(round),
	TP_STRUCT__entry(
		__field(s8, a8)
		__field(u8, b8)
		__field(s16, a16)
		__field(u16, b16)
		__field(s32, a32)
		__field(u32, b32)
		__field(s64, a64)
		__field(u64, b64)
		__field(bool, yes)
		__field(long, a_long)
		__field(unsigned long, b_long)
		__field(void *, pointer)
		__field(enum sample_kind, kind)
		__field(unsigned int, flags)
		__array(char, name, 8)
		__array(u8, mac, 6)
		__array(s16, shorts, 3)
		__array(u32, words, 2)
		__array(s64, longs, 2)
		__field_struct(struct sample_pair, pair)
	),
	TP_fast_assign(
		int i;

		__entry->a8 = -round;
		__entry->b8 = 255 - round;
		__entry->a16 = -300 * round;
		__entry->b16 = 65535 - round;
		__entry->a32 = -70000 * round;
		__entry->b32 = 4294967295U - round;
		__entry->a64 = -5000000000LL * round;
		__entry->b64 = 18446744073709551615ULL - round;
		__entry->yes = round & 1;
		__entry->a_long = -round;
		__entry->b_long = -1UL - round;
		__entry->pointer = (void *)-1UL - round;
		__entry->kind = round == 1 ? SAMPLE_ONE : round == 2 ? SAMPLE_TWO : SAMPLE_MINUS;
		__entry->flags = 1 << round | 1;
		memcpy(__entry->name, "12345678", 8);
		if (round < 8)
			__entry->name[round] = 0;
		for (i = 0; i < 6; i++)
			__entry->mac[i] = 0x50 + i * round;
		for (i = 0; i < 3; i++)
			__entry->shorts[i] = (i - 1) * 1000 * round;
		for (i = 0; i < 2; i++) {
			__entry->words[i] = 4000000000U + i + round;
			__entry->longs[i] = (i ? -1 : 1) * 6000000000LL * round;
		}
		__entry->pair.first = round;
		__entry->pair.second = 100000 * round;
	),
	TP_printk("a8=%d b8=%u a16=%d b16=%u a32=%d b32=%u a64=%lld b64=%llu yes=%d a_long=%ld "
		  "b_long=%lu pointer=%px kind=%s flags=%s name=%.8s mac=%pM shorts=%s words=%s",
		  __entry->a8, __entry->b8, __entry->a16, __entry->b16, __entry->a32, __entry->b32,
		  __entry->a64, __entry->b64, __entry->yes, __entry->a_long, __entry->b_long,
		  __entry->pointer,
		  __print_symbolic(__entry->kind, { SAMPLE_ONE, "one" }, { SAMPLE_TWO, "two" },
				   { SAMPLE_MINUS, "minus three" }),
		  __print_flags(__entry->flags, "|", { 1, "LOW" }, { 2, "NEXT" }, { 4, "THIRD" }),
		  __entry->name, __entry->mac, __print_array(__entry->shorts, 3, 2),
		  __print_array(__entry->words, 2, 4))
);

TRACE_EVENT(sample_dynamic,
	TP_PROTO(const struct sample *s),
	TP_ARGS(s),
	TP_STRUCT__entry(
		__field(int, round)
		__string(text, s->text)
		__dynamic_array(int, list, s->list_len)
		__dynamic_array(u64, longs, s->list_len > 4 ? 4 : s->list_len)
		__dynamic_array(u8, blob, s->blob_len)
		__dynamic_array(char, chars, 5)
		__bitmask(mask, s->mask_bits)
		__sockaddr(address, s->address_len)
	),
	TP_fast_assign(
		__entry->round = s->round;
		assign_text(text, s->text);
		memcpy(__get_dynamic_array(list), s->list, __get_dynamic_array_len(list));
		memcpy(__get_dynamic_array(longs), s->longs, __get_dynamic_array_len(longs));
		memcpy(__get_dynamic_array(blob), s->blob, __get_dynamic_array_len(blob));
		memcpy(__get_dynamic_array(chars), "ab\0cd", 5);
		__assign_bitmask(mask, s->mask, s->mask_bits);
		__assign_sockaddr(address, s->address, s->address_len);
	),
	TP_printk("round=%d text=%s list=%s blob=%s mask=%s address=%pISpc", __entry->round,
		  __get_str(text),
		  __print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 4, 4),
		  __print_hex(__get_dynamic_array(blob), min(__get_dynamic_array_len(blob), 16)),
		  __get_bitmask(mask), __get_sockaddr(address))
);

TRACE_EVENT(sample_relative,
	TP_PROTO(const struct sample *s),
	TP_ARGS(s),
	TP_STRUCT__entry(
		__rel_string(text, s->text)
		__field(int, round)
		__rel_dynamic_array(int, list, s->list_len)
		__rel_dynamic_array(u64, longs, s->list_len > 4 ? 4 : s->list_len)
		__rel_dynamic_array(u8, blob, s->blob_len)
		__rel_bitmask(mask, s->mask_bits)
		__rel_sockaddr(address, s->address_len)
	),
	TP_fast_assign(
		assign_rel_text(text, s->text);
		__entry->round = s->round;
		memcpy(__get_rel_dynamic_array(list), s->list, __get_rel_dynamic_array_len(list));
		memcpy(__get_rel_dynamic_array(longs), s->longs, __get_rel_dynamic_array_len(longs));
		memcpy(__get_rel_dynamic_array(blob), s->blob, __get_rel_dynamic_array_len(blob));
		__assign_rel_bitmask(mask, s->mask, s->mask_bits);
		__assign_rel_sockaddr(address, s->address, s->address_len);
	),
	TP_printk("round=%d text=%s list=%s mask=%s address=%pISpc", __entry->round,
		  __get_rel_str(text),
		  __print_array(__get_rel_dynamic_array(list),
				__get_rel_dynamic_array_len(list) / 4, 4),
		  __get_rel_bitmask(mask), __get_rel_sockaddr(address))
);

/* A type that no parser of format texts understands. */
TRACE_EVENT(sample_unparsable,
	TP_PROTO(int round),
	TP_ARGS(round),
	TP_STRUCT__entry(
		__field(int, round)
		__field(typeof(int (*)(int)), function)
	),
	TP_fast_assign(
		__entry->round = round;
		__entry->function = (void *)(0x1000UL * round);
	),
	TP_printk("round=%d function=%px", __entry->round, __entry->function)
);

/* Fields that any parser understands, a print format that none does. */
TRACE_EVENT(sample_unprintable,
	TP_PROTO(int round),
	TP_ARGS(round),
	TP_STRUCT__entry(
		__field(int, round)
	),
	TP_fast_assign(
		__entry->round = round;
	),
	TP_printk("round=%d %s", __entry->round,
		  ({ const char *word = "even"; if (__entry->round & 1) word = "odd"; word; }))
);

/* Names that the tables of a database have for themselves; no field at all. */
TRACE_EVENT(sample_names,
	TP_PROTO(int round),
	TP_ARGS(round),
	TP_STRUCT__entry(
		__field(int, ts)
		__field(int, cpu)
		__field(int, seq)
		__field(int, rowid)
		__field(int, select)
	),
	TP_fast_assign(
		__entry->ts = round;
		__entry->cpu = round + 1;
		__entry->seq = round + 2;
		__entry->rowid = round + 3;
		__entry->select = round + 4;
	),
	TP_printk("ts=%d cpu=%d seq=%d rowid=%d select=%d", __entry->ts, __entry->cpu, __entry->seq,
		  __entry->rowid, __entry->select)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE wbscope_samples_trace
#include <trace/define_trace.h>

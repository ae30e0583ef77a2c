// SPDX-License-Identifier: GPL-2.0-only
/* Emits the events of wbscope_samples_trace.h: echo ROUNDS > parameters/emit */
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/socket.h>
#include <linux/in.h>

#define CREATE_TRACE_POINTS
#include "wbscope_samples_trace.h"

static const char *const texts[] = { "", "plain", "two words", "caf\xc3\xa9", "bad \xff byte",
				     "a longer text, of more than thirty-two bytes, for a change" };

static struct sample sample;

static void fill(struct sample *s, int round)
{
	struct sockaddr_in *v4 = (void *)s->address;
	struct sockaddr_in6 *v6 = (void *)s->address;
	int i;

	memset(s, 0, sizeof(*s));
	s->round = round;
	s->text = texts[round % ARRAY_SIZE(texts)];
	s->list_len = round % 8;
	for (i = 0; i < 8; i++)
		s->list[i] = (i - 3) * 100003 * round;
	for (i = 0; i < 4; i++)
		s->longs[i] = 18446744073709551557ULL - i * round;
	s->blob_len = round == 5 ? 3001 : round * 3;
	for (i = 0; i < s->blob_len; i++)
		s->blob[i] = i * 7 + round;
	s->mask_bits = 13 + 31 * round;
	if (s->mask_bits > 128)
		s->mask_bits = 128;
	s->mask[0] = 0x5a5a5a5aUL << round;
	s->mask[1] = 0x81;
	if (round % 3 == 0) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(8000 + round);
		v4->sin_addr.s_addr = htonl(0xc0000200 + round); /* 192.0.2.0/24 */
		s->address_len = sizeof(*v4);
	} else if (round % 3 == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(9000 + round);
		v6->sin6_addr.s6_addr32[0] = htonl(0x20010db8);
		v6->sin6_addr.s6_addr32[3] = htonl(round);
		s->address_len = sizeof(*v6);
	}
}

static int emit(const char *text, const struct kernel_param *parameter)
{
	int rounds, round, err;

	err = kstrtoint(text, 0, &rounds);
	if (err)
		return err;
	for (round = 0; round < rounds; round++) {
		fill(&sample, round);
		trace_sample_fixed(round);
		trace_sample_dynamic(&sample);
		trace_sample_relative(&sample);
		trace_sample_unparsable(round);
		trace_sample_unprintable(round);
		trace_sample_names(round);
		trace_printk("trace_printk round %d of %s\n", round, sample.text);
		trace_puts("trace_puts of a constant\n");
		__trace_printk(_THIS_IP_, "print without a constant %d\n", round);
	}
	return 0;
}

static const struct kernel_param_ops emit_ops = { .set = emit };
module_param_cb(emit, &emit_ops, NULL, 0200);
MODULE_PARM_DESC(emit, "write a number: how many rounds of every event to emit");

static int __init samples_init(void)
{
	return 0;
}

static void __exit samples_exit(void)
{
}

module_init(samples_init);
module_exit(samples_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("trace events with every kind of field");

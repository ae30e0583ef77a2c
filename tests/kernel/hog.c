// SPDX-License-Identifier: Apache-2.0
// Memory for the guest of make kernel-test.
// usage: hog MB SECONDS [KIND]   touch it again and again for so long
//        hog MB pageout [KIND]   touch it once, then MADV_PAGEOUT
// KIND: huge    in folios of 2 MiB, if there are any; touched once, then left alone
//       shared  shared memory: it has an inode of tmpfs
//       held    a pipe has a reference to the first 16 pages
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#define HUGE (2 << 20)

static int fail(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[3] : "";
	int flags = strcmp(kind, "shared") ? MAP_PRIVATE : MAP_SHARED;
	int huge = !strcmp(kind, "huge");
	struct iovec held;
	size_t size, at;
	char *memory;
	int ends[2];
	time_t end;

	if (argc < 3)
		return 2;
	size = strtoul(argv[1], NULL, 10) << 20;
	memory = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE,
		      flags | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return fail("mmap");
	memory += -(uintptr_t)memory % HUGE;
	if (huge && madvise(memory, size, MADV_HUGEPAGE))
		return fail("MADV_HUGEPAGE");
	end = time(NULL) + atoi(argv[2]);
	do {
		// Every page differs, so that no swap device merges them.
		for (at = 0; at < size; at += 4096)
			memory[at] = (char)(at >> 12 | 1);
	} while (!huge && time(NULL) < end);
	if (!strcmp(kind, "held")) {
		held.iov_base = memory;
		held.iov_len = 16 * 4096;
		if (pipe(ends) || vmsplice(ends[1], &held, 1, 0) != 16 * 4096)
			return fail("vmsplice");
	}
	if (!strcmp(argv[2], "pageout")) {
		if (madvise(memory, size, MADV_PAGEOUT))
			return fail("MADV_PAGEOUT");
	} else if (huge) {
		sleep(atoi(argv[2]));
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Anonymous memory for the guest of make kernel-test.
// usage: hog MB SECONDS   touch it again and again for so long
//        hog MB pageout   touch it once, then MADV_PAGEOUT
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

int main(int argc, char **argv)
{
	size_t size, at;
	time_t end;
	char *memory;

	if (argc != 3)
		return 2;
	size = strtoul(argv[1], NULL, 10) << 20;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	end = time(NULL) + atoi(argv[2]);
	do {
		// Every page differs, so that no swap device merges them.
		for (at = 0; at < size; at += 4096)
			memory[at] = (char)(at >> 12 | 1);
	} while (time(NULL) < end);
	if (!strcmp(argv[2], "pageout") && madvise(memory, size, MADV_PAGEOUT)) {
		perror("madvise");
		return 1;
	}
	return 0;
}

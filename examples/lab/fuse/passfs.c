// SPDX-License-Identifier: Apache-2.0
/*
 * passfs BACKING MOUNTPOINT COUNTS [WRITE_US]: a FUSE server for one experiment.
 *
 * One folder of files, each kept in a file of BACKING. It has the kernel's page cache take writes
 * (FUSE_WRITEBACK_CACHE), so they are dirty pages of a bdi with strictlimit. It returns when the
 * file system is mounted, and serves until that is unmounted; then it writes to COUNTS how many
 * requests of each opcode it served, the bytes that WRITE brought, and how long they took it:
 * WRITE_US microseconds each, or a little more, for a server that is slower than its writers.
 *
 * It speaks the protocol of /dev/fuse itself, so that a guest needs no library:
 *     cc -O2 -Wall -static -o passfs passfs.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	kMaxWrite = 128 << 10,
	kBuffer = kMaxWrite + (8 << 10),
	kFiles = 256,
	kOpcodes = 64,
	kName = 64,
};

static int device;
static int backing;
static char names[kFiles][kName];
static int files[kFiles];
static int files_count;
static uint64_t served[kOpcodes];
static uint64_t write_bytes;
static uint64_t write_ns;
static struct timespec write_time;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void reply(uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header head = {
		.len = sizeof(head) + (error ? 0 : size),
		.error = -error,
		.unique = unique,
	};
	struct iovec parts[] = {
		{ &head, sizeof(head) },
		{ (void *)data, error ? 0 : size },
	};

	/* ENOENT: the one who waited was killed. */
	if (writev(device, parts, 2) < 0 && errno != ENOENT)
		fail("writev");
}

/* The root is 1, files follow; -1 is no file. */
static int file_of(uint64_t node)
{
	return node >= 2 && node < 2 + (uint64_t)files_count ? (int)node - 2 : -1;
}

static int stat_of(uint64_t node, struct fuse_attr *attr)
{
	struct stat told;
	int file = file_of(node);

	memset(attr, 0, sizeof(*attr));
	if (node != FUSE_ROOT_ID && file < 0)
		return ENOENT;
	if (fstat(file < 0 ? backing : files[file], &told))
		return errno;
	attr->ino = node;
	attr->mode = file < 0 ? S_IFDIR | 0755 : S_IFREG | 0644;
	attr->nlink = 1;
	attr->size = told.st_size;
	attr->blocks = told.st_blocks;
	attr->blksize = 4096;
	attr->mtime = told.st_mtime;
	attr->ctime = told.st_ctime;
	return 0;
}

static int entry_of(const char *name, int create, struct fuse_entry_out *entry)
{
	int file;

	for (file = 0; file < files_count; file++)
		if (!strcmp(names[file], name))
			break;
	if (file == files_count) {
		if (!create)
			return ENOENT;
		if (file == kFiles || strlen(name) >= kName)
			return ENOSPC;
		files[file] = openat(backing, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (files[file] < 0)
			return errno;
		strcpy(names[file], name);
		files_count++;
	}
	memset(entry, 0, sizeof(*entry));
	entry->nodeid = file + 2;
	entry->entry_valid = 60;
	entry->attr_valid = 60;
	return stat_of(entry->nodeid, &entry->attr);
}

static void serve_init(const struct fuse_in_header *in, const struct fuse_init_in *asked)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = asked->minor < FUSE_KERNEL_MINOR_VERSION ? asked->minor
								   : FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = asked->max_readahead,
		.flags = asked->flags & (FUSE_BIG_WRITES | FUSE_WRITEBACK_CACHE | FUSE_MAX_PAGES),
		.max_background = 12,
		.congestion_threshold = 9,
		.max_write = kMaxWrite,
		.max_pages = kMaxWrite / 4096,
		.time_gran = 1,
	};

	if (!(out.flags & FUSE_WRITEBACK_CACHE))
		fprintf(stderr, "passfs: this kernel has no FUSE_WRITEBACK_CACHE\n");
	reply(in->unique, 0, &out, sizeof(out));
}

static void serve_write(const struct fuse_in_header *in, const struct fuse_write_in *asked)
{
	struct fuse_write_out out = { 0 };
	struct timespec before, after;
	int file = file_of(in->nodeid);
	ssize_t size;

	clock_gettime(CLOCK_MONOTONIC, &before);
	size = file < 0 ? -1 : pwrite(files[file], asked + 1, asked->size, asked->offset);
	nanosleep(&write_time, NULL);
	clock_gettime(CLOCK_MONOTONIC, &after);
	if (size < 0) {
		reply(in->unique, file < 0 ? ENOENT : errno, NULL, 0);
		return;
	}
	write_bytes += size;
	write_ns += (after.tv_sec - before.tv_sec) * 1000000000ull + after.tv_nsec - before.tv_nsec;
	out.size = size;
	reply(in->unique, 0, &out, sizeof(out));
}

static void serve(const struct fuse_in_header *in)
{
	const void *asked = in + 1;
	int file = file_of(in->nodeid);
	int error = 0;

	if (in->opcode < kOpcodes)
		served[in->opcode]++;
	switch (in->opcode) {
	case FUSE_INIT:
		serve_init(in, asked);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* wants no answer */
	case FUSE_LOOKUP: {
		struct fuse_entry_out out;

		error = entry_of(asked, 0, &out);
		reply(in->unique, error, &out, sizeof(out));
		return;
	}
	case FUSE_CREATE: {
		struct {
			struct fuse_entry_out entry;
			struct fuse_open_out open;
		} out = { 0 };

		error = entry_of((const char *)asked + sizeof(struct fuse_create_in), 1, &out.entry);
		reply(in->unique, error, &out, sizeof(out));
		return;
	}
	case FUSE_GETATTR:
	case FUSE_SETATTR: {
		struct fuse_attr_out out = { .attr_valid = 60 };
		const struct fuse_setattr_in *set = asked;

		if (in->opcode == FUSE_SETATTR && set->valid & FATTR_SIZE && file >= 0)
			if (ftruncate(files[file], set->size))
				error = errno;
		if (!error)
			error = stat_of(in->nodeid, &out.attr);
		reply(in->unique, error, &out, sizeof(out));
		return;
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR: {
		struct fuse_open_out out = { 0 };

		reply(in->unique, 0, &out, sizeof(out));
		return;
	}
	case FUSE_WRITE:
		serve_write(in, asked);
		return;
	case FUSE_READ: {
		static char data[kMaxWrite];
		const struct fuse_read_in *read_in = asked;
		size_t size = read_in->size < sizeof(data) ? read_in->size : sizeof(data);
		ssize_t got = file < 0 ? -1 : pread(files[file], data, size, read_in->offset);

		reply(in->unique, got < 0 ? EIO : 0, data, got < 0 ? 0 : got);
		return;
	}
	case FUSE_READDIR: {
		static char data[kMaxWrite];
		const struct fuse_read_in *read_in = asked;
		size_t size = 0;

		for (int n = (int)read_in->offset; n < files_count; n++) {
			struct fuse_dirent *entry = (struct fuse_dirent *)(data + size);
			size_t length = strlen(names[n]);
			size_t wanted = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);

			if (size + wanted > read_in->size || size + wanted > sizeof(data))
				break;
			memset(entry, 0, wanted);
			entry->ino = n + 2;
			entry->off = n + 1;
			entry->namelen = length;
			entry->type = S_IFREG >> 12;
			memcpy(entry->name, names[n], length);
			size += wanted;
		}
		reply(in->unique, 0, data, size);
		return;
	}
	case FUSE_FSYNC:
		if (file >= 0 && fdatasync(files[file]))
			error = errno;
		reply(in->unique, error, NULL, 0);
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FSYNCDIR:
	case FUSE_DESTROY:
		reply(in->unique, 0, NULL, 0);
		return;
	case FUSE_STATFS: {
		struct fuse_statfs_out out = { .st = { .blocks = 1 << 20, .bfree = 1 << 20,
						       .bavail = 1 << 20, .bsize = 4096,
						       .frsize = 4096, .namelen = kName - 1 } };

		reply(in->unique, 0, &out, sizeof(out));
		return;
	}
	default:
		reply(in->unique, ENOSYS, NULL, 0);
	}
}

static void tell(const char *path)
{
	static const struct {
		int opcode;
		const char *name;
	} told[] = {
		{ FUSE_WRITE, "WRITE" }, { FUSE_FSYNC, "FSYNC" }, { FUSE_FLUSH, "FLUSH" },
		{ FUSE_CREATE, "CREATE" }, { FUSE_LOOKUP, "LOOKUP" }, { FUSE_GETXATTR, "GETXATTR" },
		{ FUSE_GETATTR, "GETATTR" }, { FUSE_SETATTR, "SETATTR" }, { FUSE_RELEASE, "RELEASE" },
	};
	char draft[4096];
	FILE *out;

	snprintf(draft, sizeof(draft), "%s.part", path);
	out = fopen(draft, "w");
	if (!out)
		fail(draft);
	for (size_t n = 0; n < sizeof(told) / sizeof(*told); n++)
		fprintf(out, "%s %llu\n", told[n].name, (unsigned long long)served[told[n].opcode]);
	fprintf(out, "write_bytes %llu\nwrite_ns %llu\n", (unsigned long long)write_bytes,
		(unsigned long long)write_ns);
	if (fclose(out) || rename(draft, path))
		fail(path);
}

int main(int argc, char **argv)
{
	static char buffer[kBuffer] __attribute__((aligned(8)));
	char options[128], *end = "";

	if (argc == 5)
		write_time.tv_nsec = 1000l * strtol(argv[4], &end, 10);
	if (argc < 4 || argc > 5 || *end || write_time.tv_nsec < 0 || write_time.tv_nsec > 999999999) {
		fprintf(stderr, "usage: passfs BACKING MOUNTPOINT COUNTS [WRITE_US], below 1000000\n");
		return 2;
	}
	backing = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (backing < 0)
		fail(argv[1]);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		fail("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 device);
	if (mount("passfs", argv[2], "fuse", MS_NOSUID | MS_NODEV, options))
		fail("mount");
	switch (fork()) {
	case -1:
		fail("fork");
		break;
	case 0:
		break;
	default:
		return 0;
	}
	setsid();
	for (;;) {
		ssize_t got = read(device, buffer, sizeof(buffer));

		if (got >= (ssize_t)sizeof(struct fuse_in_header))
			serve((const struct fuse_in_header *)buffer);
		else if (got < 0 && errno == ENODEV)
			break; /* unmounted */
		else if (got < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
			fail("read");
	}
	tell(argv[3]);
	return 0;
}

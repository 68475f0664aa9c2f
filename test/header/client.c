/*
 * client.c - one binary for two libraries. Linked against the stand-in that
 * standin.py makes from phoenix.h; then run on it (`client standin`) and,
 * unchanged, on the real one with the host connector (`client library FILE`).
 */
#include <errno.h>
#include <phoenix.h>

#include "standin_values.h"

enum { LEN = 1 << 16, HALF = LEN / 2 };

static int failures;

static void expect(const char *what, long got, long want)
{
	if (got == want)
		return;
	failures++;
	printf("%s: got %ld, want %ld (errno %s)\n", what, got, want, strerror(errno));
}

static void on_standin(void)
{
#define CHECK(name, got, want) expect(name, got, want);
	STANDIN_CALLS(CHECK)
#undef CHECK
	expect("phxfs_find_dev_for_cuda_gpu", phxfs_find_dev_for_cuda_gpu(0), phxfs_find_dev(0));
}

/* Two halves of the file, to or from the two halves of buf. */
static void halves(phxfs_io_req_t *reqs, int fd, void *buf)
{
	int i;

	for (i = 0; i < 2; i++) {
		phxfs_io_req_t r = { fd, 0, buf, (off_t)i * HALF, HALF, (off_t)i * HALF, -1 };
		reqs[i] = r;
	}
}

static void batches(int fd, unsigned char *buf)
{
	phxfs_io_req_t reqs[2];
	phxfs_batch_t *b;

	halves(reqs, fd, buf);
	memset(buf, 0x11, LEN);
	expect("phxfs_write_batch", phxfs_write_batch(reqs, 2), 0);
	memset(buf, 0, LEN);
	expect("phxfs_read_batch", phxfs_read_batch(reqs, 2), 0);
	expect("result of a batch", reqs[1].result, HALF);
	expect("byte after phxfs_read_batch", buf[LEN - 1], 0x11);

	memset(buf, 0x22, LEN);
	b = phxfs_batch_submit_write(reqs, 2);
	expect("phxfs_batch_submit_write gives a handle", b != NULL, 1);
	expect("phxfs_batch_wait", phxfs_batch_wait(b), 0);
	expect("phxfs_batch_wait a second time", phxfs_batch_wait(b), -EINVAL);
	memset(buf, 0, LEN);
	b = phxfs_batch_submit_read(reqs, 2);
	expect("phxfs_batch_submit_read gives a handle", b != NULL, 1);
	expect("phxfs_batch_destroy", phxfs_batch_destroy(b), 0);
	expect("byte after phxfs_batch_destroy", buf[LEN - 1], 0x22);
}

static void on_library(const char *path)
{
	unsigned char *buf = NULL;
	void *target = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	expect("open of the file", fd >= 0, 1);
	expect("posix_memalign", posix_memalign((void **)&buf, LEN, LEN), 0);
	expect("phxfs_get_page_size", (long)phxfs_get_page_size(), 65536);
	expect("phxfs_find_dev", phxfs_find_dev(3), 3);
	expect("phxfs_find_dev_for_cuda_gpu", phxfs_find_dev_for_cuda_gpu(3), 3);
	expect("phxfs_open", phxfs_open(0), 0);
	expect("phxfs_regmem", phxfs_regmem(0, buf, LEN, &target), 0);
	expect("target of the host connector", target == buf, 1);
	memset(buf, 0x5a, LEN);
	expect("phxfs_write", phxfs_write(fd, 0, buf, 0, LEN, 0), LEN);
	memset(buf, 0, LEN);
	expect("phxfs_read", phxfs_read(fd, 0, buf, 0, LEN, 0), LEN);
	expect("byte after phxfs_read", buf[LEN - 1], 0x5a);
	batches(fd, buf);
	expect("phxfs_io_engine_name gives a name", phxfs_io_engine_name() != NULL, 1);
	expect("phxfs_deregmem", phxfs_deregmem(0, buf, LEN), 0);
	expect("phxfs_close", phxfs_close(0), 0);
	close(fd);
	unlink(path);
	free(buf);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "standin"))
		on_standin();
	else if (argc == 3 && !strcmp(argv[1], "library"))
		on_library(argv[2]);
	else
		return 2;
	return failures != 0;
}

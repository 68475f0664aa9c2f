#include "bench.h"

#include <getopt.h>

static const char usage[] =
    "phx_bench --lib LIB.so [option]...\n"
    "  --mode M        batch: synchronous batches (default)\n"
    "                  async: submit, then wait       submit: the submit call alone\n"
    "                  single: phxfs_read or phxfs_write\n"
    "                  threads: batches from --threads threads at once\n"
    "                  regmem: register, deregister, with --live others alive\n"
    "                  load: threads and memory after loading, after the first batch\n"
    "                  huge: one request of --size bytes, --sparse, larger than memory\n"
    "  --size BYTES    of a request (4K), suffixes K M G   --count N   requests of a batch (1)\n"
    "  --pattern P     random (default), sequential: contiguous in file and memory,\n"
    "                  scattered: contiguous in the file only\n"
    "  --write         instead of read                --direct    O_DIRECT\n"
    "  --registered    device memory (HOST unless PHXFS_VENDOR says otherwise), not CPU memory\n"
    "  --file PATH     made if missing (phx_bench.dat) --span BYTES  used of it (256M)\n"
    "  --sparse        a file without data, which is as long as --span\n"
    "  --seconds S     to measure (0.2)               --iterations N  calls instead\n"
    "  --least N       calls measured at least (3)\n"
    "  -v              check every byte that is moved --json      one line of JSON, nothing else\n";

static size_t bytes(const char *text) {
  char *end;
  unsigned long long n = strtoull(text, &end, 10);
  int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  if (end == text || end[shift != 0]) fail("not a size: %s", text);
  return (size_t)n << shift;
}

static long number(const char *text, long least, long most) {
  char *end;
  long n = strtol(text, &end, 10);
  if (end == text || *end || n < least || n > most) fail("not a number from %ld to %ld: %s", least, most, text);
  return n;
}

static enum pattern pattern(const char *text) {
  if (!strcmp(text, "random")) return RANDOM;
  if (!strcmp(text, "sequential")) return SEQUENTIAL;
  if (!strcmp(text, "scattered")) return SCATTERED;
  fail("no pattern is called %s", text);
}

void options_parse(struct options *o, int argc, char **argv) {
  enum { LIB = 256, MODE, SIZE, COUNT, PATTERN, WRITE, DIRECT, REGISTERED, PATH, SPAN, SPARSE, SECONDS, ITERATIONS, LEAST, THREADS, LIVE, JSON };
  static const struct option names[] = {
    {"lib", 1, 0, LIB}, {"mode", 1, 0, MODE}, {"size", 1, 0, SIZE}, {"count", 1, 0, COUNT},
    {"pattern", 1, 0, PATTERN}, {"write", 0, 0, WRITE}, {"direct", 0, 0, DIRECT},
    {"registered", 0, 0, REGISTERED}, {"file", 1, 0, PATH}, {"span", 1, 0, SPAN}, {"sparse", 0, 0, SPARSE},
    {"seconds", 1, 0, SECONDS}, {"iterations", 1, 0, ITERATIONS}, {"least", 1, 0, LEAST},
    {"threads", 1, 0, THREADS}, {"live", 1, 0, LIVE}, {"json", 0, 0, JSON}, {0, 0, 0, 0},
  };
  int c;
  *o = (struct options){.mode = "batch", .file = "phx_bench.dat", .size = 4096, .span = (size_t)256 << 20,
                        .count = 1, .threads = 4, .seconds = 0.2, .least = 3};
  while ((c = getopt_long(argc, argv, "vh", names, NULL)) != -1) {
    switch (c) {
    case LIB: o->lib = optarg; break;
    case MODE: o->mode = optarg; break;
    case SIZE: o->size = bytes(optarg); break;
    case COUNT: o->count = (int)number(optarg, 1, 1 << 20); break;
    case PATTERN: o->pattern = pattern(optarg); break;
    case WRITE: o->write = true; break;
    case DIRECT: o->direct = true; break;
    case REGISTERED: o->registered = true; break;
    case PATH: o->file = optarg; break;
    case SPAN: o->span = bytes(optarg); break;
    case SPARSE: o->sparse = true; break;
    case SECONDS: o->seconds = strtod(optarg, NULL); break;
    case ITERATIONS: o->iterations = number(optarg, 1, 1L << 40); break;
    case LEAST: o->least = number(optarg, 1, 1 << 20); break;
    case THREADS: o->threads = (int)number(optarg, 1, 1024); break;
    case LIVE: o->live = (int)number(optarg, 0, 1 << 20); break;
    case JSON: o->json = true; break;
    case 'v': o->verify = true; break;
    case 'h': fputs(usage, stdout); exit(0);
    default: fputs(usage, stderr); exit(2);
    }
  }
  if (!o->lib || optind != argc) fputs(usage, stderr), exit(2);
  if (!o->size || o->size % 8) fail("--size is a multiple of 8, not %zu", o->size);
  size_t need = o->pattern == RANDOM ? o->size : o->size * (size_t)o->count;
  if (o->span < need) o->span = need;
}

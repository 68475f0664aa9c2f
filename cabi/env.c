#define _GNU_SOURCE
#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void reject(struct phx_env *e, const char *name, const char *why) {
  size_t n = strlen(e->bad);
  snprintf(e->bad + n, sizeof e->bad - n, "%s%s %s", n ? "; " : "", name, why);
}

static void text(struct phx_env *e, const char *name, char *to, size_t size, const char *dflt) {
  const char *v = secure_getenv(name);
  if (v && strlen(v) >= size) {
    reject(e, name, "is too long and is ignored");
    v = NULL;
  }
  snprintf(to, size, "%s", v && *v ? v : dflt);
}

static int level(struct phx_env *e) {
  static const char *const names[] = {"off", "error", "warn", "info", "debug"};
  const char *v = secure_getenv("PHXFS_LOG");
  if (!v || !*v || !strcmp(v, "0") || !strcasecmp(v, "none")) return PHX_LOG_OFF;
  for (int i = 0; i < 5; i++)
    if (!strcasecmp(v, names[i])) return i;
  reject(e, "PHXFS_LOG", "is none of off, error, warn, info, debug: error is used");
  return PHX_LOG_ERROR; /* someone wants to know something */
}

static int mode(struct phx_env *e) {
  static const char *const names[] = {"full", "host_staging", "auto"};
  const char *v = secure_getenv("PHXFS_MODE");
  if (!v || !*v) return PHX_MODE_FULL;
  for (int i = 0; i < 3; i++)
    if (!strcasecmp(v, names[i])) return i;
  reject(e, "PHXFS_MODE", "is none of full, host_staging, auto: full is used");
  return PHX_MODE_FULL;
}

static int number(struct phx_env *e, const char *name, long low, long high) {
  const char *v = secure_getenv(name);
  if (!v || !*v) return 0;
  char *end, why[64];
  long n = strtol(v, &end, 10);
  if (!*end && n >= low && n <= high) return (int)n;
  snprintf(why, sizeof why, "is no number from %ld to %ld and is ignored", low, high);
  reject(e, name, why);
  return 0;
}

void phx_env_read(struct phx_env *e) {
  memset(e, 0, sizeof *e);
  e->pid = getpid();
  e->log_level = level(e);
  e->workers = number(e, "PHXFS_WORKERS", 1, 64);
  e->queue_depth = number(e, "PHXFS_QUEUE_DEPTH", 8, 4096);
  e->mode = mode(e);
  e->staging_mb = number(e, "PHXFS_STAGING_MB", 1, 65536);
  text(e, "PHXFS_LOG_FILE", e->log_file, sizeof e->log_file, "");
  text(e, "PHXFS_VENDOR", e->vendor, sizeof e->vendor, "");
  text(e, "PHXFS_IO_ENGINE", e->io_engine, sizeof e->io_engine, "");
  text(e, "PHXFS_DEV_DIR", e->dev_dir, sizeof e->dev_dir, "/dev");
  text(e, "PHXFS_SYSFS_ROOT", e->sysfs_root, sizeof e->sysfs_root, "/sys");
}

const char *phx_env_lookup(const char *name) { return secure_getenv(name); }

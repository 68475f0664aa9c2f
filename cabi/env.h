/* env.h - the PHXFS_ variables. Only this reads them (secure_getenv: nothing
 * is read in a setuid program), never Go's os.Getenv, which would not see what
 * setenv() or Python's os.environ changed after the library was loaded. */
#ifndef PHX_ENV_H
#define PHX_ENV_H

#include <sys/types.h>

enum { PHX_LOG_OFF = 0, PHX_LOG_ERROR, PHX_LOG_WARN, PHX_LOG_INFO, PHX_LOG_DEBUG };

enum { PHX_MODE_FULL = 0, PHX_MODE_HOST_STAGING, PHX_MODE_AUTO }; /* core.Mode */

struct phx_env {
  pid_t pid;            /* process in which it was read */
  int log_level;        /* PHXFS_LOG: PHX_LOG_* */
  int workers;          /* PHXFS_WORKERS: 1..64, 0 = not set or not a number in range */
  int queue_depth;      /* PHXFS_QUEUE_DEPTH: 8..4096, 0 as above */
  int mode;             /* PHXFS_MODE: PHX_MODE_* */
  int staging_mb;       /* PHXFS_STAGING_MB: 1..65536, 0 as above */
  char log_file[1024];  /* PHXFS_LOG_FILE; "" = stderr */
  char vendor[32];      /* PHXFS_VENDOR */
  char io_engine[32];   /* PHXFS_IO_ENGINE */
  char dev_dir[1024];   /* PHXFS_DEV_DIR, default /dev */
  char sysfs_root[1024];/* PHXFS_SYSFS_ROOT, default /sys */
  char bad[256];        /* what was ignored, for one log line; "" = nothing */
};

void phx_env_read(struct phx_env *e);

/* A variable that a vendor's library reads itself, now; NULL: not set. */
const char *phx_env_lookup(const char *name);

#endif

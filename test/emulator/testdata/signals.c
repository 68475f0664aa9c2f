/* signals once: exits 7 at the first signal and names it.
 * signals count: counts SIGINT, says so at the first, and exits at SIGTERM. */
#include "kit.h"

int main(int argc, char **argv) {
	int counts = argc > 1 && strcmp(argv[1], "count") == 0;
	int sig, ints = 0;
	sigset_t all;
	sigfillset(&all);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (;;) {
		CHECK(sigwait(&all, &sig) == 0);
		if (!counts) {
			printf("got %s\n", sigabbrev_np(sig));
			return 7;
		}
		if (sig == SIGINT && ints++ == 0)
			puts("interrupted");
		if (sig == SIGTERM) {
			printf("%d\n", ints);
			return 0;
		}
	}
}

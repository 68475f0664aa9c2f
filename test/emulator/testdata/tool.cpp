// tool [forget]: registers in two threads and in a child, through C++.
#include "kit.h"
#include <fstream>
#include <string>
#include <thread>

static void use(int index, bool forget) {
	int fd = node(index);
	char *p = registration(fd, GPU + (uint64_t)index * UNIT);
	int file = open("/proc/self/exe", O_RDONLY);
	CHECK(pread(file, p, 4, 0) == 4 && memcmp(p, "\177ELF", 4) == 0);
	if (!forget)
		CHECK(unmap(fd, p, UNIT, GPU + (uint64_t)index * UNIT) == 0);
}

int main(int argc, char **argv) {
	bool forget = argc > 1 && std::string(argv[1]) == "forget";
	std::ifstream bdf("/sys/class/phxfs-generic/phxfs_dev0/pci_bdf");
	std::string address;
	CHECK(std::getline(bdf, address) && address == "0000:00:04.0");
	std::thread a(use, 0, false), b(use, 1, false);
	a.join();
	b.join();
	pid_t child = fork();
	if (child == 0) {
		use(2, forget);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	puts("fine");
}

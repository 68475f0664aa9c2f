// common.h first: its short names must not break what comes after it.
#include <common.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <codecvt>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include <linux/fs.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

namespace own {
using u64 = unsigned long long;
struct sizes {
	int u8;
	u64 u32;
};
}

int main()
{
	own::sizes s{1, 2};
	const auto *text = u8"u8 string literals stay literals";
	return s.u8 + static_cast<int>(s.u32) + (text[0] == 'u' ? 0 : 1);
}

package engine

import (
	"bytes"
	"math"

	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"libphoenix/internal/smallfile"
)

// usableCores is how many cores this process may keep busy: its affinity mask,
// limited by the CPU quota of its control group (version 2 or 1), rounded up,
// at least 1.
func usableCores() int {
	n := runtime.NumCPU()
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil && set.Count() > 0 { // EINVAL: more than 1024 CPUs
		n = set.Count()
	}
	return limitCores(n, quota(smallfile.Read))
}

func limitCores(n int, quota float64) int {
	if quota < float64(n) {
		n = int(math.Ceil(quota))
	}
	return max(n, 1)
}

// quota is the CPU time per time that the process's control group and those
// above it allow; +Inf without a limit or a readable hierarchy.
func quota(read func(string) ([]byte, error)) float64 {
	least := math.Inf(1)
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, cgroups(7)
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		base, limit := "", limitV2
		switch {
		case f[0] == "0" && f[1] == "":
			base = "/sys/fs/cgroup"
		case has(f[1], "cpu"):
			base, limit = "/sys/fs/cgroup/cpu", limitV1
		default:
			continue
		}
		// Inside a container the path may be one of the host: then only the
		// top of the mount is ours, and the walk ends there.
		for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
			least = min(least, limit(read, path.Join(base, dir)))
			if dir == "/" {
				break
			}
		}
	}
	return least
}

func has(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// limitV2 reads cpu.max: "quota period", or "max period".
func limitV2(read func(string) ([]byte, error), dir string) float64 {
	text, err := read(path.Join(dir, "cpu.max"))
	if err != nil {
		return math.Inf(1)
	}
	f := bytes.Fields(text)
	if len(f) != 2 {
		return math.Inf(1)
	}
	return ratio(f[0], f[1])
}

// limitV1 reads the two files of version 1; a quota of -1 is none.
func limitV1(read func(string) ([]byte, error), dir string) float64 {
	q, err1 := read(path.Join(dir, "cpu.cfs_quota_us"))
	p, err2 := read(path.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return math.Inf(1)
	}
	return ratio(bytes.TrimSpace(q), bytes.TrimSpace(p))
}

func ratio(quota, period []byte) float64 {
	q, err1 := strconv.ParseFloat(string(quota), 64)
	p, err2 := strconv.ParseFloat(string(period), 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return math.Inf(1)
	}
	return q / p
}

package engine

import (
	"io/fs"
	"math"
	"testing"
)

func TestQuotaOfControlGroups(t *testing.T) {
	inf := math.Inf(1)
	cases := []struct {
		what  string
		files map[string]string
		want  float64
	}{
		{"nothing readable", nil, inf},
		{"v2, no limit", map[string]string{
			"/proc/self/cgroup":      "0::/\n",
			"/sys/fs/cgroup/cpu.max": "max 100000\n",
		}, inf},
		{"v2, the strictest of the path", map[string]string{
			"/proc/self/cgroup":            "0::/a/b\n",
			"/sys/fs/cgroup/a/b/cpu.max":   "400000 100000\n",
			"/sys/fs/cgroup/a/cpu.max":     "150000 100000\n",
			"/sys/fs/cgroup/cpu.max":       "max 100000\n",
			"/sys/fs/cgroup/other/cpu.max": "1000 100000\n",
		}, 1.5},
		{"v2, the host's path in a container", map[string]string{
			"/proc/self/cgroup":      "0::/host/docker/1234\n",
			"/sys/fs/cgroup/cpu.max": "50000 100000\n",
		}, 0.5},
		{"v1", map[string]string{
			"/proc/self/cgroup":                         "7:memory:/x\n4:cpu,cpuacct:/x\n1:name=systemd:/x\n",
			"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us":     "300000\n",
			"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us":    "100000\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us":       "-1\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_period_us":      "100000\n",
			"/sys/fs/cgroup/memory/x/cpu.cfs_quota_us":  "1\n",
			"/sys/fs/cgroup/memory/x/cpu.cfs_period_us": "100000\n",
		}, 3},
		{"nonsense", map[string]string{
			"/proc/self/cgroup":      "rubbish\n0::/\n",
			"/sys/fs/cgroup/cpu.max": "many few\n",
		}, inf},
	}
	for _, c := range cases {
		read := func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
		if got := quota(read); got != c.want {
			t.Errorf("%s: quota %v, want %v", c.what, got, c.want)
		}
	}
}

func TestQuotaLimitsCoresAndRoundsUp(t *testing.T) {
	for _, c := range []struct {
		cores int
		quota float64
		want  int
	}{{8, math.Inf(1), 8}, {8, 2.5, 3}, {8, 0.2, 1}, {2, 16, 2}, {0, math.Inf(1), 1}} {
		if got := limitCores(c.cores, c.quota); got != c.want {
			t.Errorf("%d cores, quota %v: %d, want %d", c.cores, c.quota, got, c.want)
		}
	}
}

//go:build !race

package emulator

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the faults are called in the summary, in part.
const (
	exitPinned  = "still pinned when the process ended"
	munmapFirst = "munmap before UNMAP"
	mapTwice    = "MAP again on the same mmap"
	unmapTwice  = "second UNMAP"
	unmapGone   = "UNMAP after the driver freed the memory"
	unmapOther  = "UNMAP by a process that did not MAP it"
	unmapEarly  = "UNMAP of an mmap without a successful MAP"
	unmapStray  = "UNMAP of an address that was never registered"
	unmapInside = "UNMAP of an address that is not the start"
	unmapLength = "UNMAP with another length"
	privateMap  = "MAP of a private mapping"
)

// cases are the cases of the C programs and the faults that each makes.
var cases = []struct {
	program, name string
	flags         string
	faults        []string
}{
	{"nodes", "every_open_call_opens_a_node", "--devices 2", nil},
	{"nodes", "names_that_are_no_device", "--devices 2", nil},
	{"nodes", "flags_are_honoured", "", []string{exitPinned}},
	{"nodes", "stat_and_access_see_a_node", "--devices 2", nil},
	{"nodes", "sysfs_is_served", "--devices 2", nil},
	{"nodes", "other_roots", "", nil},
	{"nodes", "other_files_are_the_kernels", "", nil},
	{"map", "untouchable_before_map", "", nil},
	{"map", "registrations_do_not_share_memory", "", nil},
	{"map", "mapping_outlives_the_descriptor", "", nil},
	{"map", "refusals", "", nil},
	{"map", "params_are_read_whole", "", nil},
	{"map", "map_twice", "", []string{mapTwice}},
	{"map", "map_again_after_unmap", "", []string{mapTwice}},
	{"map", "private_mapping", "", []string{privateMap}},
	{"map", "mmaps_that_come_to_nothing", "", nil},
	{"map", "ten_thousand_registrations", "", nil},
	{"release", "unmap_then_munmap", "", nil},
	{"release", "exit_pinned", "", []string{exitPinned}},
	{"release", "munmap_first_then_unmap", "", []string{munmapFirst}},
	{"release", "munmap_and_address_reused", "", []string{munmapFirst}},
	{"release", "unmap_twice", "", []string{unmapTwice}},
	{"release", "unmap_twice_around_munmap", "", []string{unmapTwice}},
	{"release", "unmap_before_map", "", []string{unmapEarly}},
	{"release", "unmap_unknown", "", []string{unmapStray}},
	{"release", "unmap_interior", "", []string{unmapInside}},
	{"release", "unmap_wrong_length", "", []string{unmapLength}},
	{"release", "unmap_after_mremap", "", []string{unmapInside, exitPinned}},
	{"release", "child_unmaps_the_parents_pin", "", []string{unmapOther}},
	{"release", "parent_unmaps_after_the_child", "", []string{unmapOther, unmapTwice}},
	{"release", "child_borrows", "", nil},
	{"release", "child_outlives_the_parent", "", []string{exitPinned, unmapTwice}},
	{"release", "child_exits_pinned", "", []string{exitPinned}},
	{"release", "exec_pinned", "", []string{exitPinned}},
	{"release", "revoked_by_rule_then_exit", "--inject revoke", nil},
	{"release", "revoked_by_rule_then_unmap", "--inject revoke", []string{unmapGone}},
	{"release", "exit_pinned", "--inject revoke:1", []string{exitPinned}},
	{"release", "revoked_by_command", "", nil},
	{"release", "unmap_after_revoke", "", []string{unmapGone}},
	{"release", "rules_by_command", "", nil},
	{"release", "pins_are_listed", "", nil},
	{"threads", "at_the_same_time", "", nil},
	{"threads", "with_signals", "", nil},
	{"threads", "failing_mmaps_do_not_hold_others_up", "", nil},
	{"threads", "exit_with_requests_pending", "--inject map:0:0:-1:100ms", nil},
	{"storm", "opens_in_a_storm", "", nil},
	{"storm", "registrations_in_a_storm", "", nil},
}

func TestPrograms(t *testing.T) {
	need(t)
	for _, c := range cases {
		t.Run(c.program+"/"+c.name+strings.ReplaceAll(c.flags, " ", "="), func(t *testing.T) {
			args := append([]string{"emulate", "--strict"}, strings.Fields(c.flags)...)
			cmd := phx(append(args, "--", program(c.program), c.name)...)
			other := filepath.Join(t.TempDir(), "absent")
			cmd.Env = append(cmd.Env, "PHXFS_DEV_DIR="+other, "PHXFS_SYSFS_ROOT="+other)
			status := 0
			if len(c.faults) > 0 {
				status = 99
			}
			start(t, cmd).want(t, status, c.faults...)
		})
	}
}

// Every case of every program is in the table.
func TestTableIsComplete(t *testing.T) {
	needCompiler(t)
	listed := map[string]bool{"release/killed_pinned": true} // in process_test.go
	for _, c := range cases {
		listed[c.program+"/"+c.name] = true
	}
	for _, p := range []string{"nodes", "map", "release", "threads", "storm"} {
		for _, name := range strings.Fields(start(t, phxless(p)).stdout) {
			if !listed[p+"/"+name] {
				t.Errorf("no test runs %s/%s", p, name)
			}
		}
	}
}

func TestWithoutStrictTheProgramsStatusStays(t *testing.T) {
	need(t)
	got := start(t, phx("emulate", "--", program("release"), "exit_pinned"))
	got.want(t, 0, exitPinned)
	line := regexp.MustCompile(`^release\[\d+\], device 0, host 0x[0-9a-f]+, device memory 0x7f0000000000, 65536 bytes: still pinned`)
	if f := got.faults(); !line.MatchString(f[0]) {
		t.Fatalf("%q does not tell process, device, addresses and length", f[0])
	}
}

func TestNothingIsPrintedWhenNothingIsWrong(t *testing.T) {
	need(t)
	got := start(t, phx("emulate", "--strict", "--", program("release"), "unmap_then_munmap"))
	if got.status != 0 || got.stdout != "" || got.stderr != "" {
		t.Fatalf("got %+v; want silence and 0", got)
	}
}

func TestTraceTellsEachEvent(t *testing.T) {
	need(t)
	got := start(t, phx("emulate", "--trace", "--", program("release"), "unmap_then_munmap"))
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	// A call has its answer before its line, so the next one's can come first.
	for _, part := range []string{" open of /dev/phxfs_dev0", " mmap of device 0, 65536 bytes: ok", " map on device 0", " unmap on device 0"} {
		if n := strings.Count(got.stderr, part); n != 1 {
			t.Errorf("%d lines with %q, want 1", n, part)
		}
	}
	if last := lines[len(lines)-1]; len(lines) != 5 || !strings.HasSuffix(last, ": nothing wrong, 1 registrations") {
		t.Errorf("%d lines, want 5, the last about the whole", len(lines))
	}
	if t.Failed() {
		t.Log(got.stderr)
	}
}

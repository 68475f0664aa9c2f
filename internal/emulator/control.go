package emulator

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// command does what opening a name below controlRoot asks for and returns a
// descriptor, owned by the caller, from which the answer can be read:
//
//	pins          one line for each live pin of any process
//	revoke        the driver frees all device memory; ENOENT: nothing is pinned
//	revoke/ADDR   the driver frees the memory that holds this device address
//	inject/RULES  more rules, as for --inject
//	inject-none   no rules any more
//
// It is done when open returns. EINVAL: there is no such command.
func (s *supervisor) command(text string) (int, syscall.Errno) {
	verb, arg, more := strings.Cut(text, "/")
	answer := ""
	switch {
	case text == "pins":
		s.mu.Lock()
		answer = list(s.ledger.pins(all))
		s.mu.Unlock()
	case verb == "revoke":
		which := all
		if more {
			addr, err := strconv.ParseUint(arg, 0, 64)
			if err != nil {
				return -1, unix.EINVAL
			}
			which = func(r *region) bool { return r.addr <= addr && addr-r.addr < r.length }
		}
		s.mu.Lock()
		gone := s.ledger.revoke(which)
		answer = list(gone)
		s.mu.Unlock()
		if len(gone) == 0 {
			return -1, unix.ENOENT
		}
	case verb == "inject" && more:
		rules, err := ParseRules(arg)
		if err != nil {
			return -1, unix.EINVAL
		}
		s.inject.add(rules)
	case text == "inject-none":
		s.inject.clear()
	default:
		return -1, unix.EINVAL
	}
	return answerFile(answer)
}

func all(*region) bool { return true }

func list(regions []*region) string {
	var b strings.Builder
	for _, r := range regions {
		fmt.Fprintf(&b, "pid %d device %d host %#x addr %#x len %d\n", r.pid, r.device, r.host, r.addr, r.length)
	}
	return b.String()
}

// answerFile is a file with a text in it, at its beginning.
func answerFile(text string) (int, syscall.Errno) {
	fd, _, err := newMemory("phx_emulate")
	if err != nil {
		return -1, errnoOf(err)
	}
	if len(text) > 0 {
		_, err = unix.Pwrite(fd, []byte(text), 0)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, errnoOf(err)
	}
	return fd, 0
}

package emulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// operations are what rules can be made for. revoke counts successful MAPs.
var operations = []string{"open", "mmap", "map", "unmap", "revoke"}

// Rule makes calls skip+1 to skip+count of an operation fail, or wait, or
// both. A rule for revoke has neither errno nor delay.
type Rule struct {
	Op    string
	Errno syscall.Errno // 0: the call is not made to fail
	Skip  int
	Count int // -1: all that follow
	Delay time.Duration
}

// ParseRules reads rules with commas between them:
//
//	open|mmap|map|unmap:ERRNO:SKIP:COUNT[:DELAY]
//	revoke[:SKIP[:COUNT]]
//
// ERRNO is a name such as ENOMEM, or 0. COUNT -1 means all that follow; it is
// what revoke does without numbers. DELAY is a Go duration such as 20ms.
func ParseRules(text string) ([]Rule, error) {
	var rules []Rule
	for _, one := range strings.Split(text, ",") {
		r, err := parseRule(one)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", one, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(text string) (Rule, error) {
	part := strings.Split(text, ":")
	r := Rule{Op: part[0], Count: -1}
	if !slices.Contains(operations, r.Op) {
		return r, fmt.Errorf("%q is none of %s: %w", r.Op, strings.Join(operations, ", "), unix.EINVAL)
	}
	numbers := part[1:]
	if r.Op != "revoke" {
		if len(part) != 4 && len(part) != 5 {
			return r, fmt.Errorf("want %s:ERRNO:SKIP:COUNT[:DELAY]: %w", r.Op, unix.EINVAL)
		}
		var ok bool
		if r.Errno, ok = errnoByName(part[1]); !ok {
			return r, fmt.Errorf("%q is no errno: %w", part[1], unix.EINVAL)
		}
		numbers = part[2:4]
	} else if len(part) > 3 {
		return r, fmt.Errorf("want revoke[:SKIP[:COUNT]]: %w", unix.EINVAL)
	}
	for i, to := range []*int{&r.Skip, &r.Count}[:len(numbers)] {
		n, err := strconv.Atoi(numbers[i])
		if err != nil || n < -i { // SKIP from 0, COUNT from -1
			return r, fmt.Errorf("%q is no number of calls: %w", numbers[i], unix.EINVAL)
		}
		*to = n
	}
	if len(part) == 5 {
		delay, err := time.ParseDuration(part[4])
		if err != nil || delay < 0 {
			return r, fmt.Errorf("%q is no delay (20ms, 1s): %w", part[4], unix.EINVAL)
		}
		r.Delay = delay
	}
	return r, nil
}

func errnoByName(name string) (syscall.Errno, bool) {
	if name == "0" {
		return 0, true
	}
	const last = 133 // EHWPOISON
	for errno := syscall.Errno(1); errno <= last; errno++ {
		if unix.ErrnoName(errno) == name {
			return errno, true
		}
	}
	return 0, false
}

// injector counts calls and says what becomes of them.
type injector struct {
	mu    sync.Mutex
	rules []counted
}

// counted is a rule and how many calls it has seen since it was made.
type counted struct {
	Rule
	seen int
}

func (i *injector) add(rules []Rule) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range rules {
		i.rules = append(i.rules, counted{Rule: r})
	}
}

func (i *injector) clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = nil
}

// next counts a call of op for every rule and returns the first that applies.
func (i *injector) next(op string) (Rule, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var chosen Rule
	var found bool
	for k := range i.rules {
		r := &i.rules[k]
		if r.Op != op {
			continue
		}
		r.seen++
		if !found && r.seen > r.Skip && (r.Count < 0 || r.seen-r.Skip <= r.Count) {
			chosen, found = r.Rule, true
		}
	}
	return chosen, found
}

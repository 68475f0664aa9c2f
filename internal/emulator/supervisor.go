package emulator

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisor answers the notifications of one program.
type supervisor struct {
	listener *listener // this and the next five are set by newSupervisor, then read-only
	names    namespace
	tree     *sysfsTree // owned
	nodes    []int      // a memfd for each device, which descriptors of it reopen; owned
	stop     int        // read end of a pipe; hangs up when Run is over; borrowed
	stopped  chan struct{}

	inject injector
	report *reporter
	group  sync.WaitGroup // answers and watchers

	mu        sync.Mutex
	ledger    *ledger
	processes map[int]*process  // those that have called mmap on a device and live
	offers    map[uint32]*offer // the last one of each thread, until it is settled
}

func newSupervisor(o Options, report *reporter) (*supervisor, error) {
	s := &supervisor{
		names:     newNamespace(o.DevDir, o.SysfsRoot),
		stopped:   make(chan struct{}),
		report:    report,
		ledger:    newLedger(),
		processes: map[int]*process{},
		offers:    map[uint32]*offer{},
	}
	s.inject.add(o.Rules)
	var addresses []string
	for i := range o.Devices {
		fd, _, err := newMemory(nodeName(i))
		if err != nil {
			s.close()
			return nil, err
		}
		s.nodes = append(s.nodes, fd)
		address := defaultAddress(i)
		if i < len(o.Addresses) {
			address = o.Addresses[i]
		}
		addresses = append(addresses, address)
	}
	tree, err := newSysfsTree(addresses)
	if err != nil {
		s.close()
		return nil, err
	}
	s.tree = tree
	return s, nil
}

func (s *supervisor) close() {
	for _, fd := range s.nodes {
		_ = unix.Close(fd)
	}
	if s.tree != nil {
		s.tree.remove()
	}
}

// serve answers notifications until stop hangs up.
func (s *supervisor) serve() error {
	poll := []unix.PollFd{{Fd: int32(s.listener.fd), Events: unix.POLLIN}, {Fd: int32(s.stop)}}
	for {
		switch _, err := unix.Poll(poll, -1); err {
		case nil:
		case unix.EINTR:
			continue
		default:
			return fmt.Errorf("wait for notifications: %w", err)
		}
		if poll[1].Revents != 0 {
			return nil
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			// POLLERR: a signal came while the kernel looked. Hanging up
			// means that nobody is left who could call; Run ends us.
			if poll[0].Revents&unix.POLLHUP != 0 {
				poll[0].Fd = -1
			}
			continue
		}
		n, err := s.listener.receive()
		if err != nil {
			return fmt.Errorf("receive a notification: %w", err)
		}
		if n != nil {
			s.dispatch(n)
		}
	}
}

// dispatch answers what is the kernel's business at once and starts a
// goroutine for the rest, which may have to wait.
func (s *supervisor) dispatch(n *notification) {
	s.settled(n.tid)
	switch n.nr {
	case unix.SYS_IOCTL:
		s.group.Go(func() { s.ioctl(n) })
		return
	case unix.SYS_MMAP:
		if deviceOf(n.tid, int(int32(n.args[4]))) >= 0 {
			s.group.Go(func() { s.mmap(n) })
			return
		}
	default:
		c, ok := pathCallOf(n)
		if !ok {
			break
		}
		if target := s.lookup(n, c); target.kind != elsewhere {
			s.group.Go(func() { s.answerPath(n, c, target) })
			return
		}
	}
	s.listener.proceed(n.id)
}

// lookup says what the path of a call means.
func (s *supervisor) lookup(n *notification, c pathCall) name {
	text, errno := "", syscall.Errno(0)
	if c.path != 0 || !c.mayMeanDescriptor() {
		text, errno = readText(n.tid, c.path)
	}
	if text == "" && errno == 0 && c.mayMeanDescriptor() {
		if device := deviceOf(n.tid, int(c.dirfd)); device >= 0 {
			return name{kind: node, index: device}
		}
		return name{}
	}
	if errno == unix.EPERM {
		s.report.trouble(fmt.Sprintf("%s cannot be looked at (not dumpable, or another user's): it saw no devices", who(int(n.tid), nameOf(int(n.tid)))))
	}
	if errno != 0 || !mayBeOurs(text) {
		return name{}
	}
	path := absolutePath(n.tid, c.dirfd, text)
	if !s.listener.waits(n.id) {
		return name{}
	}
	return s.names.find(path)
}

// applyRule asks the rules about a call and waits as long as they say. The
// errno is what the call fails with; 0: it goes on.
func (s *supervisor) applyRule(op string) syscall.Errno {
	r, ok := s.inject.next(op)
	if !ok {
		return 0
	}
	if r.Delay > 0 {
		select {
		case <-time.After(r.Delay):
		case <-s.stopped:
		}
	}
	return r.Errno
}

package statemachine

import (
	"slices"
	"syscall"

	"libphoenix/core"
)

// Pread and Pwrite make kernel an engine.IO.

func (k *kernel) Pread(fd int32, addr core.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	return k.transfer(fd, addr, n, off)
}

func (k *kernel) Pwrite(fd int32, addr core.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	return k.transfer(fd, addr, n, off)
}

func (k *kernel) transfer(fd int32, addr core.HostAddr, n uint64, off int64) (int64, syscall.Errno) {
	m := k.enter(fd, addr, n, off)
	k.pause()
	k.leave(m)
	return once(fd, n, off)
}

// enter counts a transfer into the mapping it goes to, which must be alive and
// the right one, and holds it if that is asked for; nil: ordinary memory.
func (k *kernel) enter(fd int32, addr core.HostAddr, n uint64, off int64) *mapping {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.aim(addr, n, off)
	if m != nil {
		m.users++
	}
	if fd == fdParks {
		k.parked++
		k.changed.Broadcast()
		defer func() { k.parked-- }()
	}
	for k.held && (fd == fdParks || fd == fdHeld) {
		k.changed.Wait()
	}
	return m
}

func (k *kernel) aim(addr core.HostAddr, n uint64, off int64) *mapping {
	if addr >= cpuBase {
		return nil
	}
	for _, m := range k.maps {
		if addr < m.host || addr >= m.host+core.HostAddr(m.n) {
			continue
		}
		if n > m.n-uint64(addr-m.host) {
			k.blame("device %d: transfer of %#x bytes at %#x of [%#x, +%#x)", m.dev, n, addr-m.host, m.addr, m.n)
		}
		if !m.pinned {
			k.blame("device %d: transfer in [%#x, +%#x) after UNMAP", m.dev, m.addr, m.n)
		}
		if want := offsetOf(m.dev, m.addr+core.DevAddr(addr-m.host)); want != off {
			k.blame("transfer meant for %#x goes to %#x", off, want)
		}
		return m
	}
	k.blame("transfer of %#x bytes to %#x, where nothing is mapped", n, addr)
	return nil
}

func (k *kernel) leave(m *mapping) {
	if m != nil {
		k.mu.Lock()
		m.users--
		k.mu.Unlock()
	}
}

// once is what one pread or pwrite answers.
func once(fd int32, n uint64, off int64) (int64, syscall.Errno) {
	in := off % block
	switch fd {
	case fdWhole, fdHeld, fdParks:
		return int64(n), 0
	case fdSlow:
		return min(int64(n), 100), 0
	case fdEnds:
		return min(int64(n), max(0, 256-in)), 0
	case fdBreaks:
		if in < 100 {
			return min(int64(n), 100-in), 0
		}
		return -1, syscall.EIO
	default:
		return -1, syscall.EBADF
	}
}

// whole is what a transfer must come to: bytes, or an errno if none moved.
func whole(fd int32, n uint64, off int64) (moved int64, errno syscall.Errno) {
	for uint64(moved) < n {
		got, errno := once(fd, n-uint64(moved), off+moved)
		if got <= 0 {
			if moved > 0 {
				errno = 0
			}
			return moved, errno
		}
		moved += got
	}
	return moved, 0
}

// hold makes transfers of fdHeld and fdParks wait until release.
func (k *kernel) hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = true
}

func (k *kernel) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = false
	k.changed.Broadcast()
}

// waitParked returns when n transfers are held.
func (k *kernel) waitParked(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.parked < n {
		k.changed.Wait()
	}
}

// complaints is what was wrong so far, and at the end also what was left.
func (k *kernel) complaints(end bool) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	wrong := slices.Clone(k.wrong)
	if end && len(k.maps) != 0 {
		wrong = append(wrong, "mappings were left")
	}
	return wrong
}

package emulator

import (
	"testing"

	"golang.org/x/sys/unix"
)

// interpret runs a filter on a system call of arch as the kernel does.
func interpret(t *testing.T, program []unix.SockFilter, arch uint32, nr int, args [6]uint64) uint32 {
	t.Helper()
	load := func(offset uint32) uint32 {
		switch {
		case offset == offNr:
			return uint32(nr)
		case offset == offArch:
			return arch
		default:
			return uint32(args[(offset-16)/8] >> (8 * ((offset - 16) % 8)))
		}
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		jump := func(cond bool) {
			if cond {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = load(in.K)
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
	}
	t.Fatal("the filter runs off its end")
	return 0
}

func TestFilterTrapsWhatItMust(t *testing.T) {
	const minus1 = 0xffff_ffff_ffff_ffff
	const rw, anon = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANONYMOUS
	mmap := func(prot, flags, fd uint64) [6]uint64 { return [6]uint64{0, 4096, prot, flags, fd, 0} }
	program := filter()
	for _, c := range []struct {
		what string
		nr   int
		args [6]uint64
		want bool
	}{
		{"openat", unix.SYS_OPENAT, [6]uint64{}, true},
		{"openat2", unix.SYS_OPENAT2, [6]uint64{}, true},
		{"statx", unix.SYS_STATX, [6]uint64{}, true},
		{"fstat", unix.SYS_FSTAT, [6]uint64{3}, true},
		{"faccessat", unix.SYS_FACCESSAT, [6]uint64{}, true},
		{"MAP", unix.SYS_IOCTL, [6]uint64{3, cmdMap}, true},
		{"UNMAP", unix.SYS_IOCTL, [6]uint64{3, cmdUnmap}, true},
		{"MAP, rubbish above", unix.SYS_IOCTL, [6]uint64{3, 1<<32 | cmdMap}, true}, // the kernel takes 32 bits
		{"another ioctl", unix.SYS_IOCTL, [6]uint64{3, 0x5401}, false},
		{"shared", unix.SYS_MMAP, mmap(rw, unix.MAP_SHARED, 3), true},
		{"shared, validated", unix.SYS_MMAP, mmap(rw, unix.MAP_SHARED_VALIDATE|unix.MAP_POPULATE, 3), true},
		{"shared, fixed", unix.SYS_MMAP, mmap(rw, unix.MAP_SHARED|unix.MAP_FIXED, 3), true},
		{"shared, read only", unix.SYS_MMAP, mmap(unix.PROT_READ, unix.MAP_SHARED, 3), false},
		{"shared, no file", unix.SYS_MMAP, mmap(rw, unix.MAP_SHARED|anon, minus1), false},
		{"shared, no file, fd 0", unix.SYS_MMAP, mmap(rw, unix.MAP_SHARED|anon, 0), false},
		{"shared, fd -1", unix.SYS_MMAP, mmap(rw, unix.MAP_SHARED, minus1), false},
		{"private", unix.SYS_MMAP, mmap(rw, unix.MAP_PRIVATE, 3), true},
		{"private, no file", unix.SYS_MMAP, mmap(rw, unix.MAP_PRIVATE|anon, minus1), false},
		{"the dynamic linker's", unix.SYS_MMAP, mmap(rw, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_DENYWRITE, 3), false},
		{"pread", unix.SYS_PREAD64, [6]uint64{3}, false},
		{"read", unix.SYS_READ, [6]uint64{3}, false},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, [6]uint64{3}, false},
		{"futex", unix.SYS_FUTEX, [6]uint64{}, false},
		{"munmap", unix.SYS_MUNMAP, [6]uint64{}, false},
	} {
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if c.want {
			want = unix.SECCOMP_RET_USER_NOTIF
		}
		if got := interpret(t, program, auditArch, c.nr, c.args); got != want {
			t.Errorf("%s: %#x, want %#x", c.what, got, want)
		}
		if got := interpret(t, program, unix.AUDIT_ARCH_I386, c.nr, c.args); got != unix.SECCOMP_RET_ALLOW {
			t.Errorf("%s of another architecture: %#x, want to be allowed", c.what, got)
		}
	}
}

func TestAssemblerRefusesJumpsThatCannotBe(t *testing.T) {
	for what, write := range map[string]func(*assembler){
		"nowhere": func(a *assembler) { a.jump(unix.BPF_JEQ, 0, "x", "") },
		"back":    func(a *assembler) { a.label("x"); a.jump(unix.BPF_JEQ, 0, "x", "") },
		"too far": func(a *assembler) {
			a.jump(unix.BPF_JEQ, 0, "x", "")
			for range 300 {
				a.and(1)
			}
			a.label("x")
			a.ret(0)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a jump %s was assembled", what)
				}
			}()
			var a assembler
			write(&a)
			a.program()
		}()
	}
}

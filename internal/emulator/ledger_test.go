package emulator

import (
	"math/rand/v2"
	"testing"
)

// Whatever a process does with one address, the number of live pins is what
// its requests and the summary together say: each MAP that succeeded is
// dropped by UNMAP, revoked, lost (a fault) or live.
func TestEveryPinIsAccountedFor(t *testing.T) {
	const pid, other, host, addr = 10, 11, 0x10000, 0x20000
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		l := newLedger()
		var mapped, dropped, gone, lost int
		p := param{host, pinUnit, addr, pinUnit}
		m := vma{host, host + pinUnit, fileID{}}
		none := true
		count := func(f *Fault) {
			if f != nil && (f.Kind == MunmapFirst || f.Kind == ExitPinned) {
				lost++
			}
		}
		for step := range uint64(1 + random.IntN(12)) {
			switch random.IntN(6) {
			case 0: // mmap
				m.file = fileID{1, step + 1}
				none = false
				l.offer(&region{file: m.file, length: pinUnit, memory: -1, pid: pid})
			case 1: // munmap
				none = true
			case 2, 3: // MAP
				r, errno, _ := l.judgeMap(pid, 0, p, m, none)
				if errno == 0 {
					count(l.pin(r, pid, p))
					mapped++
				}
			case 4: // UNMAP
				who := pid
				if random.IntN(4) == 0 && !none {
					who = other
				}
				before := len(l.pins(all))
				commit, fault := l.judgeUnmap(who, p, m, none)
				commit()
				if count(fault); fault == nil || fault.Kind == UnmapByOther {
					dropped += before - len(l.pins(all))
				}
			case 5:
				gone += len(l.revoke(all))
			}
			// A pin whose mapping was replaced is lost, and found out later.
			if live := mapped - dropped - gone - lost; live != len(l.pins(all)) {
				t.Fatalf("%d live pins, want %d (%d mapped, %d dropped, %d revoked, %d lost)", len(l.pins(all)), live, mapped, dropped, gone, lost)
			}
		}
		faults, _ := l.end(pid)
		for _, f := range faults {
			count(f)
		}
		if mapped != dropped+gone+lost || len(l.pins(all)) != 0 || len(l.byHost) != 0 {
			t.Fatalf("at the end %d mapped, %d dropped, %d revoked, %d lost; %d pins, %d places", mapped, dropped, gone, lost, len(l.pins(all)), len(l.byHost))
		}
	}
}

func TestLongSummariesAreCut(t *testing.T) {
	var out countingWriter
	r := &reporter{out: &out}
	for i := range maxFaults + 5 {
		r.fault(&Fault{PID: i})
	}
	if got := r.summary(); got != maxFaults+5 || out.writes != maxFaults+2 {
		t.Fatalf("%d wrong in %d lines; want %d in %d", got, out.writes, maxFaults+5, maxFaults+2)
	}
}

type countingWriter struct{ writes int }

func (w *countingWriter) Write(b []byte) (int, error) { w.writes++; return len(b), nil }

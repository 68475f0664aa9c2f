package emulator

import "golang.org/x/sys/unix"

// assembler writes a classic BPF program with forward jumps to labels.
type assembler struct {
	ins    []unix.SockFilter
	labels map[string]int    // label: index of the instruction after it
	jumps  map[int][2]string // index of a jump: where it goes if true, if false
}

func (a *assembler) load(offset uint32) {
	a.ins = append(a.ins, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (a *assembler) and(mask uint32) {
	a.ins = append(a.ins, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask})
}

func (a *assembler) ret(action uint32) {
	a.ins = append(a.ins, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// jump compares as test says and goes to a label; "" is the next instruction.
func (a *assembler) jump(test uint16, k uint32, ifTrue, ifFalse string) {
	if a.jumps == nil {
		a.jumps = map[int][2]string{}
	}
	a.jumps[len(a.ins)] = [2]string{ifTrue, ifFalse}
	a.ins = append(a.ins, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: k})
}

func (a *assembler) label(name string) {
	if a.labels == nil {
		a.labels = map[string]int{}
	}
	a.labels[name] = len(a.ins)
}

// program resolves the labels. A label that is missing, behind or out of
// reach is a mistake in the program's text, which the tests load.
func (a *assembler) program() []unix.SockFilter {
	for at, to := range a.jumps {
		a.ins[at].Jt = a.distance(at, to[0])
		a.ins[at].Jf = a.distance(at, to[1])
	}
	return a.ins
}

func (a *assembler) distance(at int, label string) uint8 {
	if label == "" {
		return 0
	}
	to, ok := a.labels[label]
	if d := to - at - 1; ok && d >= 0 && d <= 255 {
		return uint8(d)
	}
	panic("emulator: filter jumps to " + label)
}

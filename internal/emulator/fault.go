package emulator

import "fmt"

// Kind is what a program did that the real module does not survive, or that
// leaks device memory.
type Kind int

const (
	ExitPinned     Kind = iota // the process ended
	MunmapFirst                // munmap before UNMAP
	MapTwice                   // MAP again on one mmap
	UnmapTwice                 // UNMAP of a pin that an UNMAP had dropped
	UnmapRevoked               // UNMAP of a pin that the driver had dropped
	UnmapByOther               // UNMAP of another process's pin
	UnmapBeforeMap             // UNMAP of an mmap that was never MAPped
	UnmapUnknown               // UNMAP of what is no registration
	UnmapElsewhere             // UNMAP of another address than MAP's
	UnmapLength                // UNMAP of another length than MAP's
	PrivateMap                 // MAP of a private mapping
)

// explain says for each kind what happened and what the module makes of it.
var explain = map[Kind]string{
	ExitPinned:     "still pinned when the process ended: the pin leaks",
	MunmapFirst:    "munmap before UNMAP: the pin leaks",
	MapTwice:       "MAP again on the same mmap: use after free in the module",
	UnmapTwice:     "second UNMAP: use after free in the module",
	UnmapRevoked:   "UNMAP after the driver freed the memory: use after free in the module",
	UnmapByOther:   "UNMAP by a process that did not MAP it: takes the owner's pin away",
	UnmapBeforeMap: "UNMAP of an mmap without a successful MAP",
	UnmapUnknown:   "UNMAP of an address that was never registered",
	UnmapElsewhere: "UNMAP of an address that is not the start of the registration (or was moved by mremap): the pin stays",
	UnmapLength:    "UNMAP with another length than the registration's: the pin stays",
	PrivateMap:     "MAP of a private mapping: what is read into it never reaches the device",
}

func (k Kind) String() string { return explain[k] }

// Fault is one thing that a program did wrong.
type Fault struct {
	Kind    Kind
	PID     int    // process that did it
	Name    string // what ps shows of it; may be empty
	Device  int    // -1: unknown
	Host    uint64 // host address of the registration
	Addr    uint64 // device address
	Length  uint64 // bytes
	Owner   int    // process that registered it; 0: nobody
	Dropped int    // process that had dropped the pin before; 0: nobody
}

func (f *Fault) String() string {
	text := fmt.Sprintf("%s, device %d, host %#x, device memory %#x, %d bytes: %v", who(f.PID, f.Name), f.Device, f.Host, f.Addr, f.Length, f.Kind)
	if f.Owner != 0 && f.Owner != f.PID {
		text += fmt.Sprintf(" (registered by process %d)", f.Owner)
	}
	if f.Dropped != 0 && f.Dropped != f.PID {
		text += fmt.Sprintf(" (dropped by process %d)", f.Dropped)
	}
	return text
}

func who(pid int, name string) string {
	if name == "" {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("%s[%d]", name, pid)
}

// fault is the fault that pid did to the region.
func (r *region) fault(kind Kind, pid int) *Fault {
	return &Fault{Kind: kind, PID: pid, Device: r.device, Host: r.host, Addr: r.addr, Length: r.length, Owner: r.pid, Dropped: r.by}
}

// at is the region as a request describes it, for one that MAP has not filled.
func (r *region) at(p param) *region {
	return &region{device: r.device, host: p.host, addr: p.addr, length: p.hostLen, pid: r.pid}
}

// strayFault is a fault that concerns no region.
func strayFault(kind Kind, pid int, p param) *Fault {
	return &Fault{Kind: kind, PID: pid, Device: -1, Host: p.host, Addr: p.addr, Length: p.hostLen}
}

package host

type verdict uint8

const (
	undecided verdict = iota
	covered           // every byte up to end is mapped and writable
	hole              // nothing is mapped at want
	readOnly          // want is mapped without write permission
)

// field is where in a line of /proc/self/maps the scan stands. A line reads
// "7f12a000-7f12c000 rw-p 00000000 08:01 1234 /path": the first two numbers
// in hexadecimal, then the permissions, of which the second letter is 'w' or
// '-'; the rest is of no interest.
type field uint8

const (
	inStart field = iota
	inEnd
	atRead
	atWrite
	inRest
)

// scan walks the lines, which come in rising order of addresses, and moves
// want up to the first byte not yet known to be good. It takes the file byte
// by byte, so it does not matter where a read ends.
//
// Two reads see two moments. Mappings that neighbours split or merge in
// between change where a line begins or ends, never what the bytes of a range
// in use permit, and the kernel goes on at the address where it stopped; so
// only a caller who changes the range itself can get a surprising answer.
type scan struct {
	want, end  uint64 // want < end while undecided
	start, top uint64 // of the current line
	at         field
	verdict    verdict
}

// feed takes the next bytes of the file; it stops early once decided.
func (s *scan) feed(b []byte) {
	for _, c := range b {
		switch s.at {
		case inStart:
			if c == '-' {
				s.at = inEnd
				break
			}
			s.start = s.start<<4 | hexDigit(c)
		case inEnd:
			if c == ' ' {
				s.at = atRead
				break
			}
			s.top = s.top<<4 | hexDigit(c)
		case atRead:
			s.at = atWrite
		case atWrite:
			s.line(c == 'w')
			if s.verdict != undecided {
				return
			}
			s.at = inRest
		case inRest:
			if c == '\n' {
				s.start, s.top, s.at = 0, 0, inStart
			}
		}
	}
}

// line judges the mapping [start, top).
func (s *scan) line(writable bool) {
	switch {
	case s.top <= s.want: // below the range, or seen before
	case s.start > s.want:
		s.verdict = hole
	case !writable:
		s.verdict = readOnly
	case s.top >= s.end:
		s.want = s.end
		s.verdict = covered
	default:
		s.want = s.top
	}
}

// hexDigit is the value of a lower-case hexadecimal digit; the kernel writes
// no other kind.
func hexDigit(c byte) uint64 {
	if c >= 'a' {
		return uint64(c-'a') + 10
	}
	return uint64(c - '0')
}

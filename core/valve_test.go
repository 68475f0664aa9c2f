package core

import (
	"runtime"
	"testing"
)

// Only a Library that expects no collection tells of one: others, as all of
// the other tests, have the collector of a usual Go program.
func TestACollectionIsToldOnceWhereNoneShouldBe(t *testing.T) {
	for _, off := range []bool{true, false} {
		log := &events{max: LevelWarn}
		r := newRig(t, func(c *Config) { c.Log, c.CollectorOff = log, off })
		r.open(1)
		runtime.GC()
		for i := range DevAddr(4) {
			r.open(1)
			r.register(1, page*(1+i), page)
		}
		got := log.at(LevelWarn)
		if want := map[bool]int{true: 1}[off]; len(got) != want {
			t.Fatalf("collector off %t: %d warnings, want %d: %+v", off, len(got), want, got)
		}
		if off && got[0].Call != callOpen {
			t.Errorf("the warning is of %s, want the first call after the collection, %s", got[0].Call, callOpen)
		}
	}
}

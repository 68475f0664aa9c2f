package threeway

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"libphoenix/engine"
)

// TestEnginesAgreeWithAPlainLoop makes random batches to each kind of file
// alone, and then to all of them together.
func TestEnginesAgreeWithAPlainLoop(t *testing.T) {
	w := newWorld(t)
	engines := newRunners(t)
	a := newArena(t, 2<<20)
	kinds := makers()
	share := requests(t) / (len(kinds) + 4)
	var all []*target
	total := tally{}
	for _, m := range kinds {
		t.Run(m.name, func(t *testing.T) {
			to, missing := m.make(w)
			if missing != nil {
				skip(t, missing)
			}
			to.name = m.name
			all = append(all, to)
			agree(t, a, engines, []*target{to}, share, false, total)
		})
	}
	t.Run("all together", func(t *testing.T) {
		agree(t, a, engines, all, 4*share, false, total)
	})
	t.Logf("%d kinds of file, %d ways: %s", len(all), 1+len(engines), total)
}

// TestEnginesAgreeOnSlicedRequests is about requests beyond 8 MiB, which
// several threads share.
func TestEnginesAgreeOnSlicedRequests(t *testing.T) {
	w := newWorld(t)
	engines := newRunners(t)
	a := newArena(t, 40<<20)
	for _, dir := range w.dirs() {
		t.Run(dir.name, func(t *testing.T) {
			to := w.file(dir.path, 20<<20, unix.O_RDWR)
			to.name = dir.name
			total := tally{}
			agree(t, a, engines, []*target{to}, requests(t)/500, true, total)
			t.Log(total)
		})
	}
}

// TestEnginesAgreeOnNeighbours makes batches of nearly nothing but requests that
// go on where the last one ends, near the end of the file and near what it
// wants them aligned to, in files that tell one transfer from two.
func TestEnginesAgreeOnNeighbours(t *testing.T) {
	w := newWorld(t)
	engines := newRunners(t)
	a := newArena(t, 2<<20)
	chosen := []string{
		"TMPDIR", "tmpfs", "O_DIRECT", "full tmpfs",
		"loop device, O_DIRECT", "overlayfs, upper file",
		"/proc/self/pagemap", "/proc/self/mem", "/proc/version", "/dev/full", "FUSE",
	}
	for _, m := range makers() {
		if !slices.ContainsFunc(chosen, func(name string) bool { return name == m.name }) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			to, missing := m.make(w)
			if missing != nil {
				skip(t, missing)
			}
			to.name = m.name
			total := tally{}
			agreeOn(t, a, engines, []*target{to}, requests(t)/10, total, func(rt *rapid.T, d *drawer, targets []*target) {
				d.close(rt, targets[0])
			})
			t.Log(total)
		})
	}
}

// agree makes at least budget random requests and adds their outcomes to total.
func agree(t *testing.T, a *arena, engines []runner, targets []*target, budget int, big bool, total tally) {
	t.Helper()
	agreeOn(t, a, engines, targets, budget, total, func(rt *rapid.T, d *drawer, targets []*target) {
		most := 80
		if d.big = big; big {
			most = 8
		}
		d.batch(rt, targets, most)
	})
}

func agreeOn(t *testing.T, a *arena, engines []runner, targets []*target, budget int, total tally, draw func(*rapid.T, *drawer, []*target)) {
	t.Helper()
	made := 0
	for made < budget && !t.Failed() {
		rapid.Check(t, func(rt *rapid.T) {
			b := &trial{rt: rt, a: a, engines: engines}
			b.kind = engine.Kind(rapid.IntRange(0, 1).Draw(rt, "kind"))
			b.order = engine.Order(rapid.IntRange(0, 1).Draw(rt, "order"))
			d := drawer{a: a, kind: b.kind}
			draw(rt, &d, targets)
			b.ops, b.to = d.ops, d.to
			made += len(b.ops)
			b.check()
			total.add(b.ops)
		})
	}
	if !a.untouched() {
		t.Errorf("memory far behind all requests has changed")
	}
}

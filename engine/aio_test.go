package engine_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"libphoenix/engine"
	"libphoenix/engine/enginetest"
	"libphoenix/engine/fault"
	"libphoenix/internal/need"
)

// needAIO skips the test where the system has no Linux AIO, or none left.
func needAIO(t *testing.T) {
	t.Helper()
	c, errno := engine.LinuxAIO().Setup(1)
	if errno != 0 {
		need.Missing(t, need.AIO, "io_setup: %v", errno)
	}
	engine.LinuxAIO().Destroy(c)
}

// direct is fd's file once more, with O_DIRECT.
func direct(t *testing.T, fd int32) int32 {
	t.Helper()
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		need.Missing(t, need.ODirect, "%v", err)
	}
	t.Cleanup(func() { _ = unix.Close(again) })
	return int32(again)
}

// The suite with every transfer on the kernel's AIO, O_DIRECT or not.
func TestSyncEngineOverAIO(t *testing.T) {
	needAIO(t)
	enginetest.RunPlain(t, func(_ *testing.T, cfg engine.Config) engine.Engine { return engine.NewSyncAIO(cfg) })
}

func TestSyncEngineOverAIOScripted(t *testing.T) {
	enginetest.RunScripted(t, func(_ *testing.T, cfg engine.Config) engine.Engine {
		cfg.AIO = newAIOEmulator(cfg.IO)
		return engine.NewSyncAIO(cfg)
	})
}

// spoil runs batches of n blocks over a tampered AIO on a direct file, and
// wants right results and so many notices.
func spoil(t *testing.T, k *aioTamper, n int, wantNotices int32) {
	t.Helper()
	plain, data := noisy(t, n*block)
	fd := direct(t, plain)
	var notices atomic.Int32
	e := engine.NewSync(engine.Config{AIO: k, Helpers: 1, Notice: func(string) { notices.Add(1) }})
	defer e.Close()
	for range 3 {
		readBack(t, e, fd, data, n)
	}
	if got := notices.Load(); got != wantNotices {
		t.Errorf("%d notices, want %d", got, wantNotices)
	}
}

func TestDirectBatchesUseAIO(t *testing.T) {
	needAIO(t)
	k := &aioTamper{AIO: engine.LinuxAIO()}
	spoil(t, k, 8, 0)
	// At least one for each batch; two participants share an async one.
	if setups, submits, awaits := k.calls(); setups < 1 || submits < 6 || awaits < 6 {
		t.Errorf("%d, %d and %d calls of setup, submit and await, want 1, 6 and 6 at least", setups, submits, awaits)
	}
}

func TestBufferedBatchesDoNotUseAIO(t *testing.T) {
	k := &aioTamper{AIO: engine.LinuxAIO()}
	fd, data := noisy(t, 8*block)
	e := engine.NewSync(engine.Config{AIO: k, Helpers: 1})
	defer e.Close()
	readBack(t, e, fd, data, 8)
	if setups, _, _ := k.calls(); setups != 0 {
		t.Errorf("%d contexts made", setups)
	}
}

// Whatever of AIO is denied, whenever: the results are right, one line says
// so, and nothing is asked of AIO again.
func TestDeniedAIOIsGivenUpForGood(t *testing.T) {
	needAIO(t)
	const n = 2*engine.AIODepth + 10
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS, syscall.EAGAIN} {
		for from := range 4 {
			var late int // calls after the denial
			deny := func(call int) syscall.Errno {
				if call < from {
					return 0
				}
				late++
				return errno
			}
			for _, c := range []struct {
				what string
				k    *aioTamper
			}{
				{"setup", &aioTamper{AIO: engine.LinuxAIO(), onSetup: deny}},
				{"submit", &aioTamper{AIO: engine.LinuxAIO(), onSubmit: deny, most: 20}},
				{"await", &aioTamper{AIO: engine.LinuxAIO(), onAwait: deny}},
			} {
				t.Run(fmt.Sprintf("%s/%v/%d", c.what, errno, from), func(t *testing.T) {
					late = 0
					denied := int32(1)
					if c.what == "setup" && from > 0 {
						return // two contexts at most, and perhaps one
					}
					spoil(t, c.k, n, denied)
					if most := 2; late > most && !(c.what == "submit" && errno == syscall.EAGAIN) {
						t.Errorf("%d calls after it was denied, want no more than each participant's one", late)
					}
				})
			}
		}
	}
}

// EINTR for ever, from a filter in front of the kernel. What has been submitted is
// seen in memory; what cannot be submitted is done without AIO, and one line
// says so.
func TestEndlessEINTROfAIO(t *testing.T) {
	needAIO(t)
	const n = 2*engine.AIODepth + 10
	interrupted := func(int) syscall.Errno { return syscall.EINTR }
	spoil(t, &aioTamper{AIO: engine.LinuxAIO(), onAwait: interrupted}, n, 0)
	spoil(t, &aioTamper{AIO: engine.LinuxAIO(), onSubmit: interrupted}, n, 1)
	spoil(t, &aioTamper{AIO: engine.LinuxAIO(), onSetup: interrupted}, n, 1)
}

// Two of three calls interrupted, as in a storm of signals.
func TestManyEINTRsOfAIO(t *testing.T) {
	needAIO(t)
	often := func(call int) syscall.Errno { return syscall.EINTR * syscall.Errno(min(call%3, 1)) }
	spoil(t, &aioTamper{AIO: engine.LinuxAIO(), onAwait: often, onSubmit: often, most: 3}, 2*engine.AIODepth+10, 0)
}

// crowdedAIO has no room in a context for a second Submit until an Await: half
// of the first one's requests are taken.
type crowdedAIO struct {
	engine.AIO
	full sync.Map // by context
}

func (k *crowdedAIO) Submit(c engine.AIOContext, requests []*engine.AIORequest) (int, syscall.Errno) {
	if _, full := k.full.LoadOrStore(c, true); full {
		return 0, syscall.EAGAIN
	}
	return k.AIO.Submit(c, requests[:(len(requests)+1)/2])
}

func (k *crowdedAIO) Await(c engine.AIOContext, least int, events []engine.AIOEvent) (int, syscall.Errno) {
	k.full.Delete(c)
	return k.AIO.Await(c, least, events)
}

// A Submit that takes only some, or that has no room until something has
// completed.
func TestPartialSubmitOfAIO(t *testing.T) {
	needAIO(t)
	for most := range 4 {
		spoil(t, &aioTamper{AIO: engine.LinuxAIO(), most: most}, 2*engine.AIODepth+10, 0)
	}
	plain, data := noisy(t, 40*block)
	fd := direct(t, plain)
	notice := func(reason string) { t.Error(reason) }
	e := engine.NewSync(engine.Config{AIO: &crowdedAIO{AIO: engine.LinuxAIO()}, Helpers: 1, Notice: notice})
	defer e.Close()
	mem := pages(t, 40*block)
	ops := benchOps(fd, mem, 40)
	runSync(e, engine.Read, ops)
	check(t, &engine.Batch{Ops: ops})
	if !bytes.Equal(mem, data) {
		t.Error("wrong data")
	}
}

// A refused request is done by pread, and those behind it by AIO.
func TestRefusedAIORequestAnswersAsPread(t *testing.T) {
	needAIO(t)
	for call := range 3 {
		refuse := func(at int) syscall.Errno {
			if at == call {
				return syscall.EINVAL
			}
			return 0
		}
		spoil(t, &aioTamper{AIO: engine.LinuxAIO(), onSubmit: refuse, most: 3}, 20, 0)
	}
}

// TestDeniedAIOWaitsForTheKernel: a transfer is held in the kernel, every
// further call is denied or panics, and Run must outlast it.
func TestDeniedAIOWaitsForTheKernel(t *testing.T) {
	const n = 20
	for _, how := range []string{"await is denied", "submit is denied", "a panic"} {
		for held := range 3 {
			t.Run(fmt.Sprintf("%s/%d", how, held), func(t *testing.T) {
				script := new(fault.Script)
				late := fault.NewBarrier()
				defer late.Release()
				k := &aioTamper{AIO: newAIOEmulator(script)}
				switch how {
				case "await is denied":
					k.onAwait = func(int) syscall.Errno { return syscall.EPERM }
				case "submit is denied":
					k.most, k.onSubmit = 5, func(call int) syscall.Errno { return syscall.EPERM * syscall.Errno(min(call, 1)) }
				case "a panic":
					script.Add(fault.On(engine.Read).At(9 * block).Panic("scripted"))
				}
				told := make(chan string, 8)
				e := engine.NewSyncAIO(engine.Config{IO: script, AIO: k, Helpers: 1, Notice: func(s string) { told <- s }})
				defer e.Close()
				fd, data := noisy(t, n*block)
				script.Add(fault.On(engine.Read).At(int64(held * block)).Nth(1).Late(late))
				mem := pages(t, n*block)
				ops := benchOps(fd, mem, n)
				returned := make(chan struct{})
				go func() { defer close(returned); runSync(e, engine.Read, ops) }()
				late.WaitParked(1)
				<-told
				pass()
				select {
				case <-returned:
					t.Error("returned while the kernel could write the memory")
				default:
				}
				late.Release()
				<-returned
				for i := range ops {
					want := int64(block)
					if how == "a panic" && i == 9 {
						want = -int64(syscall.EIO)
					}
					if ops[i].Result != want {
						t.Errorf("op %d: result %d, want %d", i, ops[i].Result, want)
					} else if want > 0 && !bytes.Equal(mem[i*block:(i+1)*block], data[i*block:(i+1)*block]) {
						t.Errorf("op %d: wrong data", i)
					}
				}
			})
		}
	}
}

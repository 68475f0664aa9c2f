package threeway

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace is a thread with mounts that no other thread or process sees. What
// it opens, all threads may use. Its mounts go with the thread, or with the
// process.
type namespace struct {
	calls chan func()
	base  string // a tmpfs of its own, with device nodes
}

// newNamespace starts the thread; it ends with t.
func newNamespace(t *testing.T) (*namespace, *lack) {
	if os.Geteuid() != 0 {
		return nil, &lack{"mount", fmt.Errorf("this is not root: %w", os.ErrPermission)}
	}
	ns := &namespace{calls: make(chan func()), base: t.TempDir()}
	ready, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and never unlocked: the thread ends here
		err := ns.enter()
		ready <- err
		if err != nil {
			return
		}
		for f := range ns.calls {
			f()
		}
		_ = unix.Unmount(ns.base, unix.MNT_DETACH)
	}()
	if err := <-ready; err != nil {
		<-ended
		return nil, &lack{"mount", err}
	}
	t.Cleanup(func() {
		close(ns.calls)
		<-ended
	})
	return ns, nil
}

func (ns *namespace) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare of the mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("threeway", ns.base, "tmpfs", 0, "size=64m"); err != nil {
		return fmt.Errorf("mount of a tmpfs: %w", err)
	}
	return nil
}

// do calls f on the thread.
func (ns *namespace) do(f func() error) (err error) {
	done := make(chan struct{})
	ns.calls <- func() {
		defer close(done)
		err = f()
	}
	<-done
	return err
}

// folder makes a folder in base.
func (ns *namespace) folder() (path string, err error) {
	err = ns.do(func() (err error) {
		path, err = os.MkdirTemp(ns.base, "")
		return err
	})
	return path, err
}

// mount mounts on a new folder of base and gives its path.
func (ns *namespace) mount(fstype, options string) (path string, err error) {
	if path, err = ns.folder(); err != nil {
		return "", err
	}
	err = ns.do(func() error {
		if err := unix.Mount("threeway", path, fstype, 0, options); err != nil {
			return fmt.Errorf("mount of %s (%s): %w", fstype, options, err)
		}
		return nil
	})
	return path, err
}

// open opens a path that only the thread sees.
func (ns *namespace) open(w *world, path string, flags int) int32 {
	w.t.Helper()
	fd := -1
	err := ns.do(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		err = &os.PathError{Op: "open", Path: path, Err: err}
	}
	return w.own(fd, err)
}

package phxdev

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const page = 64 << 10

// openPlain opens a regular file of lenBytes that stands where node 3 would.
func openPlain(t *testing.T, lenBytes int64) (*Device, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "phxfs_dev3")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, lenBytes); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir, 3)
	if err != nil {
		t.Fatalf("Open(%q, 3): %v", dir, err)
	}
	t.Cleanup(func() {
		if d.FD() >= 0 {
			_ = d.Close()
		}
	})
	return d, path
}

// wantErrno fails unless err carries want and its text names the step.
func wantErrno(t *testing.T, err error, want syscall.Errno, step string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", step, err, want)
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) || errno != want {
		t.Fatalf("%s: error %v carries errno %d, want %d", step, err, errno, want)
	}
	if !strings.Contains(err.Error(), step) {
		t.Fatalf("error %q does not name the step %q", err, step)
	}
}

func TestOpenMissingNodeIsENOENT(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir, 0)
	wantErrno(t, err, unix.ENOENT, "open "+dir+"/phxfs_dev0")
}

func TestOpenRefusesIndexOutsideTheEight(t *testing.T) {
	for _, index := range []int{-1, 8, 1 << 40} {
		_, err := Open(t.TempDir(), index)
		wantErrno(t, err, unix.EINVAL, "open")
	}
}

func TestOpenNodeThatIsAFolderFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "phxfs_dev7"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, 7)
	wantErrno(t, err, unix.EISDIR, "open")
}

func TestDescriptorIsReadWriteAndCloseOnExec(t *testing.T) {
	d, _ := openPlain(t, page)
	flags, err := unix.FcntlInt(uintptr(d.FD()), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		t.Fatalf("F_GETFL = %#x, %v; want O_RDWR", flags, err)
	}
	fdFlags, err := unix.FcntlInt(uintptr(d.FD()), unix.F_GETFD, 0)
	if err != nil || fdFlags&unix.FD_CLOEXEC == 0 {
		t.Fatalf("F_GETFD = %#x, %v; want FD_CLOEXEC", fdFlags, err)
	}
}

func TestMappingIsShared(t *testing.T) {
	d, path := openPlain(t, page)
	host, err := d.Mmap(page)
	if err != nil {
		t.Fatal(err)
	}
	// A pread into the mapping must reach the file: a private mapping would
	// swallow it.
	src := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(src, []byte("through"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, _, errno := unix.Syscall6(unix.SYS_PREAD64, f.Fd(), host, 7, 0, 0, 0)
	if n != 7 || errno != 0 {
		t.Fatalf("pread into the mapping = %d, %v", n, errno)
	}
	if err := Munmap(host, page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got[:7]) != "through" {
		t.Fatalf("file holds %q, %v; want %q", got[:7], err, "through")
	}
}

func TestMmapErrors(t *testing.T) {
	d, _ := openPlain(t, page)
	_, err := d.Mmap(0)
	wantErrno(t, err, unix.EINVAL, "mmap 0 bytes")
	_, err = d.Mmap(1 << 62)
	wantErrno(t, err, unix.ENOMEM, "mmap")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Mmap(page)
	wantErrno(t, err, unix.EBADF, "mmap")
}

func TestMunmapErrors(t *testing.T) {
	wantErrno(t, Munmap(1, page), unix.EINVAL, "munmap")
}

func TestCloseTwiceIsEBADFAndTouchesNoForeignDescriptor(t *testing.T) {
	d, _ := openPlain(t, page)
	fd := d.FD()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if got := d.FD(); got != -1 {
		t.Fatalf("FD after Close = %d, want -1", got)
	}
	// The number is taken again by somebody else.
	other, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	wantErrno(t, d.Close(), unix.EBADF, "close")
	if other == fd {
		if _, err := unix.FcntlInt(uintptr(other), unix.F_GETFD, 0); err != nil {
			t.Fatalf("the second Close closed descriptor %d of somebody else", other)
		}
	}
}

func TestPinnedIoctlsOnAPlainFileAreENOTTY(t *testing.T) {
	d, _ := openPlain(t, page)
	host, err := d.Mmap(page)
	if err != nil {
		t.Fatal(err)
	}
	defer Munmap(host, page)
	wantErrno(t, d.Map(host, 0x7f0000000000, page), unix.ENOTTY, "ioctl MAP 65536 bytes")
	wantErrno(t, d.Unmap(host, 0x7f0000000000, page), unix.ENOTTY, "ioctl UNMAP 65536 bytes")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, d.Map(host, 0, page), unix.EBADF, "ioctl MAP")
}

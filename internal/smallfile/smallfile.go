// Package smallfile reads small files of /proc and /sys. Package os is not
// used in the library: its files start Go's network poller, which keeps two
// descriptors in the host's process for good.
package smallfile

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// maxBytes bounds what Read returns.
const maxBytes = 64 << 10

// Read returns the content of the file, at most 64 KiB of it. The error
// carries the errno of open(2) or read(2).
func Read(path string) ([]byte, error) {
	fd, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	content := make([]byte, 0, 512)
	for len(content) < maxBytes {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := unix.Read(fd, content[len(content):cap(content)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		case n == 0:
			return content, nil
		default:
			content = content[:len(content)+n]
		}
	}
	return content[:maxBytes], nil
}

func open(path string) (fd int, err error) {
	for {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

package threeway

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The server is a process of its own. A process that is killed while it waits
// for a file system which it serves itself never ends: what would abort the
// connection, the closing of /dev/fuse, comes after the wait. Here, either
// process can be killed: the server dies with the namespace's thread, and its
// death aborts what others wait for.

// serveVariable, in the environment, makes this program the server of the
// folder that it names.
const serveVariable = "PHX_THREEWAY_SERVE"

// startServer starts it on a new folder of the namespace; it ends with w.
func (ns *namespace) startServer(w *world) (dir string, err error) {
	if dir, err = ns.folder(); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), serveVariable+"="+dir)
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // of the thread
	stdin, err := server.StdinPipe()
	w.must(err)
	stdout, err := server.StdoutPipe()
	w.must(err)
	if err := ns.do(server.Start); err != nil { // on the thread, so in its namespace
		return "", fmt.Errorf("starting the server: %w", err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		_ = stdin.Close()
		return "", fmt.Errorf("the server cannot mount (%w): %w", unix.ENODEV, server.Wait())
	}
	w.t.Cleanup(func() { // all fds of its files are closed by now
		_ = stdin.Close()
		if err := server.Wait(); err != nil {
			w.t.Errorf("the end of the FUSE server: %v", err)
		}
	})
	return dir, nil
}

// serve is the server's main function: it mounts on dir, says so on its
// standard output, and unmounts when its standard input ends.
func serve(dir string) (status int) {
	server, err := fs.Mount(dir, new(fuseRoot), &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, // no fusermount
		FsName:            "threeway",
		Name:              "threeway",
	}})
	if err != nil {
		fmt.Fprintf(os.Stderr, "mount of a FUSE on %s: %v\n", dir, err)
		return 1
	}
	_, _ = os.Stdout.Write([]byte{'+'})
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := server.Unmount(); err != nil {
		fmt.Fprintf(os.Stderr, "unmount of %s: %v\n", dir, err)
		return 1
	}
	return 0
}

// fuseRoot is the folder. Each file is there twice: as its kind says, and
// plainly, for the test to look behind it.
type fuseRoot struct{ fs.Inode }

func (r *fuseRoot) OnAdd(ctx context.Context) {
	for i, k := range fuseKinds() {
		add := func(name string, n *fuseNode) {
			r.AddChild(name, r.NewPersistentInode(ctx, n, fs.StableAttr{Mode: syscall.S_IFREG}), true)
		}
		plain := &fuseFile{flags: fuse.FOPEN_DIRECT_IO}
		add(fmt.Sprint(i), &fuseNode{as: &k.file, data: &k.file.data})
		add(fmt.Sprint(i)+"-back", &fuseNode{as: plain, data: &k.file.data})
	}
}

//go:build !race

package emulator

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	lack "libphoenix/internal/need"
)

// The keyboard signals the whole foreground group: the program must get one
// SIGINT, not a second one from phx.
func TestKeyboardInterruptArrivesOnce(t *testing.T) {
	need(t)
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		lack.Missing(t, lack.Terminal, "%v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		lack.Missing(t, lack.Terminal, "%v", err)
	}
	cmd := phx("emulate", "--", program("signals"), "count")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	lines := bufio.NewScanner(master)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) { // the terminal echoes ^C before it
				return
			}
		}
		_ = cmd.Process.Kill()
		t.Fatalf("the terminal shows no line %q: %v", want, lines.Err())
	}
	next("ready")
	if _, err := master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	next("interrupted")
	_ = cmd.Process.Signal(syscall.SIGTERM)
	next("1")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

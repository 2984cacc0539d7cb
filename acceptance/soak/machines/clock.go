//go:build linux

package machines

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ClockVariable names the file of the clock that a program goes by which was built with an Overlay.
const ClockVariable = "SOAK_CLOCK"

// Clock is the wall clock of some programs. It is so far from the right one as the eight bytes of a file say, which the programs
// map.
type Clock struct {
	File string
	mu   sync.Mutex
	off  time.Duration
}

// NewClock makes a clock that is right.
func NewClock(file string) (*Clock, error) {
	c := &Clock{File: file}
	return c, os.WriteFile(file, make([]byte, 8), 0o644)
}

// Jump has the clock jump, back where by is negative. What was jumped before stays.
func (c *Clock) Jump(by time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += by
	var bytes [8]byte
	binary.NativeEndian.PutUint64(bytes[:], uint64(c.off)) // read with its sign
	file, err := os.OpenFile(c.File, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(bytes[:], 0) // never truncated: it is mapped
	return errors.Join(err, file.Close())
}

// The function of the standard library that everything asks for the time, and what it becomes. The monotonic clock, by which
// waits go, stays as it is: so it is where an administrator sets the clock.
const (
	asked    = "sec, nsec, mono := runtimeNow()"
	answered = "sec, nsec, mono := runtimeNow()\n\tsec, nsec = soakShifted(sec, nsec)"
)

// shifting is what is added to package time.
const shifting = `package time

import (
	"syscall"
	"unsafe"
)

// soakOff is how far the clock is from the right one, in nanoseconds; nil: it is right.
var soakOff *int64

func init() {
	name, _ := syscall.Getenv("` + ClockVariable + `")
	if name == "" {
		return
	}
	file, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("the clock " + name + " is not there: " + err.Error())
	}
	page, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("the clock " + name + " cannot be mapped: " + err.Error())
	}
	syscall.Close(file)
	soakOff = (*int64)(unsafe.Pointer(&page[0]))
}

func soakShifted(sec int64, nsec int32) (int64, int32) {
	if soakOff == nil {
		return sec, nsec
	}
	all := int64(nsec) + *soakOff
	sec, all = sec+all/1e9, all%1e9
	if all < 0 {
		sec, all = sec-1, all+1e9
	}
	return sec, int32(all)
}
`

// Overlay writes what "go build -overlay" takes into a folder, and returns the file's path. The program that is built so goes by
// the clock that ClockVariable names, and by the right one where it names none. Nothing of the program itself is another.
func Overlay(dir string) (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	of := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(of, "time.go"))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), asked); n == 0 {
		return "", fmt.Errorf("%s does not ask for the time as this knows it: %s", of, asked)
	}
	changed, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "soak.go")
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(of, "time.go"): changed, filepath.Join(of, "soak.go"): added,
	}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(
		os.WriteFile(changed, []byte(strings.ReplaceAll(string(text), asked, answered)), 0o644),
		os.WriteFile(added, []byte(shifting), 0o644), os.WriteFile(overlay, plan, 0o644))
}

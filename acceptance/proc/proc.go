// Package proc reads what the kernel says of the processor and of what processes take, where there is a /proc.
package proc

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// clockTicks is how many of the kernel's a second has, on all platforms that it reports such times on.
const clockTicks = 100

// Time is what a process has computed so far, and those of its children that have ended and were waited for.
func Time(pid int) (own, children time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold blanks
	var user, system, childrensUser, childrensSystem int64
	_, err = fmt.Sscan(strings.Join(strings.Fields(rest)[11:15], " "), &user, &system, &childrensUser, &childrensSystem)
	const tick = time.Second / clockTicks
	return time.Duration(user+system) * tick, time.Duration(childrensUser+childrensSystem) * tick, err
}

// Resident is a process's memory, in bytes.
func Resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages float64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, err
	}
	return pages * float64(os.Getpagesize()), nil
}

// Processor names the machine's processors.
func Processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // not every machine has one
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor not known"
}

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// memory watches the resident memory of a process.
type memory struct {
	pid     int
	samples []amount
	stop    chan struct{}
	done    chan error
}

// usage is what a process needed, in bytes: at its highest, and at the highest of the first and of the last third of the time.
type usage struct{ peak, early, late amount }

const sampleEvery = 20 * time.Millisecond

func watch(pid int) (*memory, error) {
	// Sets the kernel's own peak back to what the process has now.
	if err := os.WriteFile(procFile(pid, "clear_refs"), []byte("5"), 0); err != nil {
		return nil, fmt.Errorf("peak memory cannot be set back: %w", err)
	}
	m := &memory{pid: pid, stop: make(chan struct{}), done: make(chan error, 1)}
	go m.sample()
	return m, nil
}

func (m *memory) sample() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		used, err := status(m.pid, "VmRSS")
		if err != nil {
			m.done <- err
			return
		}
		m.samples = append(m.samples, used)
		select {
		case <-m.stop:
			m.done <- nil
			return
		case <-tick.C:
		}
	}
}

// end stops watching.
func (m *memory) end() (usage, error) {
	close(m.stop)
	err := <-m.done
	peak, peakErr := status(m.pid, "VmHWM")
	if err = errors.Join(err, peakErr); err != nil {
		return usage{}, err
	}
	third := (len(m.samples) + 2) / 3
	return usage{
		peak: peak, early: slices.Max(m.samples[:third]), late: slices.Max(m.samples[len(m.samples)-third:]),
	}, nil
}

// status reads a size from what the kernel says of a process.
func status(pid int, field string) (amount, error) {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return amount(kilobytes) * kibibyte, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}

func procFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

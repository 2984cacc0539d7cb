package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// keep writes what targets did into a file, beside what is there of others. A line has the target, what it did, for how long, and
// on which day and commit.
func keep(file string, lasts time.Duration, done map[string]string) error {
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*").Output()
	if err != nil {
		return fmt.Errorf("git describe: %w", err)
	}
	lines, err := kept(file)
	if err != nil {
		return err
	}
	when := time.Now().UTC().Format(time.DateOnly) + ", " + strings.TrimSpace(string(commit))
	for target, did := range done {
		lines[target] = fmt.Sprintf("%s: %s in %s, %s\n", target, did, lasts, when)
	}
	var text strings.Builder
	for _, target := range slices.Sorted(maps.Keys(lines)) {
		text.WriteString(lines[target])
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// kept are the lines of a file by their targets; none of a file that is not there.
func kept(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(text)) {
		target, _, _ := strings.Cut(line, ":")
		lines[target] = line
	}
	return lines, nil
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// target is a fuzz target, or the test that searches for one.
type target struct {
	Package string // as the Go command takes it: ./core/upload
	Name    string // of the target, or of the test
}

func (t target) String() string { return strings.TrimPrefix(t.Package, "./") + "." + t.Name }

const searching = "TestSearch"

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w+|` + searching + `\w+)\(\w+ \*testing\.[FT]\)`)

// targets lists those of the packages below the present folder. A target that has a search of its own is run by that.
func targets(ctx context.Context) (all []target, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-f",
		`{{.Dir}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}`, "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		below, err := filepath.Rel(root, words[0])
		if err != nil {
			return nil, err
		}
		for _, file := range words[1:] {
			text, err := os.ReadFile(filepath.Join(words[0], file))
			if err != nil {
				return nil, err
			}
			for _, found := range declared.FindAllSubmatch(text, -1) {
				all = append(all, target{"./" + filepath.ToSlash(below), string(found[1])})
			}
		}
	}
	slices.SortFunc(all, func(a, b target) int { return cmp.Compare(a.String(), b.String()) })
	return slices.DeleteFunc(all, func(t target) bool {
		of, fuzz := strings.CutPrefix(t.Name, "Fuzz")
		return fuzz && slices.Contains(all, target{t.Package, searching + of})
	}), nil
}

// try runs the target for a while, on one processor, and returns what the Go command wrote.
func (t target) try(ctx context.Context, lasts time.Duration) (out string, err error) {
	args := []string{"-run=^$", "-fuzz=^" + t.Name + "$", "-fuzztime=" + lasts.String(), "-parallel=1", "-fuzzminimizetime=5s"}
	if strings.HasPrefix(t.Name, searching) {
		args = []string{"-run=^" + t.Name + "$", "-v"}
	}
	args = slices.Concat([]string{"test", "-count=1", "-vet=off", "-timeout=0"}, args, []string{t.Package})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "PGHERD_SAMPLE=", "PGHERD_FUZZ="+lasts.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // what it started ends with it
	text, err := cmd.CombinedOutput()
	return string(text), err
}

var (
	ofFuzz   = regexp.MustCompile(`execs: (\d+) .*new interesting: (\d+)`)
	ofSearch = regexp.MustCompile(`inputs: (\d+), in`)
)

// figures are how many inputs were tried and, of those that Go's own search has made, how many reached something new.
func figures(out string) string {
	if all := ofFuzz.FindAllStringSubmatch(out, -1); all != nil {
		last := all[len(all)-1]
		return fmt.Sprintf("%s inputs, %s of them new", last[1], last[2])
	}
	if found := ofSearch.FindStringSubmatch(out); found != nil {
		return found[1] + " inputs"
	}
	return ""
}

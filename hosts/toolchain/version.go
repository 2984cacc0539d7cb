package toolchain

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// version is major, minor and patch; PostgreSQL has two of them, PgBouncer three.
type version [3]int

var versionPattern = regexp.MustCompile(`\b(\d+)\.(\d+)(?:\.(\d+))?`)

// versionOf asks a program for its version. A program that does not start has none.
func versionOf(path string) (version, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return version{}, false
	}
	return parseVersion(string(out))
}

func parseVersion(text string) (version, bool) {
	match := versionPattern.FindStringSubmatch(text)
	if match == nil {
		return version{}, false
	}
	var v version
	for i, digits := range match[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			return version{}, false
		}
		v[i] = n
	}
	return v, true
}

func (v version) atLeast(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] > w[i]
		}
	}
	return true
}

func server16(v version) bool   { return v[0] == 16 }
func client16(v version) bool   { return v.atLeast(version{16}) }
func pooler1241(v version) bool { return v.atLeast(version{1, 24, 1}) }

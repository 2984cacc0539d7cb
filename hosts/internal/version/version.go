// Package version says what a program was built from.
package version

import (
	_ "embed"
	"runtime"
	"runtime/debug"
	"strings"
)

// What the linker was told: see VERSION and COMMIT in the Makefile.
var stampedVersion, stampedCommit string

// archived has the commit, and its second of Unix time, of sources that "git archive" has packed, and a placeholder in all
// others: also in the module that Go fetches, which has a version and, in one that is no release's, the commit.
//
//go:embed archived.txt
var archived string

// Version is the version of this program: the one that its build was given, or what git says; without either, one that has the
// commit.
func Version() string {
	if stampedVersion != "" {
		return stampedVersion
	}
	info, ok := debug.ReadBuildInfo()
	switch commit := Revision(); {
	case ok && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	case len(commit) >= shortCommit:
		return "v0.0.0-0." + commit[:shortCommit]
	}
	return "unknown"
}

const shortCommit = 12

// Build is the version with what it was built from and with, for people.
func Build() string {
	out := Version()
	if revision := Revision(); revision != "" {
		out += " (" + revision + ")"
	}
	return out + " " + runtime.Version()
}

// Revision is the commit that this program was built from; "" where its build did not record one.
func Revision() string {
	if stampedCommit != "" {
		return stampedCommit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	if commit, _, _ := strings.Cut(archived, " "); !strings.HasPrefix(commit, "$") {
		return commit
	}
	return ""
}

// Product is a program with its version and commit, as its requests name it in User-Agent: pgherd/v1.0.0 (0123456...).
func Product(program string) string {
	product := program + "/" + Version()
	if revision := Revision(); revision != "" {
		product += " (" + revision + ")"
	}
	return product
}

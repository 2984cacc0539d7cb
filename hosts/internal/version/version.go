// Package version says what a program was built from.
package version

import (
	"runtime"
	"runtime/debug"
)

// Version is the version of this program, as its build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

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
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

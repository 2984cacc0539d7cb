package toolchain

import (
	"context"

	"github.com/pgherd/pgherd/agent/versions"
)

// versionOf asks a program for its version. A program that does not start has none.
func versionOf(path string) (versions.Number, bool) {
	text, err := versions.Ask(context.Background(), path, nil)
	if err != nil {
		return versions.Number{}, false
	}
	return versions.ParseNumber(text)
}

func server16(v versions.Number) bool   { return v[0] == 16 }
func client16(v versions.Number) bool   { return v.AtLeast(versions.Number{16}) }
func pooler1241(v versions.Number) bool { return v.AtLeast(versions.Number{1, 24, 1}) }

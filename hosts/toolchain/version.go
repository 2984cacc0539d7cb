package toolchain

import (
	"context"

	"github.com/pgherd/pgherd/agent/floors"
)

// versionOf asks a program for its version. A program that does not start has none.
func versionOf(path string) (floors.Number, bool) {
	text, err := floors.Said(context.Background(), path, nil)
	if err != nil {
		return floors.Number{}, false
	}
	return floors.ParseNumber(text)
}

func server16(v floors.Number) bool     { return v[0] == 16 }
func client16(v floors.Number) bool     { return v.AtLeast(floors.Number{16}) }
func pooler1241(v floors.Number) bool   { return v.AtLeast(floors.Number{1, 24, 1}) }
func archiver2551(v floors.Number) bool { return v.AtLeast(floors.Number{2, 55, 1}) }

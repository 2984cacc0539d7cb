package toolchain

import (
	"context"
	"fmt"
	"os"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/core/pgversion"
)

// versionOf asks a program for its version. A program that does not start has none.
func versionOf(path string) (floors.Number, bool) {
	text, err := floors.Said(context.Background(), path, nil)
	if err != nil {
		return floors.Number{}, false
	}
	return floors.ParseNumber(text)
}

// serverFits is which servers will do, and what they are called: others than the default are only taken on an order.
func serverFits() (fits func(floors.Number) bool, name string) {
	if os.Getenv(BindirVariable) != "" {
		return supported, fmt.Sprintf("PostgreSQL %d to %d", pgversion.Oldest, pgversion.Newest)
	}
	return func(v floors.Number) bool { return v[0] == pgversion.Default }, fmt.Sprintf("PostgreSQL %d", pgversion.Default)
}

func supported(v floors.Number) bool { return pgversion.Supported(v[0]) }

// clientOf is which pg_dump takes a server of a major version.
func clientOf(major int) func(floors.Number) bool {
	return func(v floors.Number) bool { return v[0] >= major }
}

func pooler1241(v floors.Number) bool   { return v.AtLeast(floors.Number{1, 24, 1}) }
func archiver2551(v floors.Number) bool { return v.AtLeast(floors.Number{2, 55, 1}) }
